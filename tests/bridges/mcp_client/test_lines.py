"""A server's lines: repaired where nothing is lost, else a failure of their call."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse

from neuraxis.bridges.mcp_client.lines import NoId, message_of


def _read(line: bytes) -> Any:
    message = message_of(line)
    assert isinstance(message, SessionMessage)
    return message.message


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (rb"cut \ud83d", "cut \ufffd"),
        (rb"\ude00 cut", "\ufffd cut"),
        (rb"\ud83d\ude00", "\U0001f600"),
        (rb"\\ud83d", r"\ud83d"),
        (rb"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
    ],
)
def test_only_half_characters_are_replaced(written: bytes, text: str) -> None:
    """Pairs stay one character, and an escaped backslash begins no escape."""
    line = b'{"jsonrpc":"2.0","id":1,"result":{"text":"' + written + b'"}}'
    found = _read(line)
    assert isinstance(found, JSONRPCResponse)
    assert found.result["text"] == text


@pytest.mark.parametrize(
    ("line", "call"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"n":' + b"9" * 5_000 + b"e}}", 7),
        (b'{"jsonrpc":"2.0","id":"a","result":' + b"[" * 1_000 + b"}", "a"),
        (b'{"result":{oops},"id":7,"jsonrpc":"2.0"}', 7),
        (b'{"jsonrpc":"2.0","error":{oops},"id":7}', 7),
    ],
)
def test_an_answer_that_cannot_be_read_fails_its_call(
    line: bytes, call: int | str
) -> None:
    """Its id stands at the beginning or at the end."""
    found = _read(line)
    assert isinstance(found, JSONRPCError)
    assert found.id == call
    assert "it may have done what was asked" in found.error.message


def test_an_answer_without_an_id_is_an_error_of_all() -> None:
    """It may be anybody's."""
    with pytest.raises(NoId):
        message_of(b'{"jsonrpc":"2.0","result":{oops}}')


@pytest.mark.parametrize(
    "line", [b"Server started.", b"{oops}", b'{"id":1,"method":x}']
)
def test_other_lines_are_passed_over(line: bytes) -> None:
    """Servers print to standard output, too."""
    assert isinstance(message_of(line), ValueError)
    assert message_of(b"  \r") is None
