"""How replies are cut into calls: foreign parsers' cases, and random cuts.

    python benchmarks/replies.py [folder with data/] [-v] [--cuts 50000]

A case is read (the calls that its source expects), told (the model hears what was not
read) or silent (neither; what was written is shown as the answer). A cut is a beginning
of a text with the finish reason `stop`; no call may come of it that the whole text does
not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from neuraxis.dialects import Dialect, find_dialect
from neuraxis.messages import Call, Completion, Reply
from neuraxis.specs import CommandSpec, PluginSpec

SHARED = Path(__file__).resolve().parents[2] / "shared"
SUITES = ("vllm_tool_parsers", "llamacpp_chat")


def lines(file: Path) -> list[dict[str, Any]]:
    """The rows of a JSON lines file; none if it is absent."""
    if not file.is_file():
        return []
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def dialect_of(name: str, tools: Iterable[str]) -> Dialect:
    """A dialect that knows tools of these names."""
    commands = tuple(CommandSpec(name=f"c{at}") for at, _ in enumerate(tools))
    names = {tool: ("p", f"c{at}") for at, tool in enumerate(tools)}
    dialect = find_dialect(name)
    plugin = PluginSpec(name="p", commands=commands)
    dialect.prompt([plugin], names)
    dialect.native_tools([plugin], names)
    return dialect


def read(dialect: Dialect, text: str) -> Reply:
    """The reply that a whole text is read as."""
    return dialect.decode(Completion(text=text, finish_reason="stop"), next_id=str)


# --- the cases of other projects ---------------------------------------------------


def _loose(value: Any) -> Any:
    """A value as a schema would see it: a text that is JSON is that JSON."""
    if isinstance(value, dict):
        return {key: _loose(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_loose(item) for item in value]
    if isinstance(value, str):
        try:
            inner = json.loads(value)
        except ValueError:
            return value
        return _loose(inner) if inner != value else value
    return value


def _fits(call: Call, wanted: dict[str, Any]) -> bool:
    if (
        wanted.get("name")
        and call.target.rpartition(".")[2] != wanted["name"].rpartition(".")[2]
    ):
        return False
    got = _loose(call.arguments)
    if set(got) in ({"arguments"}, {"input"}):  # taken apart where the tool is known
        (got,) = got.values()
    if wanted.get("arguments") is not None:
        return got == _loose(wanted["arguments"])
    for path, value in (wanted.get("arguments_at") or {}).items():
        at = got
        for key in re.findall(r"\['([^']+)'\]", path):
            at = at[key]
        if at != _loose(value):
            return False
    return True


def verdict(row: dict[str, Any], reply: Reply) -> str:
    """read, told, silent, or wrong: another call than the expected one."""
    wanted = row.get("expected_calls")
    if reply.errors:
        return "told"
    if wanted is not None:
        half = any(isinstance(call.get("arguments"), str) for call in wanted)
        fits = len(wanted) == len(reply.calls) and all(
            _fits(call, item) for call, item in zip(reply.calls, wanted, strict=True)
        )
        if fits and not half:
            return "read"
        if reply.left and len(reply.calls) < len(wanted):
            return "told"  # in `intents` the first block counts (rule C3)
        return "wrong" if len(reply.calls) >= max(1, len(wanted)) else "silent"
    count = len(reply.calls)
    if row.get("expected_no_crash") or count == row.get("expected_n", -1):
        return "read"
    return "read" if count >= row.get("expected_min_n", 1e9) else "silent"


def is_meant(row: dict[str, Any]) -> bool:
    """Whether the case holds whole calls, as opposed to words or a half call."""
    wanted = row.get("expected_calls")
    if wanted is None:
        return not row.get("expected_no_crash")
    half = any(isinstance(call.get("arguments"), str) for call in wanted)
    return bool(wanted) and not half


def names_in(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Every tool that the cases name."""
    found = {"get_current_weather", "calculate_area", "special_function", "get_weather"}
    for row in rows:
        found |= {
            call["name"] for call in row.get("expected_calls") or () if call.get("name")
        }
    return sorted(found)


def suites(data: Path, name: str, verbose: bool) -> None:
    """What becomes of the cases of each suite in one dialect."""
    for suite in SUITES:
        rows = lines(data / "malformed" / f"{suite}.jsonl")
        dialect = dialect_of(name, names_in(rows))
        counted: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        for row in rows:
            reply = read(dialect, row["input"])
            said = verdict(row, reply)
            counted[said] += 1
            calls[said] += is_meant(row)
            if verbose and said != "read":
                got = [(call.target, call.arguments) for call in reply.calls]
                why = [error.message[40:140] for error in reply.errors]
                print(f"  {said} {row['id']} {row['format']}: {row['input']!r:.150}")
                print(f"      {got!r:.150} {why} {reply.texts!r:.80}")
        print(
            f"{name:8} {suite:18} all {dict(counted)}; with whole calls {dict(calls)}"
        )


