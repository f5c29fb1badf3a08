"""Write docs/api.md: what `neuraxis` exports, from its docstrings.

python docs/make_api.py
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

import neuraxis
from neuraxis import events

HERE = Path(__file__).resolve().parent
_HEAD = """# The API

Everything that you can import with `from neuraxis import …`, generated from the
docstrings by `python docs/make_api.py`. For explanations and examples see
[sessions.md](sessions.md), [plugins.md](plugins.md) and [long-runs.md](long-runs.md).
The [events](#events) are at the end.
"""
_EVENTS = """
## Events

What a run reports ([sessions.md](sessions.md#events)); import them from
`neuraxis.events`.
"""


_ATTRIBUTES = {
    "Session": {
        "id": "the session's id",
        "history": "the messages of the conversation, as the next prompt has them",
        "assets": "the stored objects: `assets.ids`, and `assets.root(id)`",
        "journal": "the journal: `journal.read(session.id)` yields its entries",
        "ids": "ids of calls: `ids.new()` returns a free one",
        "workspace": "the folder that commands write to",
    }
}
"""What an object has beside what its class declares."""
_NOT_MADE = ("Run",)
"""Classes that no program makes: `session.run` returns one."""
_MORE = """
## Further objects

What the objects above contain, and what programs import from elsewhere.
"""
_TESTING = "`from neuraxis.testing import {}`"
_MESSAGES = "`from neuraxis.messages import {}`"
_ERRORS = "`from neuraxis.errors import {}`"
_FURTHER = {
    "StoredAsset": ("session.answer", "an item of `answer.assets`"),
    "Usage": ("messages", f"`answer.usage`; {_MESSAGES}"),
    "Plan": ("planning.plan", "an item of `answer.plans`; `session.check` returns one"),
    "Problem": ("messages", "an item of `CallError.problems`"),
    "Undone": ("sandbox.files.history", "what `session.undo` returns"),
    "SessionInfo": ("journal", "an item of what `list_sessions` returns"),
    "Done": ("session.batch", "what `run_many` yields"),
    "Decision": ("policy.decision", "what `Policy.decide` returns"),
    "Settings": ("settings", "`from neuraxis.settings import {}`"),
    "open_journal": ("journal", "`from neuraxis.journal import {}`"),
    "Journal": ("journal", "`from neuraxis.journal import {}`"),
    "Entry": ("journal", "an item of what `Journal.read` returns"),
    "ManifestError": ("errors", _ERRORS),
    "ManifestProblem": ("errors", "an item of `ManifestError.problems`"),
    "MissingExtra": ("errors", _ERRORS),
    "Model": ("models", "`from neuraxis.models import {}`"),
    "Prompt": ("messages", _MESSAGES),
    "Message": ("messages", _MESSAGES),
    "Part": ("messages", "an item of `Message.parts`"),
    "Chunk": ("messages", _MESSAGES),
    "ToolCallDelta": ("messages", _MESSAGES),
    "ModelUnavailable": ("errors", _ERRORS),
    "ModelRefused": ("errors", _ERRORS),
    "ModelTimeout": ("errors", _ERRORS),
    "ModelBroken": ("errors", _ERRORS),
    "ScriptedModel": ("models.scripted", _TESTING),
    "ScriptedReply": ("models.scripted", _TESTING),
    "call": ("testing", _TESTING),
    "check_plugin": ("testing", _TESTING),
    "prompt_of": ("testing", _TESTING),
    "golden": ("testing", _TESTING),
    "round_trip": ("testing", _TESTING),
}
"""Name: its module, and where a program meets it."""
_RULES = re.compile(r" \((?:(?:rules?|decision) )?[A-Z]?\d+(?:, [A-Z]\d+)*\)")
"""Numbers of rules.md and ARCHITECTURE.md, which are for those who change the code."""


def page() -> str:
    """Return the page."""
    logging.getLogger("griffe").setLevel(logging.ERROR)
    source = Path(neuraxis.__file__).resolve().parents[1]
    package = griffe.load("neuraxis", search_paths=[source], docstring_parser="google")
    lines = [_HEAD]
    for name in neuraxis.__all__:
        found: Any = package[name]
        if found.is_alias:
            found = found.final_target
        if found.is_class:
            lines += _class(found, name)
        elif found.is_function:
            lines += _function(found, "##")
        else:
            lines += [f"\n## {name}\n\n`{found.value}`\n", *_text(found)]
    lines.append(_MORE)
    for name, (module, where) in _FURTHER.items():
        found = package[f"{module}.{name}"]
        made = _class(found, name, "###") if found.is_class else _function(found, "###")
        title, *rest = made
        where = where.format(name)
        lines += [title, f"{where[0].upper()}{where[1:]}.\n", *rest]
    lines.append(_EVENTS)
    for name in (made.__name__ for made in events.NAMES.values()):
        lines += _class(package["events"][name], name, "###")
    text = _RULES.sub("", "\n".join(lines))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _class(found: Any, name: str, level: str = "##") -> Iterator[str]:
    names = [str(base).partition("[")[0] for base in found.bases]
    is_data = "Struct" in names
    bases = ", ".join(one for one in names if one not in ("Generic", "Protocol"))
    yield f"\n{level} {name}\n"
    if bases and not is_data:
        yield f"Derived from `{bases}`.\n"
    if "__init__" in found.members and name not in _NOT_MADE:
        yield _fenced(_signature(found.members["__init__"], name))
    yield from _text(found)
    if name in _ATTRIBUTES:
        yield "Attributes:\n"
        yield from (f"- `{key}`: {said}" for key, said in _ATTRIBUTES[name].items())
    members = [one for one in found.members.values() if one.name[0] != "_"]
    for one in members:
        is_field = one.is_attribute and "property" not in one.labels
        if is_field and (is_data or one.docstring):
            yield _field(one, is_data)
    for one in members:
        if one.is_attribute and "property" in one.labels:
            yield f"\n{level}# {name}.{one.name}\n\n`{one.annotation}`\n"
            yield from _text(one)
        elif one.is_function:
            yield from _function(one, f"{level}#", f"{name}.")


def _field(found: Any, is_data: bool) -> str:
    default = str(found.value or "") if is_data else ""
    default = "…" if default.startswith(("field(", "cast(", "_")) else default
    typed = f": {found.annotation}" if found.annotation else ""
    shown = f"{found.name}{typed}" + (f" = {default}" if default else "")
    said = f": {_one_line(found.docstring.value)}" if found.docstring else ""
    return f"- `{shown}`{said}"


def _function(found: Any, level: str, owner: str = "") -> Iterator[str]:
    yield f"\n{level} {owner}{found.name}\n"
    yield _fenced(_signature(found, found.name))
    yield from _text(found)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


def _signature(found: Any, name: str) -> str:
    """Return the signature on one line, or a parameter a line."""
    given: list[str] = []
    named_only, before = False, ""
    for one in found.parameters:
        if one.name in ("self", "cls"):
            continue
        kind = one.kind.value
        if kind == "keyword-only" and not named_only:
            named_only = True
            given.append("*")
        if kind != "positional-only" and before == "positional-only":
            given.append("/")
        before = kind
        named_only |= kind == "variadic positional"
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        typed = f": {one.annotation}" if one.annotation else ""
        has_default = one.default is not None and not stars
        default = f" = {one.default}" if has_default else ""
        given.append(f"{stars}{one.name}{typed}{default}")
    back = f" -> {found.returns}" if found.returns and name == found.name else ""
    back = re.sub(r"\bpast\.\w+\.", "", back)  # a room of ours, loaded at first use
    asynchronous = "async " if "async" in found.labels else ""
    short = f"{asynchronous}{name}({', '.join(given)}){back}"
    if len(short) <= 80:
        return short
    inside = "".join(f"    {one},\n" for one in given)
    return f"{asynchronous}{name}(\n{inside}){back}"


def _text(found: Any) -> Iterator[str]:
    if found.docstring is None:
        return
    for section in found.docstring.parse("google"):
        if section.kind.value == "text":
            yield f"{section.value}\n"
        elif section.kind.value in ("parameters", "attributes", "raises"):
            title = section.kind.value.capitalize()
            yield f"{title}:\n"
            for item in section.value:
                name = getattr(item, "name", None) or item.annotation
                yield f"- `{name}`: {_one_line(item.description)}"
            yield ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    (HERE / "api.md").write_text(page(), encoding="utf-8")
