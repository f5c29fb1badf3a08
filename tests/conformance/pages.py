"""The examples of the protocol pages: real exchanges in, the blocks of the pages out.

A page names a block by `<!-- wire NAME -->` in the line before its fence. What stands
in it is written by `PYTHONPATH=tests python -m conformance.pages`, from sessions that
are run here.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.kit import block, folder, message, reply_in, talk
from neuraxis import Options
from neuraxis.dialects import find_dialect
from neuraxis.messages import Call
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.testing import prompt_of

_ROOT = Path(__file__).resolve().parents[2]
PAGES = tuple(
    _ROOT / "docs" / f"{name}.md"
    for name in ("protocol-v1", "protocol-v2", "tool-intents", "native")
)
_BLOCK = re.compile(
    r"(?P<head><!-- wire (?P<name>[\w.-]+) -->\n(?P<fence>`{3,})[a-z]*\n)"
    r"(?P<body>.*?)(?P<end>^(?P=fence)$)",
    re.MULTILINE | re.DOTALL,
)

V1 = """\
name: weather
info:
  title: Weather
  description: Says how warm it is.
commands:
  - command_name: today
    description: How warm it is in a city.
    parameters:
      - name: city
        type: string
        description: the city's English name
        required: true
        example: Lyon
      - name: unit
        type: string
        description: the unit of the answer
        enum: [celsius, fahrenheit]
        required: false
    response:
      - name: degrees
        type: int
        description: how warm it is
        optional: false
  - command_name: map
    description: A map of a city.
    parameters:
      - name: city
        type: string
        description: the city's English name
        required: true
  - command_name: measure
    description: How large a map is.
    parameters:
      - name: map
        type: weather.Map
        description: a map
        required: true
        asset_ref_acceptable: true
"""
V2 = """\
name: weather
info:
  title: Weather
  description: Says how warm it is.
