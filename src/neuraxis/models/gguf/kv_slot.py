"""Save and restore llama.cpp's KV cache to and from files.

The binding has no function for it; llama.cpp's own server on the loopback address
does.
"""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

_SECONDS = 30


def fill(address: str, key: str, file: Path) -> bool:
    """Have the model know what the file says it has read."""
    return _ask(address, key, "restore", file)


def save(address: str, key: str, file: Path) -> bool:
    """Write what the model has read to the file."""
    return _ask(address, key, "save", file)


def _ask(address: str, key: str, action: str, file: Path) -> bool:
    # slow to import, and needed once for each constant text
    from http.client import HTTPConnection, HTTPException

    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=_SECONDS)
    try:
        connection.request(
            "POST",
            f"/slots/0?action={action}",
            json.dumps({"filename": file.name}),  # in the folder it was started with
            {"content-type": "application/json", "authorization": f"Bearer {key}"},
        )
        answer = connection.getresponse()
        answer.read()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return answer.status == 200
