"""Read `SKILL.md` leniently, and write it strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from neuraxis.bridges.untrusted_text import hides_something, visible
from neuraxis.errors import ConfigError

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 1024
_KNOWN = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)
_HEAD_CHARACTERS = 20_000
_LINE = re.compile(r"([A-Za-z][A-Za-z_-]*):[ \t]*(.*)")


class SkillFile(msgspec.Struct, frozen=True, kw_only=True):
    """Content of a `SKILL.md`, and the problems in its format."""

    name: str
    description: str
    body: str
    problems: tuple[str, ...] = ()


def read_skill_file(text: str, folder: str) -> SkillFile:
    """Return the content of a skill file; mistakes become problems.

    Args:
        text: the file's text.
        folder: the folder's name, which is also the skill's.
    """
    head, body = _split(text.removeprefix("\ufeff"))
    fields, problems = _fields(head)
    if any(map(hides_something, fields.values())):
        problems.append("invisible characters were taken out of its front matter")
    fields = {key: visible(value) for key, value in fields.items()}
    if not head:
        problems.append("expected front matter: name and description between two ---")
    name, description = fields.get("name", ""), fields.get("description", "")
    problems += [text for text in faults(name, description) if head]
    if name and name != folder:
        problems.append(f"name: expected the folder's name {folder!r}, got {name!r}")
    unknown = sorted(set(fields) - _KNOWN)
    if unknown:
        problems.append(f"{unknown[0]}: no field of the format")
    if not description:
        paragraphs = (part.strip() for part in body.split("\n\n"))
        plain = (part for part in paragraphs if part and not part.startswith("#"))
        description = " ".join(next(plain, folder).split())
    return SkillFile(
        name=name or folder,
        description=" ".join(description.split())[:DESCRIPTION_CHARACTERS],
        body=body.strip(),
        problems=tuple(problems),
    )


def faults(name: str, description: str) -> list[str]:
    """Return the format's problems with a name and a description."""
    problems: list[str] = []
    if not NAME.fullmatch(name) or len(name) > NAME_CHARACTERS:
        problems.append(
            f"name: expected at most {NAME_CHARACTERS} characters: lower-case letters, "
            f"digits and single hyphens, got {name[:80]!r}"
        )
    if not 0 < len(description) <= DESCRIPTION_CHARACTERS:
        problems.append(
            f"description: expected 1 to {DESCRIPTION_CHARACTERS} characters, got "
            f"{len(description)}"
        )
    return problems


def new_skill_file(name: str) -> str:
    """Return the text of a new `SKILL.md`.

    Raises:
        ConfigError: the name is invalid.
    """
    description = (
        "Says what the skill does and when it is to be used. Replace this sentence."
    )
    if problems := faults(name, description):
        raise ConfigError(problems[0])
    return (
        f"---\nname: {name}\ndescription: {description}\n---\n\n# {name}\n\n"
        "Write here what is to be done, step by step.\n\n"
        "`scripts/hello.py` prints a greeting; run it with a name as its argument.\n"
    )


def _split(text: str) -> tuple[str, str]:
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return "", text
    for index, line in enumerate(lines[1:], 1):
        if line.strip() == "---":
            return "\n".join(lines[1:index])[:_HEAD_CHARACTERS], "\n".join(
                lines[index + 1 :]
            )
    return "", text


def _fields(head: str) -> tuple[dict[str, str], list[str]]:
    import yaml  # imported here: sessions without skills do not need it

    untyped: Any = yaml
    try:
        tree: Any = untyped.load(head, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        # most often an unquoted description with a colon
        fields = {
            match[1]: match[2].strip().strip("\"'")
            for line in head.splitlines()
            if (match := _LINE.fullmatch(line))
        }
        return fields, ["the front matter is no YAML: put the description in quotes"]
    if not isinstance(tree, Mapping):
        return {}, ["the front matter names no fields"] if head else []
    entries = cast("Mapping[Any, Any]", tree)
    return {
        str(key): value if isinstance(value, str) else ""
        for key, value in entries.items()
    }, []
