"""Recorded traffic of four APIs, replayed by a loopback server through each wire.

What a model gives (text, thinking, calls with ids, finish reason, usage, citations) is
compared with what the recorded bodies say, which `expected_of` reads on its own. Then
each conversation is held by a whole `Session`, two turns long. Run:
`python benchmarks/recordings.py`. It prints the figures and exits with 1 where an
exchange was read otherwise. `NEURAXIS_SHARED_DATA` names the data's folder.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuraxis import Answer, Session, command
from neuraxis.errors import ModelError
from neuraxis.messages import Message, Prompt, Usage
from neuraxis.models import Model
from neuraxis.models.accumulate import Joiner
from neuraxis.models.anthropic.model import AnthropicModel
from neuraxis.models.gemini.model import GeminiModel
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.model import OpenAIModel
from neuraxis.models.openai_responses.model import ResponsesModel

WIRES: dict[str, Callable[..., Model]] = {
    "chat_completions": OpenAIModel,
    "anthropic_messages": AnthropicModel,
    "gemini_generate_content": GeminiModel,
    "openai_responses": ResponsesModel,
}
TOOL = {
    "type": "function",
    "function": {"name": "nothing", "parameters": {"type": "object"}},
}
QUICK = Options(max_retries=0)


def data_folder() -> Path:
    given = os.environ.get("NEURAXIS_SHARED_DATA")
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
    return Path(given) if given else beside


def exchanges(folder: Path, api: str) -> list[dict[str, Any]]:
    file = folder / "recordings" / f"{api}.jsonl"
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


# --- what a recorded answer says ---------------------------------------------------


@dataclass(kw_only=True)
class Said:
    """What one answer holds."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)
    """Id (empty: the server gave none), name, arguments."""
    finish: str = ""
    usage: Usage = field(default_factory=Usage)
    cited: int = 0
    refused: str = ""
    """The server's sentence, where the request or the answer failed."""


def frames(body: str) -> list[dict[str, Any]]:
    """The JSON objects of an event stream."""
    found: list[dict[str, Any]] = []
    for line in body.splitlines():
        if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]"):
            found.append(json.loads(line[5:]))
    return found


def expected_of(api: str, row: dict[str, Any]) -> Said:
    """What the recorded answer says, read without our wires."""
    body = row["response"]
    if row["status"] != 200:
        tree = json.loads(body) if isinstance(body, str) else body
        tree = tree[0] if isinstance(tree, list) else tree
        error = tree.get("error", tree)
        said = error.get("message", "") if isinstance(error, dict) else str(error)
        return Said(refused=said or str(row["status"]))
    parts = [body] if isinstance(body, dict) else frames(body)
    reader = {
        "chat_completions": _chat,
        "anthropic_messages": _anthropic,
        "gemini_generate_content": _gemini,
        "openai_responses": _responses,
    }[api]
    return reader(parts)


def _n(tree: Any, *path: str) -> int:
    for name in path:
        tree = (tree or {}).get(name)
    return tree or 0


def _chat(parts: list[dict[str, Any]]) -> Said:
    said = Said()
    calls: dict[int, list[str]] = {}
    for part in parts:
        if usage := part.get("usage") or (part.get("x_groq") or {}).get("usage"):
            said.usage = Usage(
                input_tokens=_n(usage, "prompt_tokens"),
                output_tokens=_n(usage, "completion_tokens"),
                cached_tokens=_n(usage, "prompt_tokens_details", "cached_tokens")
                or _n(usage, "num_cached_tokens"),
                cache_write_tokens=_n(
                    usage, "prompt_tokens_details", "cache_write_tokens"
                ),
                reasoning_tokens=_n(
                    usage, "completion_tokens_details", "reasoning_tokens"
                )
                or _n(usage, "reasoning_tokens"),
            )
        if not (part.get("choices") or part.get("error")) and len(parts) == 1:
            said.refused = "no completion"
        for choice in (part.get("choices") or [])[:1]:
            message = choice.get("message") or choice.get("delta") or {}
            content = message.get("content") or ""
            if isinstance(content, list):
                for item in content:
                    if item.get("type") == "thinking":
                        said.thinking += "".join(
                            inner.get("text", "") for inner in item["thinking"]
                        )
                    else:
                        said.text += item.get("text", "")
            else:
                said.text += content
            said.thinking += (
                message.get("reasoning_content") or message.get("reasoning") or ""
            )
            said.cited += len(message.get("annotations") or [])
            said.cited += len(message.get("executed_tools") or [])
            for call in message.get("tool_calls") or []:
                so_far = calls.setdefault(call.get("index", len(calls)), ["", "", ""])
                function = call.get("function") or {}
                so_far[0] = so_far[0] or call.get("id") or ""
                so_far[1] = so_far[1] or function.get("name") or ""
                so_far[2] += function.get("arguments") or ""
            said.finish = choice.get("finish_reason") or said.finish
    said.calls = [(i, name, json.loads(text)) for i, name, text in calls.values()]
    words = {"length": "length", "content_filter": "content_filter"}
    said.finish = "tool_calls" if said.calls else words.get(said.finish, "stop")
    return said


