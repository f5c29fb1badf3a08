"""What a session would run of texts that models wrote when BFCL asked them.

    python benchmarks/raw_texts.py RESULTS DATA [--half a] [--models] [-v 5]

RESULTS is `2024-08-11/result` of github.com/HuanzhiMao/BFCL-Result: a folder a model,
whose texts were kept unread. DATA is `berkeley-function-call-leaderboard/data` of
github.com/ShishirPatil/gorilla at that day (commit de8307b4): questions and possible
answers. Right: the calls that would run are a possible answer (BFCL's AST check; to a
question that no tool answers: none runs). Told: nothing runs, and the model hears why.
Silent: a call is written, nothing runs, nobody hears. Words: no call is written. Other:
other calls would run; `misread` where the text does not hold a value of theirs.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from raw_replies import Said, checked, dialect_of

from neuraxis.messages import Completion
from neuraxis.schema.schema import Schema
from neuraxis.specs import CommandSpec

ASKED = ("simple", "multiple_function", "parallel_function")
CATEGORIES = (*ASKED, "parallel_multiple_function", "relevance")
TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def json_schema(node: Any, *, whole: bool = False) -> Any:
    """BFCL's description of a parameter as JSON Schema."""
    made = {key: node[key] for key in ("description", "enum") if key in node}
    if node.get("type", "any") != "any":
        made["type"] = TYPES.get(node["type"], node["type"])
    if "items" in node:
        made["items"] = json_schema(node["items"])
    if "properties" in node:
        fields = node["properties"].items()
        made["properties"] = {key: json_schema(item) for key, item in fields}
        made["required"] = node.get("required", [])
    return {**made, "additionalProperties": False} if whole else made


# --- BFCL's AST check --------------------------------------------------------------


def plain(value: Any) -> Any:
    """A text as BFCL compares it."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"')


def among(value: Any, accepted: Any) -> bool:
    """Whether a value is one of the accepted ones."""
    if isinstance(accepted, dict):
        return of_dict(value, accepted)
    return any(equal(value, item) for item in accepted)


def equal(value: Any, item: Any) -> bool:
    if isinstance(item, dict):
        return of_dict(value, item)
    if isinstance(item, list) and isinstance(value, list):
        pairs = zip(value, item, strict=False)
        return len(item) == len(value) and all(equal(*pair) for pair in pairs)
    is_bool = isinstance(value, bool), isinstance(item, bool)
    return is_bool[0] == is_bool[1] and plain(value) == plain(item)


def of_dict(value: Any, accepted: dict[str, Any]) -> bool:
    if not isinstance(value, dict) or set(value) - set(accepted):
        return False
    return all(
        among(value[key], one) if key in value else "" in one
        for key, one in accepted.items()
    )


def possible(calls: Said, answers: list[tuple[str, dict[str, Any]]]) -> bool:
    """Whether the calls are the answers, in any order."""
    left = list(calls)
    for name, accepted in answers:
        fits = (c for c in left if c[0] == name and of_dict(c[1], accepted))
        if (call := next(fits, None)) is None:
            return False
        left.remove(call)
    return not left


# --- a short parser to compare with ------------------------------------------------


def short_parser(text: str) -> Said:
    """The calls of `[f(a=1)]`, else of JSON; nothing where neither can be read."""
    begin, end = text.find("["), text.rfind("]") + 1
    for part in (text[begin:end] if begin >= 0 else "", text.strip().strip("`;")):
        try:
            tree = ast.parse(part.strip(), mode="eval").body
            nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple) else [tree]
            if nodes and all(isinstance(node, ast.Call) for node in nodes):
                return [
                    (
                        ast.unparse(node.func),
                        json.loads(
                            json.dumps(
                                {
                                    k.arg: ast.literal_eval(k.value)
                                    for k in node.keywords
                                }
                            )
                        ),
                    )
                    for node in nodes
                ]
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            pass
    found: Said = []
    at = 0
    while (
        at := min((i for c in "[{" if (i := text.find(c, at)) >= 0), default=-1)
    ) >= 0:
        try:
            value, at = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        value = value.get("tool_calls", value) if isinstance(value, dict) else value
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and isinstance(item.get("name"), str):
                given = item.get("arguments", item.get("parameters"))
                if isinstance(given, dict):
                    found.append((item["name"], given))
    return found


# --- the texts ---------------------------------------------------------------------


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]


def questions(data: Path) -> dict[str, tuple[list[Any], list[Any]]]:
    """The tools and possible answers of each question."""
    asked: dict[str, tuple[list[Any], list[Any]]] = {}
    for category in CATEGORIES:
        name = f"gorilla_openfunctions_v1_test_{category}.json"
        answers = data / "possible_answer" / name
        gold = {
            row["id"]: row["ground_truth"]
            for row in (lines(answers) if answers.is_file() else [])
        }
        for row in lines(data / name):
            tools = row["function"]
            tools = tools if isinstance(tools, list) else [tools]
            names = [tool["name"] for tool in tools]
            answer = [
                (key if key in names else re.sub(r"[_ ]\d+$", "", key), accepted)
                for key, accepted in gold.get(row["id"], {}).items()
            ]
            asked[row["id"]] = (tools, answer)
    return asked


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """The texts of a model with their questions' ids; none of structured calls."""
    for category in CATEGORIES:
        rows = lines(folder / f"gorilla_openfunctions_v1_test_{category}_result.json")
        if sum(isinstance(row["result"], str) for row in rows) * 2 < len(rows):
            return
        yield from ((row["id"], row["result"]) for row in rows)


