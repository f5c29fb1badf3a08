"""Read YAML into JSON values, with their lines and source texts.

PyYAML resolves scalars by the rules of YAML 1.1 (`yes` is true, `3.10` is 3.1,
`2024-01-01` a date), refuses no duplicate key and follows every alias. A manifest is
read by its own rules instead: keys are text, names and the members of a text enum are
what the author typed, a key stands once, aliases cannot blow up, tags are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, cast

import yaml
from msgspec import Struct

from neuraxis.errors import ManifestError, ManifestProblem
from neuraxis.messages import Path
from neuraxis.specs import Json

MOST_CHARACTERS = 2_000_000
MOST_NODES = 200_000
"""Maximum nodes after aliases are followed, against a "billion laughs"."""
MOST_DEPTH = 100

_TAG = "tag:yaml.org,2002:"
_PLAIN = frozenset({"null", "bool", "int", "float", "str", "timestamp", "value"})
NAME_KEYS = frozenset({
    "name", "command_name", "title", "tool_name", "failure_field", "_type_ref",
})  # fmt: skip
"""Keys whose value is a name, taken as typed (A15)."""
_TEXT_KEYS = NAME_KEYS | {
    "id", "description", "description_for_human", "description_for_model", "summary",
    "prompt", "prompt_file_name", "prompt_file_path", "format", "pattern",
}  # fmt: skip
_VALUE_KEYS = frozenset({"enum", "item_enum", "default", "example"})
_TEXT_TYPES = frozenset({
    "str", "string", "date", "datetime", "time", "bytes", "timedelta", "duration",
    "uuid", "path", "decimal", "uri", "url", "email",
})  # fmt: skip
_NULL_TYPES = frozenset({"optional", "none", "null"})
_AROUND_TEXT = _NULL_TYPES | {"list", "sequence", "array", "set", "union", "tuple"}
_WORD = re.compile(r"[A-Za-z_][\w.]*")


class Tree(Struct, frozen=True, kw_only=True):
    """YAML document as JSON values, with the place of each."""

    value: Json
    file: str
    lines: Mapping[Path, int]
    problems: tuple[ManifestProblem, ...] = ()

    def line(self, path: Path) -> int:
        """Return the line of a place, or of the nearest enclosing one."""
        for end in range(len(path), -1, -1):
            if (line := self.lines.get(path[:end])) is not None:
                return line
        return 0


def read_yaml(text: str, file: str, data: Collection[str] = ()) -> Tree:
    """Read a YAML document; keys named in `data` have plain values below.

    Raises:
        ManifestError: it is no YAML, or more than the limits allow.
    """
    if len(text) > MOST_CHARACTERS:
        raise _refused(file, 0, f"expected at most {MOST_CHARACTERS} characters")
    try:
        _check_depth(text, file)
        root = _compose(text)
    except yaml.MarkedYAMLError as error:
        from neuraxis.parsing.yaml_errors import fault  # imported for mistakes only

        line, message = fault(error, text)
        raise _refused(file, line, f"not valid YAML: {message}") from error
    except yaml.YAMLError as error:
        raise _refused(file, 0, f"not valid YAML: {error}") from error
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise _refused(
            file, line, "half of a character (a lone surrogate) is here"
        ) from error
    if root is None:
        raise _refused(file, 0, "expected a mapping, the file is empty")
    reader = _Reader(file=file, data=data)
    value = reader.read(root, (), _Mode())
    return Tree(
        value=value, file=file, lines=reader.lines, problems=tuple(reader.problems)
    )


def _refused(file: str, line: int, message: str) -> ManifestError:
    return ManifestError((ManifestProblem(file=file, line=line, message=message),))


def _loader() -> Any:
    """Return libyaml's reader, else PyYAML's own, eight times slower."""
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _compose(text: str) -> yaml.Node | None:
    # PyYAML's stubs leave these functions half typed.
    compose = cast("Callable[..., yaml.Node | None]", yaml.compose)  # pyright: ignore[reportUnknownMemberType] - see above
    return compose(text, Loader=_loader())


def _check_depth(text: str, file: str) -> None:
    """Refuse deep nesting before `compose`, whose C recursion would crash on it."""
    depth = 0
    parse = cast("Callable[..., Iterable[yaml.Event]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType] - as in `_compose`
    for event in parse(text, Loader=_loader()):
        if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                line = event.start_mark.line + 1
                raise _refused(file, line, f"nested more than {MOST_DEPTH} levels deep")
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            depth -= 1


class _Mode(Struct, frozen=True):
    """Reading mode of the scalars below a place."""

    data: bool = False  # arguments and settings: names mean nothing here
    text: bool = False  # members of a text enum: as typed
    nullable: bool = True  # a null among them stays null


_DATA = _Mode(data=True)


class _Reader(Struct):
    file: str
    data: Collection[str] = ()
    lines: dict[Path, int] = {}
    problems: list[ManifestProblem] = []
    nodes: int = 0
    # an alias is one value: a type defined in it is defined once
    cached: dict[tuple[int, _Mode], Json] = {}

    def read(self, node: yaml.Node, path: Path, mode: _Mode) -> Json:
        self.nodes += 1
        line = node.start_mark.line + 1
        if self.nodes > MOST_NODES or len(path) > MOST_DEPTH:
            problem = "an alias contains itself, or aliases make this file too large"
            raise _refused(self.file, line, problem)
        self.lines.setdefault(path, line)
        kind = node.tag.removeprefix(_TAG)
        if isinstance(node, yaml.MappingNode) and kind == "map":
            fields = self._mapping(node, path, mode)
            return self.cached.setdefault((id(node), mode), fields)
        if isinstance(node, yaml.SequenceNode) and kind == "seq":
            items: list[Json] = []
            for index, item in enumerate(node.value):
                items.append(self.read(item, (*path, index), mode))
            return self.cached.setdefault((id(node), mode), items)
        if isinstance(node, yaml.ScalarNode) and kind in _PLAIN:
            return self._scalar(node, kind, mode)
        self._problem(line, f"expected plain YAML, got the tag {node.tag!r}")
        return None

    def _mapping(self, node: yaml.MappingNode, path: Path, mode: _Mode) -> Json:
        entries = self._entries(node, path, mode)
        nodes = {key: value for key, (value, _) in entries.items()}
        typed = None if mode.data else _text_type(nodes.get("type"))
        items: dict[str, Json] = {}
        for key, (value, line) in entries.items():
            place = (*path, key)
            self.lines[place] = line
            if key in NAME_KEYS and not mode.data and _is_named_oddly(value):
                self._warn(
                    line,
                    f"{key}: {value.value} is read as the text {value.value!r}; "
                    "write it in quotes",
                )
            inner = (
                _DATA
                if key in self.data
                else _mode_of(key, value, path, mode, typed, nodes)
            )
            items[key] = self.read(value, place, inner)
            if key in ("enum", "item_enum") and typed is not None:
                self._warn_of_members(value, line)
        return items

    def _entries(
        self, node: yaml.MappingNode, path: Path, mode: _Mode
    ) -> dict[str, tuple[yaml.Node, int]]:
        """Return each key once, as typed; a key wins over merged ones."""
        entries: dict[str, tuple[yaml.Node, int]] = {}
        merged: dict[str, tuple[yaml.Node, int]] = {}
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag == _TAG + "merge":
                self._merge(value, merged, path)
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem(line, "expected a plain key, got a list or mapping")
                continue
            key = str(key_node.value)
            kind = key_node.tag.removeprefix(_TAG)
            if kind not in _PLAIN:
                self._problem(
                    line, f"expected plain YAML, got the tag {key_node.tag!r}"
                )
            elif kind not in ("str", "value") and not mode.data:
                self._warn(
                    line,
                    f"the key {key} is read as the text {key!r}; write it in quotes",
                )
            if key in entries:
                self._problem(
                    line,
                    f"the key {key!r} appears twice, first on line {entries[key][1]}",
                )
            else:
                entries[key] = (value, line)
        return {**{k: v for k, v in merged.items() if k not in entries}, **entries}

    def _merge(
        self, value: yaml.Node, into: dict[str, tuple[yaml.Node, int]], path: Path
    ) -> None:
        sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
        for source in sources:
            self.nodes += 1
            line = value.start_mark.line + 1
            if self.nodes > MOST_NODES:
                raise _refused(self.file, line, "aliases make this file too large")
            if not isinstance(source, yaml.MappingNode) or len(path) > MOST_DEPTH:
                self._problem(line, "<<: expected a mapping, or a list of mappings")
                continue
            # the growing path bounds merges that lead back to themselves
            for key, entry in self._entries(source, (*path, "<<"), _DATA).items():
                into.setdefault(key, entry)

    def _scalar(self, node: yaml.ScalarNode, kind: str, mode: _Mode) -> Json:
        text = str(node.value)
        if kind in ("str", "value", "timestamp"):
            return text
        if kind == "null":
            return None if mode.nullable else text
        if mode.text:
            return text
        if kind != "bool" and (
            ":" in text or ".nan" in text.lower() or "inf" in text.lower()
        ):
            return text  # base 60, or a number that JSON cannot represent
        constructor = yaml.constructor.SafeConstructor()
        try:
            match kind:
                case "bool":
                    return constructor.construct_yaml_bool(node)
                case "int":
                    number = constructor.construct_yaml_int(node)
                    str(number)  # raises where JSON could not write its digits
                    return number
                case _:
                    return constructor.construct_yaml_float(node)
        except (ValueError, KeyError, IndexError):
            line = node.start_mark.line + 1
            self._problem(line, f"expected a value of the tag {node.tag!r}")
            return None

    def _warn_of_members(self, node: yaml.Node, line: int) -> None:
        if not isinstance(node, yaml.SequenceNode):
            return
        odd_names = [str(item.value) for item in node.value if _is_named_oddly(item)]
        if odd_names:
            self._warn(
                line,
                f"the members {', '.join(odd_names)} are read as text; "
                "write them in quotes",
            )

    def _problem(self, line: int, message: str) -> None:
        self.problems.append(
            ManifestProblem(file=self.file, line=line, message=message)
        )

    def _warn(self, line: int, message: str) -> None:
        self.problems.append(
            ManifestProblem(
                file=self.file, line=line, message=message, severity="warning"
            )
        )


def _mode_of(
    key: str,
    value: yaml.Node,
    path: Path,
    mode: _Mode,
    typed: _Mode | None,
    around: Mapping[str, yaml.Node],
) -> _Mode:
    """Return the reading mode of the values under `key`."""
    if mode.data:
        return mode
    if key in _TEXT_KEYS and isinstance(value, yaml.ScalarNode):
        return _Mode(text=True)
    if path == ("config",) or (
        key in ("examples", "example_output")
        and (not path or (path[0] == "commands" and len(path) == 2))
    ):
        return _DATA
    if "type" in around and isinstance(around["type"], yaml.ScalarNode):
        if typed is not None and key in _VALUE_KEYS:
            # `enum: null` is no enum; a null among the members of one is a word
            loose = key in ("default", "example") or isinstance(value, yaml.ScalarNode)
            return _Mode(data=True, text=True, nullable=loose or typed.nullable)
        if typed is not None and key == "items":
            return _Mode(text=True, nullable=typed.nullable)
        if key in _VALUE_KEYS:
            return _DATA
    elif key in ("default", "example") and "type" in around:
        fields: list[Any] = value.value if isinstance(value, yaml.MappingNode) else []
        if not any(getattr(pair[0], "value", None) == "type" for pair in fields):
            return _DATA
    if key == "enum" and isinstance(value, yaml.SequenceNode):
        return _Mode(text=mode.text, nullable=mode.nullable)
    return _Mode()


def _text_type(node: yaml.Node | None) -> _Mode | None:
    """Return the mode for a `type` that accepts text only."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    names = {word.lower() for word in _WORD.findall(str(node.value))}
    if not names & _TEXT_TYPES or names - _TEXT_TYPES - _AROUND_TEXT:
        return None
    return _Mode(text=True, nullable=bool(names & _NULL_TYPES))


def _is_named_oddly(node: yaml.Node) -> bool:
    """Return whether YAML would read something other than text here."""
    kind = node.tag.removeprefix(_TAG)
    return isinstance(node, yaml.ScalarNode) and (
        kind in ("bool", "int", "float", "timestamp")
    )
