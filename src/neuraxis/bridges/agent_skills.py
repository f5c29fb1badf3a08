"""Agent Skills as plugins: folders with a `SKILL.md`.

The model sees name and description; it reads the instructions and the files next to
them on demand, as they were when the session began: changed files are refused. Scripts
run in the sandbox, on a copy in the workspace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from neuraxis import call_errors
from neuraxis.bridges.skill_file import SkillFile, read_skill_file
from neuraxis.builtin.python_file.plugin import in_sandbox
from neuraxis.builtin.workspace import changes, quota
from neuraxis.errors import CommandError, ConfigError, warnings_in
from neuraxis.plugins.context import Context
from neuraxis.plugins.registry import Command, Plugin
from neuraxis.plugins.source import ReadSource
from neuraxis.sandbox.files import operations, workspace
from neuraxis.sandbox.files.paths import FileRefused, parts_of
from neuraxis.specs import CommandSpec, Effects, Json, PluginSpec

FILE_NAME = "SKILL.md"
COPIES = "skill_files"
"""Folder of the workspace for copies of skills whose scripts run."""
MOST_FILES = 1000
MOST_BYTES = 50 * 1024 * 1024
"""Maximum bytes of all files of a skill."""
_LISTED = 100
"""Maximum file names shown to the model."""
_READS = Effects(kind="read", destructive=False, open_world=False, declared=True)
_RUNS = Effects(kind="once", destructive=True, open_world=False, declared=True)


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """Skill: its folder, its text, and the other files."""

    folder: Path
    name: str
    """Its name as an identifier."""
    text: SkillFile
    files: tuple[str, ...]
    """Paths relative to the folder."""
    digests: Mapping[str, str]
    """Digest of each file as it was loaded, and so accepted."""


def skill(folder: str | Path) -> Plugin:
    """Return the plugin of the skill in a folder.

    Raises:
        ConfigError: there is no `SKILL.md`, or it cannot be read.
    """
    root = Path(folder).expanduser().absolute()
    try:
        data = workspace.read_bytes(root, FILE_NAME)
        written = workspace.as_text(data, FILE_NAME)
    except FileRefused as error:
        subfolders = [
            item.parent.name for item in sorted(root.glob(f"*/{FILE_NAME}"))[:5]
        ]
        hint = f"; there are skills in: {', '.join(subfolders)}" if subfolders else ""
        raise ConfigError(
            f"{folder}: expected a folder with a {FILE_NAME}: {error}{hint}"
        ) from None
    text = read_skill_file(written, root.name)
    name = re.sub(r"[^A-Za-z0-9]+", "_", text.name).strip("_").lower() or "skill"
    name = f"skill_{name}" if name[0].isdigit() else name
    digests, digest = _digests(root)
    if digests.get(FILE_NAME) != _digest(data):
        raise ConfigError(f"{folder}: {FILE_NAME} changed while it was read; try again")
    files = tuple(item for item in digests if item != FILE_NAME)
    loaded = Skill(folder=root, name=name, text=text, files=files, digests=digests)
    return _plugin(loaded, digest)


def skills(folder: str | Path) -> list[Plugin]:
    """Return the plugins of all skills in a folder's subfolders.

    Raises:
        ConfigError: there is none, or one cannot be read.
    """
    manifests = sorted(Path(folder).expanduser().glob(f"*/{FILE_NAME}"))
    if not manifests:
        raise ConfigError(f"{folder}: expected folders with a {FILE_NAME}")
    return [skill(file.parent) for file in manifests]


def from_name(text: str) -> ReadSource:
    """Return the source `skill:FOLDER`, as settings and command line name it."""
    return ReadSource(partial(skill, text))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digests(root: Path) -> tuple[dict[str, str], str]:
    """Return each file's digest, and one of all files."""
    try:
        listing = workspace.list_files(root, most=MOST_FILES)
    except FileRefused as error:
        raise ConfigError(f"{root}: {error}") from None
    names = listing.files
    if listing.more:
        raise ConfigError(f"{root}: expected at most {MOST_FILES} files")
    digests: dict[str, str] = {}
    digest = hashlib.sha256()
    total = 0
    for name in sorted(names):
        try:
            data = workspace.read_bytes(root, name, limit=MOST_BYTES)
        except FileRefused as error:
            raise ConfigError(f"{root}: {error}") from None
        if (total := total + len(data)) > MOST_BYTES:
            raise ConfigError(f"{root}: expected at most {MOST_BYTES} bytes")
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
        digests[name] = _digest(data)
    return digests, digest.hexdigest()