def _anthropic(parts: list[dict[str, Any]]) -> Said:
    said = Said()
    usage: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    reason = ""
    for part in parts:
        if part.get("type") == "message":
            blocks = dict(enumerate(part["content"]))
            usage, reason = part["usage"], part["stop_reason"]
        elif part["type"] == "message_start":
            usage = dict(part["message"]["usage"])
        elif part["type"] == "content_block_start":
            blocks[part["index"]] = dict(part["content_block"])
        elif part["type"] == "content_block_delta":
            block, delta = blocks[part["index"]], part["delta"]
            if delta["type"] == "input_json_delta":
                inputs[part["index"]] = (
                    inputs.get(part["index"], "") + delta["partial_json"]
                )
            for name in ("text", "thinking"):
                if name in delta:
                    block[name] += delta[name]
            if delta["type"] == "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta]
        elif part["type"] == "message_delta":
            reason = part["delta"]["stop_reason"]
            usage.update({k: v for k, v in part["usage"].items() if v is not None})
    for index, block in blocks.items():
        said.text += block.get("text", "") if block["type"] == "text" else ""
        said.thinking += block.get("thinking", "")
        said.cited += len(block.get("citations") or [])
        if block["type"] == "tool_use":
            written = inputs.get(index)
            given = json.loads(written) if written else block["input"]
            said.calls.append((block["id"], block["name"], given))
    read = _n(usage, "cache_read_input_tokens")
    written_tokens = _n(usage, "cache_creation_input_tokens")
    said.usage = Usage(
        input_tokens=_n(usage, "input_tokens") + read + written_tokens,
        output_tokens=_n(usage, "output_tokens"),
        cached_tokens=read,
        cache_write_tokens=written_tokens,
        reasoning_tokens=_n(usage, "output_tokens_details", "thinking_tokens"),
    )
    words = {
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "tool_use": "tool_calls",
        "refusal": "content_filter",
    }
    said.finish = words.get(reason, "stop")
    return said


def _gemini(parts: list[dict[str, Any]]) -> Said:
    said = Said()
    beside: set[str] = set()
    reason = ""
    for part in parts:
        if usage := part.get("usageMetadata"):
            thought = _n(usage, "thoughtsTokenCount")
            said.usage = Usage(
                input_tokens=_n(usage, "promptTokenCount")
                + _n(usage, "toolUsePromptTokenCount"),
                output_tokens=_n(usage, "candidatesTokenCount") + thought,
                cached_tokens=_n(usage, "cachedContentTokenCount"),
                reasoning_tokens=thought,
            )
        if (part.get("promptFeedback") or {}).get("blockReason"):
            reason = "BLOCKED"
        for candidate in (part.get("candidates") or [])[:1]:
            reason = candidate.get("finishReason") or reason
            names = ("groundingMetadata", "citationMetadata", "urlContextMetadata")
            beside |= {name for name in names if candidate.get(name)}
            for item in (candidate.get("content") or {}).get("parts") or []:
                if item.get("thought"):
                    said.thinking += item.get("text", "")
                else:
                    said.text += item.get("text", "")
                if call := item.get("functionCall"):
                    given = call.get("args") or {}
                    said.calls.append((call.get("id") or "", call["name"], given))
    said.cited = len(beside)
    stops = {"STOP": "stop", "": "stop", "MAX_TOKENS": "length"}
    failed = "FUNCTION_CALL" in reason
    said.finish = stops.get(reason, "content_filter")
    if failed:
        said.refused = reason
    elif said.calls and said.finish == "stop":
        said.finish = "tool_calls"
    return said


