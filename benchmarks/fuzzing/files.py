"""Targets that read files and answers: manifests, plans, streams, bundles, URLs."""

from __future__ import annotations

import json
import random
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fuzzing import Target, checks
from fuzzing.checks import must, same
from fuzzing.inputs import as_bytes, as_text, own_files, shared_texts
from fuzzing.words import (
    BUNDLE_WORDS,
    JSON_WORDS,
    STREAM_WORDS,
    URL_WORDS,
    YAML_WORDS,
)
from neuraxis.assets import serialize
from neuraxis.dialects import DIALECTS, find_dialect
from neuraxis.errors import ConfigError, ManifestError, ModelBroken, StorageError
from neuraxis.models.accumulate import Joiner
from neuraxis.models.http.answers import ServerError, body_message
from neuraxis.models.http.sse import Event, EventReader, EventTooLarge
from neuraxis.models.openai.stream import Frames
from neuraxis.planning.load import read_plan
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.sandbox.http.urls import (
    MOST_CHARACTERS,
    RequestRefused,
    Url,
    follow,
    parse,
)
from neuraxis.schema.schema import Schema
from neuraxis.specs import PluginSpec

# --- manifests and saved plans --------------------------------------------------


def read_manifest(data: bytes) -> None:
    """A manifest is a spec that can be used and written, or a list of mistakes."""
    text = as_text(data)
    spec = checks.timed(len(text), lambda: _manifest(text), 1.0)
    if spec is None:
        return
    must(spec.name, "a plugin without a name")
    names = [command.name for command in spec.commands]
    must(len(set(names)) == len(names), "two commands of one name")
    for command in spec.commands:
        for schema in (command.parameters, command.response):
            if schema is not None:
                defect = Schema(schema).defect
                must(defect is None, f"an unusable schema: {defect}")
    tools = {command.name: (spec.name, command.name) for command in spec.commands}
    if spec.listed:
        for name in DIALECTS:
            dialect = find_dialect(name)
            dialect.prompt((spec,), tools)
            dialect.native_tools((spec,), tools)
    if not checks.is_whole(text):
        return
    again = _manifest(to_yaml(spec), "written again: ")
    must(again is not None, "the written manifest is refused")
    for one, other in zip(spec.commands, again.commands if again else (), strict=True):
        must(same(one.name, other.name), "written again, a command has another name")
        must(
            one.parameters == other.parameters and one.response == other.response,
            "written again, a schema differs",
        )


def _manifest(text: str, what: str = "") -> PluginSpec | None:
    try:
        spec, problems = parse_manifest(text)
    except ManifestError as error:
        must(error.problems, "refused without a mistake")
        must(any(item.severity == "error" for item in error.problems), "no error")
        for problem in error.problems:
            must(type(problem.line) is int and problem.line >= 0, "an odd line")
            must(problem.message.strip(), "a mistake without a sentence")
        if what:
            raise checks.Finding(f"{what}{error.problems[0].message[:60]}") from error
        return None
    must(all(item.severity == "warning" for item in problems), "an error was let by")
    return spec


def read_saved_plan(data: bytes) -> None:
    """A saved plan is calls, or one sentence for each mistake."""
    text = as_text(data)

    def work() -> Any:
        try:
            return read_plan(text)
        except ConfigError as error:
            must(str(error).strip(), "refused without a sentence")
            return None

    plan = checks.timed(len(text), work, 1.0)
    if plan is None:
        return
    for call in plan.calls:
        must(type(call.command) is str and call.command, "a step without a tool")
        must(checks.can_be_stored(call.arguments), "arguments that are no JSON")
    for parameter in plan.parameters:
        must(Schema(parameter.schema).defect is None, "a parameter of no type")
    assumed = plan.values([], samples=True)
    must(assumed.keys() == {item.name for item in plan.parameters}, "one has no value")


