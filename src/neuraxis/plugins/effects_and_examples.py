"""Parse the Neuraxis extensions of a plugin description, such as effects.

Manifests and `@command(...)` share these checks. An error is returned as text; the
caller adds the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from msgspec.structs import replace

from neuraxis import call_errors
from neuraxis.formatting import describe_given
from neuraxis.messages import Path
from neuraxis.specs import EffectKind, Effects, Example, ExampleCall, Json

KINDS: tuple[EffectKind, ...] = get_args(EffectKind)
EFFECTS = ("kind", "destructive", "others_write", "public", "needs_approval")
"""Keys of the mapping that declares effects."""


def parse_effects(value: Json) -> Effects | str:
    """Parse effects from a word or mapping; return an error text otherwise."""
    if isinstance(value, Effects):
        return replace(value, declared=True)
    if isinstance(value, str) and value in _OF_KIND:
        return _OF_KIND[value]
    return _parsed(value)


def _parsed(value: Json) -> Effects | str:
    fields: dict[str, Json] = {"kind": value} if isinstance(value, str) else value
    if not isinstance(value, str | dict):
        got = describe_given(value)
        return f"effects: expected one of {_kinds()}, or a mapping, got {got}"
    if "open_world" in fields:  # the word of earlier manifests
        fields = {"others_write": fields["open_world"]} | fields
        del fields["open_world"]
    if unknown := sorted(set(fields) - set(EFFECTS)):
        return f"effects: unknown key {unknown[0]!r}, expected {', '.join(EFFECTS)}"
    kind = fields.get("kind", "once")
    if kind not in KINDS:
        return f"effects: expected one of {_kinds()}, got {call_errors.quote(kind)}"
    # A read-only command destroys nothing; a pure one reaches no other party.
    destructive = fields.get("destructive", kind not in ("none", "read"))
    others_write = fields.get("others_write", kind != "none")
    public = fields.get("public", False)
    approval = fields.get("needs_approval", False)
    flags = {
        "destructive": destructive,
        "others_write": others_write,
        "public": public,
        "needs_approval": approval,
    }
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            return (
                f"effects.{name}: expected true or false, got {call_errors.quote(flag)}"
            )
    return Effects(
        kind=kind,
        destructive=destructive,
        open_world=others_write,
        public=public,
        needs_approval=approval,
        declared=not {"kind", "needs_approval"}.issuperset(fields),
    )


_OF_KIND = {kind: made for kind in KINDS if isinstance(made := _parsed(kind), Effects)}
"""Effects named by a single word."""


def _kinds() -> str:
    return ", ".join(KINDS)


def parse_examples(
    value: Json, own_tool: str
) -> tuple[tuple[Example, ...], list[tuple[Path, str]]]:
    """Parse examples `[{q, a}]` and return their errors (rule C6).

    `a` is a mapping of this command's arguments, or a list of intents `{tool, …}`.
    An intent's `as` stays among its arguments: the intents are shown as written.
    """
    problems: list[tuple[Path, str]] = []
    examples: list[Example] = []
    if value is None:
        return (), problems
    if not isinstance(value, Sequence) or isinstance(value, str):
        return (), [((), "examples: expected a list of {q, a}")]
    for index, item in enumerate(cast("Sequence[Json]", value)):
        if isinstance(item, Example):
            examples.append(item)
            continue
        if not isinstance(item, Mapping) or "a" not in item:
            problems.append(((index,), "expected an example with the keys q and a"))
            continue
        entry = cast("Mapping[str, Json]", item)
        calls = _calls(entry["a"], own_tool, (index, "a"), problems)
        if calls:
            examples.append(Example(question=str(entry.get("q") or ""), calls=calls))
        if not entry.get("q"):
            problems.append(((index,), "expected q, the request in a person's words"))
    return tuple(examples), problems


def _calls(
    value: Json, own_tool: str, path: Path, problems: list[tuple[Path, str]]
) -> tuple[ExampleCall, ...]:
    if isinstance(value, Mapping):
        arguments = dict(cast("Mapping[str, Json]", value))
        if not own_tool:
            problems.append((path, "expected a list of intents {tool, …}"))
            return ()
        return (ExampleCall(tool=own_tool, arguments=arguments),)
    if not isinstance(value, list) or not value:
        problems.append((path, "expected arguments, or a list of intents {tool, …}"))
        return ()
    calls: list[ExampleCall] = []
    for index, intent in enumerate(cast("list[Json]", value)):
        fields = cast("dict[str, Json]", intent) if isinstance(intent, dict) else {}
        tool = fields.get("tool")
        if not isinstance(tool, str) or not tool:
            problems.append(((*path, index), "expected an intent with the key tool"))
            continue
        rest = {key: part for key, part in fields.items() if key != "tool"}
        calls.append(ExampleCall(tool=tool, arguments=rest))
    return tuple(calls)


def no_flag(name: str, response: Mapping[str, Json] | None) -> str:
    """Return why a `failure_field` cannot be read; empty if it can.

    An object of which no fields are declared may have any.
    """
    schema = response or {}
    fields: Mapping[str, Mapping[str, Json]] = schema.get("properties", {})
    is_unknown = not fields and "object" in schema.get("type", "object")
    if is_unknown or fields.get(name, {}).get("type") == "boolean":
        return ""
    return f"failure_field: the response has no boolean field {name!r}"


def reference_places(value: Json, path: Path = ()) -> list[Path]:
    """Yield places of a value that hold a reference or template."""
    if isinstance(value, str):
        return [path] if "{{" in value or value.startswith("asset://") else []
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [
            place
            for index, item in enumerate(items)
            for place in reference_places(item, (*path, index))
        ]
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, Json]", value)
        if "asset_id" in entries and not set(entries) - {"asset_id", "field_path"}:
            return [path]
        return [
            place
            for key, item in entries.items()
            for place in reference_places(item, (*path, key))
        ]
    return []
