"""The text model: a binding of our own, and the real one behind its marker."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import MissingExtra, ModelBroken, ModelUnavailable
from neuraxis.messages import Usage
from neuraxis.models.gguf.lazy import LazyWriter
from neuraxis.models.gguf.llama import Ask, LlamaWriter, default_threads


def binding(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[dict[str, Any], Any], Any]
) -> list[Any]:
    """Put a module of the binding's shape in place; gives the parameters it got."""
    seen: list[Any] = []

    class CommonParams:
        def __init__(self) -> None:
            self.model = types.SimpleNamespace()
            self.cpuparams = types.SimpleNamespace()
            self.cpuparams_batch = types.SimpleNamespace()

    class Server:
        def __init__(self, params: Any) -> None:
            if params.model.path.endswith("broken.gguf"):
                raise RuntimeError("not a model")
            seen.append(params)

        def handle_completions(self, request: dict[str, Any], take: Any) -> Any:
            return answer(request, take)

    module = types.ModuleType("xllamacpp")
    module.CommonParams = CommonParams  # type: ignore[attr-defined]
    module.Server = Server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    return seen


def piece(text: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": text, "finish_reason": reason}], **more}


async def test_pieces_arrive_in_order_and_are_joined(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Text, tokens and how it ended; the server is loaded once and has a key."""

    def answer(request: dict[str, Any], take: Any) -> None:
        assert "hi" == request["prompt"]
        take([piece("a")])
        take(piece("b"))
        take(piece("", "stop", usage={"prompt_tokens": 3, "completion_tokens": 2}))

    seen = binding(monkeypatch, answer)
    writer = LlamaWriter(Path("model.gguf"), threads=1)
    heard: list[str] = []
    written = await writer.write(Ask(prompt="hi"), heard.append)
    await writer.write(Ask(prompt="hi"))
    assert ["a", "b"] == heard
    assert ("ab", True) == (written.text, written.complete)
    assert Usage(input_tokens=3, output_tokens=2) == written.usage
    assert 1 == len(seen)
    assert 1 == seen[0].cpuparams.n_threads
    assert len(seen[0].api_keys[0]) >= 32


async def test_a_cancelled_completion_ends_at_the_next_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The callback says stop; nothing is handed over any more."""
    begun, ended = threading.Event(), threading.Event()

    def answer(request: dict[str, Any], take: Any) -> None:
        begun.set()
        while not take(piece("x")):
            pass
        ended.set()

    binding(monkeypatch, answer)
    writer = LlamaWriter(Path("model.gguf"), threads=1)
    task = asyncio.create_task(writer.write(Ask(prompt="hi")))
    await asyncio.to_thread(begun.wait, 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_refused_request_and_a_broken_file_are_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the binding says is in the message."""
    binding(monkeypatch, lambda request, take: {"error": {"message": "bad grammar"}})
    with pytest.raises(ModelBroken, match="bad grammar"):
        await LlamaWriter(Path("model.gguf"), threads=1).write(Ask(prompt="hi"))
    with pytest.raises(ModelUnavailable, match="not a model"):
        await LlamaWriter(Path("broken.gguf"), threads=1).write(Ask(prompt="hi"))


@pytest.mark.skipif(not hasattr(os, "getloadavg"), reason="no load is known here")
def test_two_threads_only_where_two_cores_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine two threads that wait for each other are slower than one."""
    cases = ((1, 0.0, 1), (2, 0.3, 2), (2, 1.5, 1), (4, 1.0, 2), (4, 9.0, 1))
    for cores, busy, threads in cases:
        found = set(range(cores))
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda _, found=found: found, raising=False
        )
        monkeypatch.setattr(os, "getloadavg", lambda busy=busy: (busy, 0.0, 0.0))
        assert threads == default_threads()


async def test_without_the_binding_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`neuraxis[local]`."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match=r"neuraxis\[local\]"):
        await LlamaWriter(Path("model.gguf"), threads=1).write(Ask(prompt="hi"))


async def test_nothing_is_fetched_where_that_is_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`local.fetch = "never"`."""
    monkeypatch.delenv("NEURAXIS_WEIGHTS", raising=False)
    with pytest.raises(ModelUnavailable, match="neuraxis models fetch"):
        await LazyWriter(may_fetch=False).write(Ask(prompt="hi"))
