"""Read a server's lines as messages, also with invalid JSON.

An answer that cannot be read must not keep its call waiting: the call fails at once.
Other lines are passed over, since servers print to standard output, too.
"""

from __future__ import annotations

import re

from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from neuraxis.bridges.untrusted_text import one_line

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}"
    r"|(u[dD][89a-fA-F][\da-fA-F]{2})|.)",
    re.ASCII,
)
"""Each escape of a text, so that `\\\\ud83d` is none; group 1: a lone surrogate."""
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")'
_ID_FIRST = re.compile(
    rb'\s*\{\s*(?:%b\s*,\s*)?%b\s*(?:\}|,\s*(?:%b\s*,\s*)?"(?:result|error)")'
    % (_VERSION, _ID, _VERSION)
)
_ID_LAST = re.compile(rb",\s*%b\s*(?:,\s*%b\s*)?\}\s*\Z" % (_ID, _VERSION))
_NO_ID_FIRST = re.compile(rb'\s*\{\s*(?:%b\s*,\s*)?"(?:result|error)"\s*:' % _VERSION)
_END = 400
"""Bytes in which an id at the end stands."""


class NoId(ValueError):
    """Error: an answer cannot be read, nor to which request it belongs."""


def message_of(line: bytes) -> SessionMessage | ValueError | None:
    """Return a line's message; None for a blank line.

    Lone surrogates, which servers write that cut a text within an emoji, are replaced.
    An answer that cannot be read is an error for its call; another line is a ValueError
    that the SDK passes over.

    Raises:
        NoId: it is an answer, and all that wait for one have to fail.
    """
    if not line.strip():
        return None
    try:
        return SessionMessage(
            jsonrpc_message_adapter.validate_json(line, by_name=False)
        )
    except ValueError:
        text = _ESCAPE.sub(_whole, line.decode(errors="replace"))
    try:
        return SessionMessage(
            jsonrpc_message_adapter.validate_json(text, by_name=False)
        )
    except ValidationError as error:
        return _failure(line, error)


def _whole(escape: re.Match[str]) -> str:
    return "\\ufffd" if escape[1] else escape[0]


def _failure(line: bytes, error: ValidationError) -> SessionMessage | ValueError:
    """Return the failure of an answer, or the error of another line."""
    found = _ID_FIRST.match(line)
    if found is None and _NO_ID_FIRST.match(line):
        found = _ID_LAST.search(line[-_END:])
        if found is None:
            raise NoId
    if found is None:
        return error
    reason = error.errors(include_url=False, include_input=False)[0]["msg"]
    text = one_line(reason.removeprefix("Invalid JSON: "), 200)
    number, name = found[1], found[2]
    return SessionMessage(
        JSONRPCError(
            jsonrpc="2.0",
            id=int(number) if number else name.decode(errors="replace"),
            error=ErrorData(
                code=PARSE_ERROR,
                message=f"the server's answer cannot be read: {text}; it may have done "
                "what was asked",
            ),
        )
    )