commands:
  - command_name: today
    description: How warm it is in a city.
    parameter:
      type:
        city:
          type: string
          description: the city's English name
          example: Lyon
        unit:
          type: string
          description: the unit of the answer
          enum: [celsius, fahrenheit]
          required: false
    response:
      type:
        degrees:
          type: int
          description: how warm it is
  - command_name: map
    description: A map of a city.
    parameter:
      type:
        city: {type: string, description: the city's English name}
  - command_name: measure
    description: How large a map is.
    parameter:
      type:
        map:
          type: weather.Map
          description: a map
          asset_ref_acceptable: true
"""
CODE = """
class Map:
    def __init__(self, city):
        self.city = city

    @property
    def size(self):
        return (640, 480)

    mode = "RGB"


Map.__module__, Map.__qualname__ = "weather", "Map"


def today(city, unit="celsius"):
    return {"degrees": 21 if unit == "celsius" else 70}


def map(city):
    return {"map": Map(city)}


def measure(map):
    return {"width": map.size[0]}
"""
TOOLS = {("weather", name): name for name in ("today", "map", "measure")}


def blocks() -> dict[str, str]:
    """Every block by its name."""
    found: dict[str, str] = {"v1.manifest": V1, "v2.manifest": V2}
    with tempfile.TemporaryDirectory() as base:
        plugin = folder(Path(base), "weather", V2, CODE)
        found |= _envelope("v1", plugin)
        found |= _envelope("v2", plugin)
        found |= _intents(plugin)
        found |= _native(plugin)
    return {name: text.rstrip("\n") + "\n" for name, text in found.items()}


def _envelope(generation: str, plugin: Path) -> dict[str, str]:
    dialect, v1 = f"envelope_{generation}", generation == "v1"

    def call(command: str, param: Any) -> dict[str, Any]:
        return message("weather", command, param, v1=v1)

    calls: dict[str, Any] = {
        "call": call("today", {"city": "Lyon"}),
        "calls": [
            call("today", {"city": "Lyon"}),
            call("map", {"city": "Turin"}),
        ],
        "wrong": call("today", {"town": "Lyon"}),
        "unknown": {
            **call("today", {}),
            "receiver": {"role": "plugin", "name": "wether"},
        },
        "map": call("map", {"city": "Lyon"}),
        "reference": call("measure", {"map": "asset://a1/content/response/map"}),
        "object": call(
            "measure",
            {"map": {"asset_id": "a1", "field_path": ["content", "response", "map"]}},
        ),
        "user": {"receiver": {"role": "user"}, "content": "It is 21 degrees in Lyon."},
    }
    found = {f"{generation}.{name}": _indented(value) for name, value in calls.items()}
    spec, _ = parse_manifest(V1 if v1 else V2)
    template = plugin / "plugins-only.md"
    template.write_text("{plugins}", encoding="utf-8")
    found[f"{generation}.shown"] = find_dialect(dialect, template=template).prompt(
        [spec], {}
    )

    def told(*names: str, **options: Any) -> list[str]:
        said = talk([*(json.dumps(calls[name]) for name in names), "ok"], [plugin],
                    dialect, **options)  # fmt: skip
        assert said.answer.text == "ok"
        return said.told

    found[f"{generation}.request"] = find_dialect(dialect).request(
        "Is it warm in Lyon?"
    )
    (found[f"{generation}.answer"],) = told("call", options=Options(strict=True))
    (found[f"{generation}.answers"],) = told("calls")
    (found[f"{generation}.unknown-answer"],) = told("unknown")
    (found[f"{generation}.wrong-answer"],) = told("wrong")
    said = talk(
        [json.dumps(calls[name]) for name in ("map", "reference")] + ["ok"],
        [plugin],
        dialect,
        options=Options(strict=True),
    )
    found[f"{generation}.asset"], found[f"{generation}.reference-answer"] = said.told
    both = talk([json.dumps(calls[name]) for name in ("map", "object")] + ["ok"],
                [plugin], dialect, options=Options(strict=True))  # fmt: skip
    assert both.told == said.told
    found[f"{generation}.meta"] = said.model.prompts[1].messages[-1].content.partition(
        "```json\n"
    )[2].rpartition("\n```")[0]  # fmt: skip
    return found


def _intents(plugin: Path) -> dict[str, str]:
    chain = (
        {"tool": "map", "city": "Lyon"},
        {"tool": "measure", "map": "{{ previous_result['map'] }}"},
    )
    replies = {
        "call": _block({"tool": "today", "city": "Lyon"}),
        "chain": _block(*chain),
        "wrong": _block({"tool": "today", "town": "Lyon"}),
    }
    found = {f"intents.{name}": text for name, text in replies.items()}
    prompt = prompt_of(plugin, "intents")
    section = re.search(r"^## today\n.*?(?=^## )", prompt, re.MULTILINE | re.DOTALL)
    assert section is not None
    found["intents.shown"] = section[0].strip()
    found["intents.request"] = find_dialect("intents").request("Is it warm in Lyon?")
    for name, reply in replies.items():
        said = talk([reply, "ok"], [plugin], "intents")
        (found[f"intents.{name}-answer"],) = said.told
    return found


def _block(*intents: dict[str, Any]) -> str:
    start, body, end = block(*intents).split("\n")
    return f"{start}\n{_indented(json.loads(body))}\n{end}"


def _native(plugin: Path) -> dict[str, str]:
    call = Call(id="a1", plugin="weather", command="today", arguments={"city": "Lyon"})
    reply = reply_in("native", [call], TOOLS)
    said = talk([reply, "ok"], [plugin], "native")
    tools = said.model.prompts[0].native_tools
    answer = said.model.prompts[1].messages[-1]
    wire = {
        "role": answer.role,
        "tool_call_id": answer.tool_call_id,
        "content": answer.content,
    }
    made = [
        {
            "id": item["id"],
            "type": "function",
            "function": {"name": item["name"], "arguments": item["arguments"]},
        }
        for item in reply["tool_calls"]
    ]
    return {
        "native.tool": _indented(tools[0]),
        "native.reference": _indented(tools[2]["function"]["parameters"]),
        "native.call": _indented({"role": "assistant", "tool_calls": made}),
        "native.answer": _indented(wire),
    }


def _indented(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def fill(text: str, known: dict[str, str]) -> str:
    """A page with its blocks as they are now."""
    return _BLOCK.sub(
        lambda found: f"{found['head']}{known[found['name']]}{found['end']}", text
    )


def used(text: str) -> Iterator[str]:
    """The names of a page's blocks."""
    for found in _BLOCK.finditer(text):
        yield found["name"]


if __name__ == "__main__":
    now = blocks()
    for page in PAGES:
        page.write_text(fill(page.read_text(encoding="utf-8"), now), encoding="utf-8")
