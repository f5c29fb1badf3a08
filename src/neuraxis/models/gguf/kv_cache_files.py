"""Save and restore llama.cpp's KV cache to and from files.

The binding has no function for it; llama.cpp's own server on the loopback address
does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from neuraxis.specs import Json

_SECONDS = 30


def fill(address: str, key: str, file: Path) -> bool:
    """Have the model know what the file says it has read."""
    return _slot(address, key, "restore", file)


def save(address: str, key: str, file: Path) -> bool:
    """Write what the model has read to the file."""
    return _slot(address, key, "save", file)


def get(address: str, key: str, path: str) -> Mapping[str, Json]:
    """Return what the server says of itself; empty: it says nothing."""
    found = _ask(address, key, "GET", path)
    return cast("dict[str, Json]", json.loads(found or b"{}"))


def _slot(address: str, key: str, action: str, file: Path) -> bool:
    # in the folder that the server was started with
    body = json.dumps({"filename": file.name})
    path = f"/slots/0?action={action}"
    return _ask(address, key, "POST", path, body) is not None


def _ask(
    address: str, key: str, method: str, path: str, body: str | None = None
) -> bytes | None:
    # slow to import, and needed once for each constant text
    from http.client import HTTPConnection, HTTPException

    where = urlsplit(address)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=_SECONDS)
    try:
        connection.request(
            method,
            path,
            body,
            {"content-type": "application/json", "authorization": f"Bearer {key}"},
        )
        answer = connection.getresponse()
        read = answer.read()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return read if answer.status == 200 else None