def _responses(parts: list[dict[str, Any]]) -> Said:
    said = Said()
    whole = parts[-1].get("response", parts[-1])
    if whole.get("error"):
        return Said(refused=whole["error"].get("message", ""))
    refusal = False
    for item in whole["output"]:
        if item["type"] == "message":
            for piece in item["content"]:
                said.text += piece.get("text") or piece.get("refusal") or ""
                said.cited += len(piece.get("annotations") or [])
                refusal |= piece["type"] == "refusal"
        elif item["type"] == "reasoning":
            pieces = [*(item.get("summary") or []), *(item.get("content") or [])]
            said.thinking += "".join(piece["text"] for piece in pieces)
        elif item["type"] == "function_call":
            given = json.loads(item["arguments"])
            said.calls.append((item["call_id"], item["name"], given))
    usage = whole["usage"]
    said.usage = Usage(
        input_tokens=_n(usage, "input_tokens"),
        output_tokens=_n(usage, "output_tokens"),
        cached_tokens=_n(usage, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=_n(usage, "input_tokens_details", "cache_write_tokens"),
        reasoning_tokens=_n(usage, "output_tokens_details", "reasoning_tokens"),
    )
    said.finish = "tool_calls" if said.calls else "stop"
    reason = _n(whole, "incomplete_details", "reason")
    if reason:
        said.finish = "content_filter" if reason == "content_filter" else "length"
    if refusal:
        said.finish = "content_filter"
    return said


# --- a server that plays one answer ------------------------------------------------


@dataclass
class Player:
    """A loopback server; each request gets the next body, the last one for ever."""

    url: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)

    async def answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                size = head.lower().partition("content-length:")[2].partition("\r")[0]
                self.asked.append(json.loads(await reader.readexactly(int(size))))
                row = self.rows[min(len(self.asked), len(self.rows)) - 1]
                body = row["response"]
                raw = (body if isinstance(body, str) else json.dumps(body)).encode()
                writer.write(
                    f"HTTP/1.1 {row['status']} X\r\ncontent-type: "
                    f"{row['content_type']}\r\ncontent-length: {len(raw)}\r\n\r\n"
                    "".encode()
                    + raw
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client, or the whole replay, has ended
        finally:
            writer.close()


@asynccontextmanager
async def playing() -> AsyncIterator[Player]:
    player = Player()
    server = await asyncio.start_server(player.answer, "127.0.0.1", 0)
    player.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield player
    finally:
        server.close()


# --- comparing --------------------------------------------------------------------


def differences(expected: Said, got: Joiner, error: ModelError | None) -> Iterator[str]:
    """What was read otherwise than recorded."""
    if expected.refused:
        first = expected.refused[:60].split("\n")[0]
        if error is None:
            yield f"error {first!r} was read as an answer"
        elif " ".join(first.split()) not in str(error):
            yield f"error {str(error)!r} does not say {first!r}"
        return
    if error is not None:
        yield f"failed: {error}"
        return
    done = got.completion("m")
    for name, one, other in (
        ("text", expected.text, done.text),
        ("thinking", expected.thinking, got.reasoning),
        ("finish", expected.finish, done.finish_reason),
        ("usage", expected.usage, done.usage),
        ("citations", expected.cited, len(done.annotations)),
        ("calls", len(expected.calls), len(done.tool_calls)),
    ):
        if one != other:
            yield f"{name}: expected {str(one)[:300]!r}, got {str(other)[:300]!r}"
    for (own, name, given), call in zip(expected.calls, done.tool_calls, strict=False):
        if (name, given) != (call.name, json.loads(call.arguments)):
            yield f"call: expected {name} {given}, got {call}"
        if own and own != call.id:
            yield f"id: expected {own}, got {call.id}"


async def replay(
    api: str, row: dict[str, Any], player: Player, expected: Said | None = None
) -> list[str]:
    """Play one answer to a model of that wire; what was read otherwise."""
    expected = expected or expected_of(api, row)
    player.rows, player.asked = [row], []
    model = WIRES[api]("m", server=player.url, options=QUICK)
    joined, error = Joiner(), None
    said = (Message(role="user", content="x"),)
    try:
        async for chunk in model.stream(Prompt(messages=said, native_tools=(TOOL,))):
            joined.add(chunk)
    except ModelError as failed:
        error = failed
    finally:
        await model.close()
    return list(differences(expected, joined, error))


_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
"""Thinking that a server leaves in the text: a session does not show it."""


def closing(api: str) -> dict[str, Any]:
    """A recorded-like answer that ends a run after its calls."""
    body: dict[str, Any]
    if api == "chat_completions":
        message = {"role": "assistant", "content": "That is all."}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
    elif api == "anthropic_messages":
        content = [{"type": "text", "text": "That is all."}]
        body = {"type": "message", "content": content, "stop_reason": "end_turn"}
        body["usage"] = {}
    elif api == "gemini_generate_content":
        parts = [{"text": "That is all."}]
        body = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    else:
        parts = [{"type": "output_text", "text": "That is all."}]
        output = [{"type": "message", "content": parts}]
        body = {"output": output, "status": "completed"}
    return {"status": 200, "content_type": "application/json", "response": body}


def tool_of(name: str, arguments: dict[str, Any], seen: list[Any]) -> Any:
    """A command of that name that takes these arguments."""

    def run(**given: Any) -> str:
        seen.append((name, given))
        return "done"

    kinds = {key: type(value) for key, value in arguments.items()}
    run.__name__ = run.__qualname__ = name
    run.__doc__ = "Do what was recorded."
    run.__annotations__ = {**kinds, "return": str}
    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [inspect.Parameter(key, keyword, annotation=kinds[key]) for key in kinds]
    )
    return command(effects="read")(run)