# --- random cuts ---------------------------------------------------------------------


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if len(value) > 20 and any(char in value for char in "{[<("):
            yield value
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _texts_in(item)


def _written(calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The same calls in the forms that models use."""
    plain = [{"name": name, "arguments": arguments} for name, arguments in calls]
    python = [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
        for name, given in calls
    ]
    tagged = "\n".join(
        f"<tool_call>\n<function={name}>\n"
        + "".join(f"<parameter={k}>\n{v}\n</parameter>\n" for k, v in given.items())
        + "</function>\n</tool_call>"
        for name, given in calls
    )
    return [
        f"[{', '.join(python)}]",
        "\n".join(python),
        f"Sure.\n```python\n[{', '.join(python)}]\n```",
        json.dumps(plain),
        json.dumps([{name: given} for name, given in calls]),
        "\n".join(f"<tool_call>\n{json.dumps(item)}\n</tool_call>" for item in plain),
        "\n".join(f"```json\n{json.dumps(item)}\n```\nand then" for item in plain),
        tagged,
        "".join(f"{name}\n{json.dumps(given)}\n" for name, given in calls[:1]),
    ]


def raw_texts(data: Path) -> tuple[list[str], list[str]]:
    """Texts that models wrote or could have written, and the tools in them."""
    texts: list[str] = []
    rows = [
        row for suite in SUITES for row in lines(data / "malformed" / f"{suite}.jsonl")
    ]
    texts += [row["input"] for row in rows]
    tools = set(names_in(rows))
    for file in sorted((data / "malformed").glob("json*.jsonl")):
        texts += [row["input"] for row in lines(file) if isinstance(row["input"], str)]
    for file in sorted((data / "recordings").glob("*.jsonl")):
        for row in lines(file):
            texts += _texts_in(row["response"])
    for row in lines(data / "bfcl" / "accepted.jsonl"):
        tools.add(row["name"])
        texts += _written([(row["name"], row["arguments"])])
    for row in lines(data / "bfcl" / "rows.jsonl")[:300]:
        gold = [
            (
                item["name"],
                {k: v[0] for k, v in item["accept"].items() if v and v[0] != ""},
            )
            for item in row["gold"]
            if item.get("accept")
        ]
        tools |= {name for name, _ in gold}
        texts += _written(gold) if gold else []
    return texts, sorted(tools)


def made(reply: Reply) -> list[str]:
    """Calls as texts that can be compared."""
    return [
        json.dumps([call.target, call.arguments], sort_keys=True)
        for call in reply.calls
    ]


def cuts(texts: list[str], dialect: Dialect, count: int, seed: int = 1) -> Counter[str]:
    """Cut texts at random places; count the calls that the whole does not hold."""
    choose = random.Random(seed)
    counted: Counter[str] = Counter()
    whole: dict[str, tuple[list[str], bool]] = {}
    for _ in range(count):
        text = choose.choice(texts)
        end = choose.randrange(1, len(text)) if len(text) > 1 else 1
        reply = read(dialect, text[:end])
        counted["cuts"] += 1
        if not reply.calls:
            counted["told" if reply.errors else "words"] += 1
            continue
        if text not in whole:
            full = read(dialect, text)
            whole[text] = made(full), bool(full.errors)
        held, refused = whole[text]
        extra = [call for call in made(reply) if call not in held]
        if not extra:
            counted["calls that the whole makes"] += 1
        elif refused:
            counted["whole is refused"] += 1
            counted.update(
                {f"refused: {text[:end]!r:.300}\n      | {text[end:]!r:.80}": 1}
            )
        else:
            counted["OTHER CALL"] += 1
            counted.update(
                {f"other: {text[:end]!r:.300}\n      | {text[end:]!r:.80}": 1}
            )
    return counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shared", nargs="?", type=Path, default=SHARED)
    parser.add_argument("-v", action="store_true", dest="verbose")
    parser.add_argument("--cuts", type=int, default=50_000)
    parser.add_argument("--dialects", default="native,intents")
    given = parser.parse_args()
    data = Path(os.environ.get("NEURAXIS_SHARED_DATA", given.shared / "data"))
    for name in given.dialects.split(","):
        suites(data, name, given.verbose)
    texts, tools = raw_texts(data)
    for name in given.dialects.split(","):
        counted = cuts(texts, dialect_of(name, tools), given.cuts)
        shown = {key: n for key, n in counted.items() if ": " not in key}
        print(f"{name:8} {len(texts)} texts: {shown}")
        if given.verbose:
            for key in [key for key in counted if ": " in key][:60]:
                print(f"    {key}")


if __name__ == "__main__":
    main()
