"""Load a plugin's `config.yaml`, of protocol v1 or v2.

All errors are reported at once, each with its line; a file with an error gives no spec.
Nothing a manifest names is imported, and no file is read except a prompt file inside
its own folder or a folder that the host allows (rule B16).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, cast

from neuraxis.errors import ManifestError, ManifestProblem, error_of
from neuraxis.formatting import quote, yaml_type
from neuraxis.messages import Path as Place
from neuraxis.parsing.yaml import read_yaml
from neuraxis.plugins.effects_and_examples import parse_examples
from neuraxis.plugins.manifest.commands import check_examples, is_v1, read_commands
from neuraxis.plugins.manifest.problems import Notes
from neuraxis.plugins.registry import FILE_NAME
from neuraxis.specs import CommandSpec, Example, Json, PluginSpec

MOST_PROMPT_BYTES = 262_144

_ROOT_KEYS = (
    "group_id", "artifact_id", "version", "type", "as_plugin", "id", "name", "info",
    "commands", "setup", "url", "developers", "licenses", "config", "examples",
)  # fmt: skip
NO_UTF8 = "it is not UTF-8 text; save it as UTF-8 in your editor"
_INFO_KEYS = (
    "title", "description", "description_for_human", "description_for_model",
    "summary", "prompt", "prompt_file_name", "prompt_file_path",
)  # fmt: skip


def load_manifest(
    path: Path, *, allowed_dirs: Iterable[Path] = (), strict: bool = False
) -> tuple[PluginSpec, tuple[ManifestProblem, ...]]:
    """Return the spec of a manifest file or a folder's `config.yaml`.

    Args:
        path: the file or folder.
        allowed_dirs: folders from which a v2 `prompt_file_path` may be read, beside
            the manifest's own.
        strict: whether one invalid command makes the whole manifest invalid.

    Raises:
        ManifestError: the file cannot be read, or has errors; it lists all of them.
    """
    file = path / FILE_NAME if path.is_dir() else path
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        detail = error.strerror if isinstance(error, OSError) else NO_UTF8
        raise error_of(str(file), f"cannot be read: {detail}") from error
    return parse_manifest(
        text,
        file=str(file),
        folder=file.parent,
        allowed_dirs=allowed_dirs,
        strict=strict,
    )


def parse_manifest(
    text: str,
    *,
    file: str = FILE_NAME,
    folder: Path | None = None,
    allowed_dirs: Iterable[Path] = (),
    strict: bool = False,
) -> tuple[PluginSpec, tuple[ManifestProblem, ...]]:
    """Return the spec of a manifest's text, and the warnings.

    Without `folder` no prompt file is read. `strict` as in `load_manifest`.

    Raises:
        ManifestError: the text has errors; it carries them and the warnings.
    """
    tree = read_yaml(text, file)
    notes = Notes(tree=tree, strict=strict, found=list(tree.problems))
    if not isinstance(value := tree.value, dict):
        notes.error((), f"expected a mapping, got {yaml_type(value)}")
        raise ManifestError(tuple(notes.found))
    root = cast("dict[str, Json]", value)
    _check_root_keys(root, notes)
    listed = _listed(root, notes)
    info = notes.mapping(root.get("info"), ("info",), "info")
    notes.unknown(info, _INFO_KEYS, ("info",))
    config = notes.mapping(root.get("config"), ("config",), "config")
    if listed and root.get("info") in (None, {}):
        notes.missing(root, "info", "{title: …, description: …}")
    generation: Literal["v1", "v2"] = "v1" if is_v1(root.get("commands")) else "v2"
    name = _name(root, info, config, listed, notes)
    commands = read_commands(root, listed, notes)
    texts = {
        key: notes.text(info.get(key), ("info", key))
        for key in ("title", "description", "description_for_human",
                    "description_for_model", "summary")
    }  # fmt: skip
    if listed and not texts["description"] and not texts["description_for_model"]:
        notes.warn(("info",), "the plugin has no description: a model cannot choose it")
    prompt = _prompt(info, generation, folder, allowed_dirs, notes)
    examples = _examples(root.get("examples"), commands, notes)
    if any(problem.severity == "error" for problem in notes.found):
        raise ManifestError(_sorted(notes))
    spec = PluginSpec(
        name=name,
        commands=commands,
        id=_id(root, config, name, notes),
        title=texts["title"],
        description=texts["description"] or "",
        description_for_human=texts["description_for_human"],
        description_for_model=texts["description_for_model"],
        summary=texts["summary"],
        prompt=prompt,
        generation=generation,
        listed=listed,
        examples=examples,
        config={k: v for k, v in config.items() if k not in ("id", "name")},
        source=file,
        raw={**root, "name": name},
    )
    return spec, _sorted(notes)


def lines_of_commands(spec: PluginSpec) -> dict[str, int]:
    """Return the line of each command in a manifest."""
    file = Path(spec.source)
    if file.suffix not in (".yaml", ".yml") or not file.is_file():
        return {}
    tree = read_yaml(file.read_text(encoding="utf-8-sig"), spec.source)
    return {
        str(item.get("command_name")).strip(): tree.line(("commands", index))
        for index, item in enumerate(spec.raw["commands"])
    }


def _sorted(notes: Notes) -> tuple[ManifestProblem, ...]:
    """Return the problems sorted by line, without duplicates from aliases."""
    return tuple(sorted(dict.fromkeys(notes.found), key=lambda found: found.line))


def _listed(root: Mapping[str, Json], notes: Notes) -> bool:
    as_plugin = root.get("as_plugin")
    if as_plugin is None or isinstance(as_plugin, bool):
        return as_plugin is not False
    word = str(as_plugin).strip().lower()
    if word not in ("true", "false", "1", "0"):
        message = f"as_plugin: expected true or false, got {quote(as_plugin)}"
        notes.error(("as_plugin",), message)
    return word not in ("false", "0")


def _name(
    root: Mapping[str, Json],
    info: Mapping[str, Json],
    config: Mapping[str, Json],
    listed: bool,
    notes: Notes,
) -> str:
    """Return the first non-blank `config.name`, `name`, `info.title` (A11, A12)."""
    places: list[tuple[Json, Place]] = [
        (config.get("name"), ("config", "name")),
        (root.get("name"), ("name",)),
        (info.get("title"), ("info", "title")),
    ]
    for value, place in places:
        name = notes.text(value, place) if isinstance(value, str | None) else None
        if not isinstance(value, str | None):
            notes.error(place, f"name: expected text, got {yaml_type(value)}")
        if name:
            if not name.isprintable():
                notes.error(place, f"the name {quote(name)} holds control characters")
            return name
    fallback = root.get("artifact_id")
    if not listed and isinstance(fallback, str) and fallback.strip():
        # It is never shown to a model, but messages must distinguish it.
        if not fallback.strip().isprintable():
            notes.error(("artifact_id",), "artifact_id: it holds control characters")
        notes.warn(
            ("artifact_id",), "no name is given: artifact_id is used as the name"
        )
        return fallback.strip()
    notes.error((), "no name: expected config.name, name or info.title")
    return ""


def _id(
    root: Mapping[str, Json], config: Mapping[str, Json], name: str, notes: Notes
) -> str:
    """Return the author's id; derive it if absent or `default` (B18)."""
    for value, place in (
        (config.get("id"), ("config", "id")),
        (root.get("id"), ("id",)),
    ):
        text = notes.text(value, place)
        if text and text != "default":
            return text
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def _check_root_keys(root: Mapping[str, Json], notes: Notes) -> None:
    for key in _INFO_KEYS:
        if key in root:
            notes.warn((key,), f"{key!r} is not used here; write it below info")
    notes.unknown(root, (*_ROOT_KEYS, *_INFO_KEYS), ())


