"""The server that the official conformance suite asks: `mcp serve` with test commands.

Prints its URL. The commands have the names and answers that the scenarios ask for.
"""

import asyncio
import io
import struct
import sys
import tempfile
import wave
from pathlib import Path
from typing import Any

from neuraxis import Context, Session, command
from neuraxis.bridges.mcp_server.server import serve_http
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import EVERYTHING


@command(effects="none")
def test_simple_text() -> str:
    """Tests simple text content response."""
    return "This is a simple text response for testing."


def sound() -> bytes:
    sink = io.BytesIO()
    with wave.open(sink, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(struct.pack("<8h", *range(8)))
    return sink.getvalue()


@command(effects="none")
def test_image_content() -> Any:
    """Tests image content response."""
    from PIL import Image

    return Image.new("RGB", (1, 1), "red")


@command(effects="none")
def test_audio_content() -> Any:
    """Tests audio content response."""
    return {"mime_type": "audio/wav", "data": sound()}


@command(effects="none")
def test_embedded_resource() -> Any:
    """Tests embedded resource content response."""
    return {
        "uri": "test://embedded-resource",
        "mime_type": "text/plain",
        "text": "This is an embedded resource content.",
    }


@command(effects="none")
def test_multiple_content_types() -> Any:
    """Tests response with multiple content types."""
    from PIL import Image

    return [
        "Multiple content types test:",
        Image.new("RGB", (1, 1), "red"),
        {
            "uri": "test://mixed-content-resource",
            "mime_type": "application/json",
            "text": '{"test":"data","value":123}',
        },
    ]


@command(effects="none")
def test_error_handling() -> str:
    """Tests error response handling."""
    raise ValueError("This tool intentionally returns an error for testing")


@command(effects="read")
async def test_tool_with_progress(context: Context) -> str:
    """Tests progress notifications."""
    for number in (0.0, 0.5, 1.0):
        context.progress(f"Completed step {number}", number)
        await asyncio.sleep(0.05)
    return "done"


PLUGINS = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_progress,
]


async def main() -> None:
    folder = Path(tempfile.mkdtemp())
    with Session(
        model=ScriptedModel([]), plugins=PLUGINS, workspace=folder, policy=EVERYTHING
    ) as session:
        await serve_http(
            session,
            port=int(sys.argv[1]) if len(sys.argv) > 1 else 0,
            started=lambda url: print(url, flush=True),
        )


if __name__ == "__main__":
    asyncio.run(main())