def holds(text: str, value: Any) -> bool:
    """Whether each scalar of a value stands in the text."""
    if isinstance(value, dict | list | tuple):
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return all(holds(text, item) for item in items)
    if isinstance(value, bool) or value is None:
        return True
    letters = re.sub(r"\W|_", "", str(value).removesuffix(".0"))[:40]
    return letters in re.sub(r"\W|_", "", text)


def judge(
    text: str, made: Said | None, is_told: bool, answer: list[Any], names: list[str]
) -> str:
    if made:
        if answer and possible(made, answer):
            return "right"
        where = "other" if answer else "a call of words"
        return where if holds(text, [[n, a] for n, a in made]) else f"{where}, misread"
    if is_told:
        return "told" if answer else "told of no call"
    if not answer:
        return "right: no call"
    bare = text.replace("\\", "")
    written = any(re.search(rf"{re.escape(n)}[\"'`]?\s*[(,\n]", bare) for n in names)
    return "silent" if written else "words"


def run(
    asked: dict[str, Any], folder: Path, name: str, verbose: int
) -> tuple[Counter[str], Counter[str]]:
    """The verdicts on a model's texts, and those on the short parser."""
    counted: Counter[str] = Counter()
    short: Counter[str] = Counter()
    rows = list(texts(folder))
    dotted = [
        n for _, (tools, _) in asked.items() for t in tools if "." in (n := t["name"])
    ]
    whole = "\n".join(text for _, text in rows)
    # most servers take no dot in a name, so some models were shown another one
    plainly = sum(n.replace(".", "_") in whole for n in dotted)
    shown = "_" if plainly > sum(n in whole for n in dotted) else "."
    for key, text in rows:
        tools, answer = asked[key]
        commands = {
            (to := tool["name"].replace(".", shown)): CommandSpec(
                name=to,
                description=tool["description"],
                parameters=json_schema(tool["parameters"], whole=True),
            )
            for tool in tools
        }
        answer = [(to.replace(".", shown), accepted) for to, accepted in answer]
        schemas: dict[str, Schema] = {}
        reply = dialect_of(name, commands).decode(
            Completion(text=text, finish_reason="stop"), next_id=str
        )
        calls = [(call.target, call.arguments) for call in reply.calls]
        made = checked(calls, commands, schemas)
        is_told = bool(reply.errors) or made is None
        said = judge(text, made, is_told, answer, list(commands))
        counted[said] += 1
        read = checked(short_parser(text), commands, schemas)
        other = judge(text, read, read is None, answer, list(commands))
        short[other] += 1
        if verbose and (said[:5] != "right") and counted[said] <= verbose:
            print(f"[{said}; short {other}] {folder.name} {key} {text!r:.600}")
            why = [error.message for error in reply.errors]
            print(
                f"    {calls!r:.300} {why!r:.300} {reply.left} wanted {answer!r:.200}"
            )
    return counted, short


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-v", dest="verbose", type=int, default=0)
    parser.add_argument("--half", choices="ab", help="half of the models, by name")
    parser.add_argument("--models", action="store_true", help="figures of each model")
    parser.add_argument("--only", default="", help="one model")
    parser.add_argument("--dialects", default="native,intents")
    given = parser.parse_args()
    asked = questions(given.data)
    for name in given.dialects.split(","):
        total: Counter[str] = Counter()
        shorts: Counter[str] = Counter()
        for folder in sorted(given.results.iterdir()):
            half = "ab"[zlib.crc32(folder.name.encode()) % 2]
            if (given.half or half) != half or given.only not in folder.name:
                continue
            counted, short = run(asked, folder, name, given.verbose)
            total += counted
            shorts += short
            if given.models and counted:
                print(f"{name:8} {folder.name:40} {dict(sorted(counted.items()))}")
        print(f"{name:8} {total.total()} texts: {dict(sorted(total.items()))}")
        print(f"{'short':8} {shorts.total()} texts: {dict(sorted(shorts.items()))}")


if __name__ == "__main__":
    main()