async def converse(api: str, row: dict[str, Any], player: Player) -> list[str]:
    """Hold a conversation of two turns in a whole session; what was wrong.

    Calls are run by commands of their names, and their results go back by their ids.
    """
    expected = expected_of(api, row)
    seen: list[Any] = []
    tools = {name: tool_of(name, given, seen) for _, name, given in expected.calls}
    turns = [row, closing(api)] if expected.calls else [row]
    player.rows, player.asked = [*turns, *turns], []
    model = WIRES[api]("m", server=player.url, options=QUICK)
    session = Session(
        model=model,
        plugins=list(tools.values()),
        dialect="native",
        journal="memory",
    )
    wrong: list[str] = []
    for turn in (1, 2):
        answer = await session.run("x")
        wrong += [f"turn {turn}: {item}" for item in _unlike(expected, answer)]
    asked = json.dumps(player.asked[-1]) if expected.calls else ""
    missing = [own for own, _, _ in expected.calls if own and own not in asked]
    wrong += [f"the id {own} did not go back" for own in missing]
    called = [(name, given) for _, name, given in expected.calls] * 2
    if seen != called:
        wrong.append(f"ran {seen}, expected {called}")
    await model.close()
    session.close()
    return wrong


def _unlike(expected: Said, answer: Answer) -> Iterator[str]:
    if expected.refused:
        first = " ".join(expected.refused[:60].split("\n")[0].split())
        if answer.outcome != "failed" or first not in answer.error:
            yield f"{answer.outcome} {answer.error!r}"
        return
    if expected.finish == "content_filter" and not expected.text:
        if answer.outcome != "failed" or "held back" not in answer.error:
            yield f"{answer.outcome} {answer.error!r}"
        return
    if not (expected.text.strip() or expected.calls or expected.finish == "length"):
        # A reply without a word, such as a picture, is asked for again.
        if not any("was empty" in item.message for item in answer.problems):
            yield f"{answer.outcome} {answer.text[:200]!r}"
        return
    if expected.finish == "length":
        # Words that were cut off are told as such; a cut call is asked for again.
        if answer.outcome != "failed" and answer.text.strip() != expected.text.strip():
            yield f"{answer.outcome} {answer.text[:200]!r}"
        return
    text = "That is all." if expected.calls else _THOUGHT.sub("", expected.text)
    if answer.text.strip() != text.strip():
        yield f"{answer.outcome} {answer.text[:200]!r} {answer.error}"
    elif answer.usage != expected.usage:
        yield f"usage {answer.usage}, expected {expected.usage}"


async def measure(folder: Path, api: str) -> tuple[Counter[str], list[str]]:
    """Replay all exchanges of one API; counts, and all that was wrong."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    async with playing() as player:
        for row in exchanges(folder, api):
            for kind, play in (("replayed", replay), ("sessions", converse)):
                found = await play(api, row, player)
                counts[kind] += 1
                counts[f"{kind} right"] += not found
                wrong += [f"{row['id']}: {kind}: {item}" for item in found]
    return counts, wrong


def main() -> int:
    folder = data_folder()
    failed = False
    for api in WIRES:
        counts, wrong = asyncio.run(measure(folder, api))
        print(
            f"{api}: {counts['replayed right']} of {counts['replayed']} exchanges read "
            f"as recorded, {counts['sessions right']} of {counts['sessions']} sessions"
        )
        for line in wrong:
            print(f"  {line}")
        failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