def _plugin(loaded: Skill, digest: str) -> Plugin:
    """Return the plugin; a digest of all its files is its id."""
    specs = [_instructions(loaded)]
    runs: dict[str, Any] = {"instructions": partial(_read_body, loaded)}
    if loaded.files:
        specs.append(_file(loaded))
        runs["file"] = partial(_read_file, loaded)
    if scripts := [name for name in loaded.files if name.endswith(".py")]:
        specs.append(_script(loaded, scripts))
        runs["run"] = partial(_run_script, loaded, scripts)
    spec = PluginSpec(
        name=loaded.name,
        title=loaded.text.name,
        id=f"sha256:{digest}",
        description=loaded.text.description,
        commands=tuple(specs),
        source=f"skill:{loaded.folder}",
    )
    commands = {
        item.name: Command(
            plugin=spec,
            spec=item,
            run=runs[item.name],
            context_name="context" if item.name == "run" else "",
        )
        for item in specs
    }
    return Plugin(
        spec=spec,
        commands=commands,
        problems=warnings_in(str(loaded.folder / FILE_NAME), loaded.text.problems),
    )


def _instructions(loaded: Skill) -> CommandSpec:
    return CommandSpec(
        name="instructions",
        tool_name=f"{loaded.name}_instructions",
        description=(
            f"Read the instructions of the skill {loaded.text.name}, before a task "
            f"that it is for. {loaded.text.description}"
        ),
        effects=_READS,
    )


def _file(loaded: Skill) -> CommandSpec:
    return CommandSpec(
        name="file",
        tool_name=f"{loaded.name}_file",
        description=f"Read a file of the skill {loaded.text.name} that it refers to.",
        parameters=_object(
            {
                "path": {
                    "type": "string",
                    "description": "relative to the skill's folder",
                    "examples": [loaded.files[0]],
                }
            },
            ["path"],
        ),
        effects=_READS,
    )


def _script(loaded: Skill, scripts: Sequence[str]) -> CommandSpec:
    return CommandSpec(
        name="run",
        tool_name=f"{loaded.name}_run",
        description=(
            f"Run a Python script of the skill {loaded.text.name} in a sandbox, in the "
            "workspace; it can read and write the files there."
        ),
        parameters=_object(
            {
                "script": {
                    "type": "string",
                    "enum": list(scripts[:_LISTED]),
                    "x-trusted-only": True,
                    # it reads and imports what the workspace has
                    "x-names-file": "run",
                },
                "args": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "the arguments of its command line",
                },
            },
            ["script"],
        ),
        response={
            "type": "object",
            "properties": {
                "success": {"type": "boolean"},
                "output": {"type": "string", "description": "what it printed"},
                "error": {"type": "string", "description": "why it failed"},
            },
            "required": ["success", "output"],
        },
        failure_field="success",
        time_limit=90,
        effects=_RUNS,
    )


def _object(properties: dict[str, Json], required: list[Json]) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


# --- commands -------------------------------------------------------------------


def _read_body(loaded: Skill) -> dict[str, Json]:
    result: dict[str, Json] = {"instructions": loaded.text.body}
    if loaded.files:
        result["files"] = list(loaded.files[:_LISTED])
    return result


def _read_file(loaded: Skill, path: str) -> str:
    try:
        clean = "/".join(parts_of(path))
        return workspace.as_text(_accepted(loaded, clean, workspace.READ_LIMIT), clean)
    except FileRefused as error:
        raise CommandError(str(error)) from None


def _accepted(loaded: Skill, name: str, limit: int) -> bytes:
    """Return a file of the skill, unchanged since it was loaded.

    Raises:
        FileRefused: it cannot be read.
        CommandError: it was changed or added since.
    """
    data = workspace.read_bytes(loaded.folder, name, limit=limit)
    if _digest(data) != loaded.digests.get(name):
        raise CommandError(call_errors.skill_file_changed(name))
    return data


def _run_script(
    loaded: Skill,
    scripts: Sequence[str],
    script: str,
    context: Context,
    args: Sequence[str] = (),
) -> dict[str, Json]:
    if script not in scripts:
        raise CommandError(f"script: expected one of {', '.join(scripts[:_LISTED])}")
    target = f"{COPIES}/{loaded.name}"
    try:
        _copy_files(loaded, target, context)
    except FileRefused as error:
        raise CommandError(str(error)) from None
    context.progress(f"running {script}", None)
    outcome = in_sandbox(f"{target}/{script}", context, args)
    result: dict[str, Json] = {"success": outcome.ok, "output": outcome.stdout}
    if not outcome.ok:
        result["error"] = outcome.reason or outcome.stderr.strip()[-800:]
    return result


def _copy_files(loaded: Skill, target: str, context: Context) -> None:
    """Copy a skill's files into the workspace, where they differ.

    The model's changes there do not run; a file of the user's stays.

    Raises:
        FileRefused: a file cannot be read or written.
        CommandError: a file of the skill changed, or the user has one in its place.
    """
    files = changes(context)
    for name in loaded.files:
        data, path = _accepted(loaded, name, MOST_BYTES), f"{target}/{name}"
        if operations.digest_of(context.workspace, path) == loaded.digests[name]:
            continue
        if not files.free and files.history.is_users(path):
            raise CommandError(call_errors.skill_copy_blocked(path))
        files.write(path, data, quota(context))
