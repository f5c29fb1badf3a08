"""Save and restore llama.cpp's KV cache to and from files.

The binding has no function for it, so llama.cpp's server on the loopback address is
used.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from neuraxis.specs import Json

_SECONDS = 30


def restore(address: str, key: str, file: Path) -> bool:
    """Restore the model's KV cache from the file."""
    return _slot(address, key, "restore", file)


def save(address: str, key: str, file: Path) -> bool:
    """Save the model's KV cache to the file."""
    return _slot(address, key, "save", file)


def get(address: str, key: str, path: str) -> Mapping[str, Json]:
    """Return the server's answer at a path; empty: there is none."""
    answer = _ask(address, key, "GET", path)
    return cast("dict[str, Json]", json.loads(answer or b"{}"))


def _slot(address: str, key: str, action: str, file: Path) -> bool:
    # relative to the folder that the server was started with
    body = json.dumps({"filename": file.name})
    path = f"/slots/0?action={action}"
    return _ask(address, key, "POST", path, body) is not None


def _ask(
    address: str, key: str, method: str, path: str, body: str | None = None
) -> bytes | None:
    # slow to import, needed once per constant prompt
    from http.client import HTTPConnection, HTTPException

    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
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