def _prompt(
    info: Mapping[str, Json],
    generation: str,
    folder: Path | None,
    allowed_dirs: Iterable[Path],
    notes: Notes,
) -> str | None:
    """Return the author's instruction: `prompt`, or a file's text (A9, B16)."""
    written = info.get("prompt")
    if isinstance(written, str):
        if written.strip():
            return written
    elif written is not None:
        message = f"prompt: expected text, got {yaml_type(written)}"
        notes.error(("info", "prompt"), message)
    place: Place = ("info", "prompt_file_name")
    if name := notes.text(info.get("prompt_file_name"), place):
        if generation == "v1":
            notes.warn(place, "prompt_file_name is of protocol v2; it is read as there")
        if folder is None:
            return None
        return _prompt_file(folder / name, [folder], place, notes)
    place = ("info", "prompt_file_path")
    if generation == "v1" or folder is None:
        return None  # v1 ignores the key (rules A10, K5).
    if name := notes.text(info.get("prompt_file_path"), place):
        return _prompt_file(folder / name, [folder, *allowed_dirs], place, notes)
    return None


def _prompt_file(
    file: Path, folders: Iterable[Path], place: Place, notes: Notes
) -> str | None:
    key = place[-1]
    try:
        # Resolve links first: the file's real location counts.
        real = file.resolve()
        if not any(real.is_relative_to(folder.resolve()) for folder in folders):
            where = (
                "inside the plugin's folder"
                if key == "prompt_file_name"
                else "inside the plugin's folder or one that the host allows"
            )
            notes.error(place, f"{key}: expected a file {where}")
            return None
        if not real.is_file():
            notes.error(place, f"{key}: there is no such file")
            return None
        if real.stat().st_size > MOST_PROMPT_BYTES:
            message = f"{key}: expected at most {MOST_PROMPT_BYTES} bytes"
            notes.error(place, message)
            return None
        return real.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or NO_UTF8
        notes.error(place, f"{key}: cannot be read: {detail}")
        return None


def _examples(
    value: Json, commands: Iterable[CommandSpec], notes: Notes
) -> tuple[Example, ...]:
    examples, problems = parse_examples(value, "")
    for place, message in problems:
        notes.error(("examples", *place), message)
    tools = {item.tool_name or item.name: item.parameters for item in commands}
    check_examples(examples, tools, ("examples",), notes)
    return examples
