"""The one place where llama.cpp keeps what it has read: filled from a file, or saved.

The binding has no function for it, its own server on the loopback address does. The
path of a file flows in; whether it worked flows out.
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
