"""Content blocks of MCP as values."""

import base64
import io

import pytest

from neuraxis.bridges.mcp_client.content import (
    prompt_value,
    resource_value,
    result_value,
)
from neuraxis.errors import CommandError


def text(words):
    return {"type": "text", "text": words}


def data(raw):
    return base64.b64encode(raw).decode()


def test_one_text_is_that_text_and_several_are_a_list():
    """Nothing is joined that the server kept apart."""
    assert result_value({"content": [text("a")]}) == "a"
    assert result_value({"content": [text("a"), text("b")]}) == ["a", "b"]
    assert result_value({"content": []}) is None


def test_structured_content_is_the_value_and_pictures_stay():
    """The text beside it is the same said again; a picture is not."""
    both = {"content": [text('{"a": 1}')], "structuredContent": {"a": 1}}
    assert result_value(both) == {"a": 1}
    sound = {"type": "audio", "data": data(b"RIFF"), "mimeType": "audio/wav"}
    assert result_value({**both, "content": [text("x"), sound]}) == {
        "structured": {"a": 1},
        "content": [{"mime_type": "audio/wav", "data": b"RIFF"}],
    }


def test_a_picture_is_a_picture_object():
    """So that the next command gets the object itself."""
    image = pytest.importorskip("PIL.Image")
    sink = io.BytesIO()
    image.new("RGB", (3, 2)).save(sink, "PNG")
    block = {"type": "image", "data": data(sink.getvalue()), "mimeType": "image/png"}
    assert result_value({"content": [block]}).size == (3, 2)
    broken = {"type": "image", "data": data(b"no"), "mimeType": "image/png"}
    assert result_value({"content": [broken]})["data"] == b"no"


def test_resources_and_links():
    """A link is data: it is not followed."""
    inner = {"uri": "demo://1", "mimeType": "text/plain", "text": "words"}
    block = {"type": "resource", "resource": inner}
    value = {"uri": "demo://1", "mime_type": "text/plain", "text": "words"}
    assert result_value({"content": [block]}) == value
    assert resource_value({"contents": [inner]}) == value
    blob = {"uri": "demo://2", "blob": data(b"\x00\x01")}
    assert resource_value({"contents": [blob]})["data"] == b"\x00\x01"
    link = {"type": "resource_link", "uri": "file:///etc/passwd", "name": "p"}
    assert result_value({"content": [link]}) == {
        "link": {"uri": "file:///etc/passwd", "name": "p"}
    }


def test_a_failed_call_raises_in_the_words_of_the_server():
    """Its text is cut, and on one line."""
    with pytest.raises(CommandError) as raised:
        result_value({"isError": True, "content": [text("no\n" * 9_000)]})
    assert len(str(raised.value)) <= 4_000
    assert "\n" not in str(raised.value)
    with pytest.raises(CommandError, match="gave no reason"):
        result_value({"isError": True, "content": []})
    with pytest.raises(CommandError, match="no base64"):
        result_value({"content": [{"type": "audio", "data": "%", "mimeType": "a/b"}]})


def test_a_prompt_is_its_messages():
    """Roles and contents, in order."""
    result = {"messages": [{"role": "user", "content": text("Hello")}]}
    assert prompt_value(result) == {
        "description": "",
        "messages": [{"role": "user", "content": "Hello"}],
    }