_MANIFEST = """
info: {title: web, description: d}
as_plugin: true
config: {id: default, key: x}
commands:
  - name: GOOGLE
    description: search
    effects: {kind: read, open_world: true}
    parameter:
      type:
        _type_ref: q
        query: {type: string, description: the words, example: news}
        more: {type: 'List[q]', required: false}
        size: {type: int, default: 3, minimum: 1, enum: [1, 3]}
    response:
      type: {urls: {type: 'List[string]'}}
    examples: [{q: news, a: {query: news}}]
"""
_PLAN = """
version: 1
description: d
parameters: {city: {type: string, default: Lyon, enum: [Lyon]}}
on_error: retry
steps:
  - tool: population
    arguments: {city: "{{ params['city'] }}"}
    as: here
  - {tool: a.note, for_each: "{{ here['names'] }}", max_items: 5, arguments: {t: 1}}
"""


def _manifests() -> list[bytes]:
    own = own_files("src/neuraxis/builtin/*/config.yaml")
    return [_MANIFEST.encode(), *own, *shared_texts("concopilot/configs/*.yaml", 40)]


# --- streams of servers ---------------------------------------------------------


def read_stream(data: bytes) -> None:
    """Bytes in any portions give the same events, and only a `ServerError`."""
    whole = _events(data, [data])
    dice = random.Random(zlib.crc32(data))
    portions: list[bytes] = []
    at = 0
    while at < len(data):
        width = dice.choice((1, 2, 5, 100))
        portions.append(data[at : at + width])
        at += width
    must(same(_events(data, portions), whole), "other portions give other events")
    frames, joiner = Frames(), Joiner()
    try:
        for event in whole:
            for chunk in frames.event(event):
                _check_chunk(chunk)
                joiner.add(chunk)
        last = frames.finish(whole=len(data) % 2 == 0)
        _check_chunk(last)
        joiner.add(last)
        joiner.completion("m")
    except (ServerError, ModelBroken) as error:
        must(str(error).strip(), "an error without a sentence")
    body_message(data, "application/json")


def _events(data: bytes, portions: list[bytes]) -> list[Event]:
    def work() -> list[Event]:
        reader = EventReader()
        found: list[Event] = []
        try:
            for portion in portions:
                found += reader.feed(portion)
            return found + reader.finish()
        except EventTooLarge:
            return found

    return checks.timed(len(data), work)


def _check_chunk(chunk: Any) -> None:
    must(checks.is_whole(chunk.text + chunk.reasoning), "half a character in a chunk")
    for delta in chunk.tool_calls:
        must(type(delta.index) is int, f"an odd index: {delta.index!r}")
        must(checks.is_whole(delta.arguments), "half a character in arguments")
        must(checks.is_whole(f"{delta.id}{delta.name}"), "half a character in a name")


_STREAM = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":'
    b'{"name":"f","arguments":"{\\"a\\":"}}]}}]}\n\ndata: {"choices":[{"delta":'
    b'{"tool_calls":[{"index":0,"function":{"arguments":" 1}"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":'
    b'{"prompt_tokens":5,"completion_tokens":2}}\n\ndata: [DONE]\n\n',
    b'event: error\r\ndata: {"error": {"message": "no", "code": 429}}\r\n\r\n',
    b'data: {"choices":[{"message":{"content":[{"text":"a"},{"thinking":"b"}]},'
    b'"finish_reason":"stop"}]}\n',
    b"\xef\xbb\xbf: hi\n\ndata: {\ndata: }\n\n",
)


# --- bundles --------------------------------------------------------------------

_FOLDER = tempfile.TemporaryDirectory(prefix="neuraxis-fuzz-")
_SPLIT = b"\0\0body\0\0"


def read_bundle(data: bytes) -> None:
    """A file is the value that was saved, or a `StorageError`.

    The input is the header as JSON text, then the parts: a whole file is made of it.
    """
    head, _, body = data.partition(_SPLIT)
    if not data.startswith(serialize.MAGIC):
        start = -(-(16 + len(head)) // serialize.ALIGN) * serialize.ALIGN
        data = struct.pack("<8sQ", serialize.MAGIC, len(head)) + head
        data += b"\0" * (start - len(data)) + body
    path = Path(_FOLDER.name) / "asset"
    path.write_bytes(data)

    def work() -> Any:
        try:
            return serialize.load(path)
        except StorageError as error:
            must(str(error).strip(), "refused without a sentence")
            return None

    checks.timed(len(data), work, 1.0)


def _bundles() -> list[bytes]:
    import numpy
    import pyarrow

    table = pyarrow.table({"a": [1, 2], "b": ["x", None]})
    made: list[bytes] = []
    values: list[Any] = [
        {"a": [1, None, ("t", 2.5)], "long": "é" * 2_000, "raw": b"\0\1"},
        numpy.arange(6, dtype="<i4").reshape(2, 3),
        numpy.array(["2024-01-01"], dtype="M8[D]"),
        [table, {"t": table.slice(1)}],
        [float("nan"), __import__("decimal").Decimal("1.5")],
    ]
    try:
        from PIL import Image

        values.append(Image.new("RGB", (3, 2)))
    except ImportError:
        pass
    for index, value in enumerate(values):
        path = Path(_FOLDER.name) / f"seed{index}"
        serialize.save(value, path)
        data = path.read_bytes()
        path.unlink()
        (length,) = struct.unpack_from("<Q", data, 8)
        start = -(-(16 + length) // serialize.ALIGN) * serialize.ALIGN
        made += [data, data[16 : 16 + length] + _SPLIT + data[start:]]
    return made


# --- URLs -----------------------------------------------------------------------

_ALLOWED = ("inner", "10.0.0.1:9000", "[::1]", "localhost:3000")


def read_url(data: bytes) -> None:
    """A URL is refused, or every program reads it alike; so for each redirect."""
    text, _, location = as_text(data).partition("\n")
    found = _parsed(text)
    for url in found:
        _check_url(url)
        if not location:
            continue
        try:
            led = follow(url, location, _ALLOWED)
        except RequestRefused:
            continue
        _check_url(led)
        if not location.startswith("//") and "://" not in location:
            must(led.host == url.host, "a path leads to another host")


def _parsed(text: str) -> tuple[Url, ...]:
    def work() -> tuple[Url, ...]:
        try:
            return parse(text, _ALLOWED)
        except RequestRefused as error:
            must(str(error).strip(), "refused without a sentence")
            return ()

    return checks.timed(len(text), work)


def _check_url(url: Url) -> None:
    written = str(url)
    must(written.isascii() and written.isprintable(), "a URL that is no plain text")
    must(" " not in written, "a URL with a blank")
    must(url.target.startswith("/"), "a target without a slash")
    must(1 <= url.port <= 65535, "an odd port")
    must("@" not in url.authority and "\\" not in written, "a second host")
    read = urlsplit(written)
    must(read.hostname == url.host, f"read elsewhere as {read.hostname}")
    must(
        (read.port or (443 if url.scheme == "https" else 80)) == url.port, "other port"
    )
    if len(written) > MOST_CHARACTERS:
        return  # percent-encoding made it longer
    try:
        again = parse(written, _ALLOWED)
    except RequestRefused as error:
        raise checks.Finding(f"a written URL is refused: {error}") from error
    must(len(again) == 1 and same(again[0], url), "a written URL is read as another")


_URLS = (
    "https://example.com/a/b?q=1&r=%20#f\n/c?d",
    "http://10.0.0.1:9000/\n//evil.com/x",
    "http://[::1]/\nhttp://example.com",
    "example.com/path\n../up",
    "http://bücher.example/ü?ä=ö\n?only=query",
    "localhost:3000/a\nhttp:b",
)

TARGETS = (
    Target(
        name="manifest",
        run=read_manifest,
        kind="text",
        words=YAML_WORDS,
        seeds=_manifests,
    ),
    Target(
        name="saved_plan",
        run=read_saved_plan,
        kind="text",
        words=(*YAML_WORDS, *JSON_WORDS[:40]),
        seeds=lambda: [
            _PLAN.encode(),
            json.dumps({"version": 1, "steps": [{"tool": "a"}]}).encode(),
        ],
    ),
    Target(
        name="stream",
        run=read_stream,
        kind="text",
        words=STREAM_WORDS,
        seeds=lambda: list(_STREAM),
    ),
    Target(
        name="bundle",
        run=read_bundle,
        kind="text",
        words=BUNDLE_WORDS,
        seeds=_bundles,
    ),
    Target(
        name="url",
        run=read_url,
        kind="text",
        words=URL_WORDS,
        seeds=lambda: [as_bytes(url) for url in _URLS],
    ),
)
