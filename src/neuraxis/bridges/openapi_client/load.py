"""Load an OpenAPI document with its references.

Addresses are fetched by the guarded client only. References to other documents are
followed only in one folder, usually the file's, or on the URL's host.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from neuraxis.bridges.openapi_client.tolerant_access import CannotImport, Node, as_text
from neuraxis.errors import ConfigError
from neuraxis.parsing.json_access import as_map
from neuraxis.sandbox.http import client
from neuraxis.specs import Json

DOCUMENT_BYTES = 30 * client.MIB
"""Maximum bytes of a document."""
MOST_FETCHED = 40
"""Maximum other documents that are fetched for one import."""
MOST_FILES = 5_000
"""Maximum other documents that are read from files."""
MOST_NODES = 3_000_000
"""Maximum values in all documents of an import, after YAML aliases are followed."""
MOST_BYTES = 100 * client.MIB
"""Maximum bytes of all documents of an import."""
_LIMITS = client.Limits(
    seconds=60,
    body_bytes=DOCUMENT_BYTES,
    content_types=(*client.TEXT_TYPES, "application/octet-stream", "application/*", ""),
)


class Room(msgspec.Struct, kw_only=True):
    """What all documents of one import may still hold."""

    nodes: int = msgspec.field(default_factory=lambda: MOST_NODES)
    bytes: int = msgspec.field(default_factory=lambda: MOST_BYTES)

    def take(self, place: str, *, nodes: int = 0, size: int = 0) -> None:
        """Count values or bytes of a document.

        Raises:
            ConfigError: together the documents are larger than the limits allow.
        """
        self.nodes -= nodes
        self.bytes -= size
        if self.nodes < 0 or self.bytes < 0:
            raise ConfigError(
                f"{place}: expected at most {MOST_NODES} values and {MOST_BYTES} bytes "
                "in all documents of one import, with YAML aliases followed, got more; "
                "import a part of them"
            )


class Document(msgspec.Struct, kw_only=True):
    """Document, and those that it refers to."""

    place: str
    """The file or URL that it was read from."""
    root: Node
    others: dict[str, Json] = {}
    """Other documents by their place, or why one cannot be read."""
    allow_hosts: tuple[str, ...] = ()
    folder: Path | None = None
    """The folder in which files are read; None: the document's own."""
    room: Room = msgspec.field(default_factory=Room)
    is_mapping: bool = False
    """Whether the program passed it itself, so that no file is beside it."""

    def find(self, ref: str, base: str = "") -> tuple[Json, str, str]:
        """Return a reference's target, its document's place, and its pointer.

        Args:
            ref: the text of a `$ref`.
            base: the place of the document with the reference; empty: the first one.

        Raises:
            CannotImport: the target is missing, or must not be read.
        """
        base = base or self.place
        address, _, pointer = ref.partition("#")
        place = self._joined(base, address) if address else base
        node: Json = self._tree(place)
        for part in unquote(pointer).split("/"):
            if not part:
                continue
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping) and key in node:
                node = cast("Node", node)[key]
            elif (
                isinstance(node, list)
                and key.isdecimal()
                and len(key) < 10
                and int(key) < len(cast("list[Json]", node))
            ):
                node = cast("list[Json]", node)[int(key)]
            else:
                raise CannotImport(f"$ref {ref[:200]!r}: there is nothing at {part!r}")
        return node, place, pointer

    def deref(self, value: Json, base: str = "") -> tuple[Node, str]:
        """Return an object with its `$ref` followed, and its place.

        Raises:
            CannotImport: the reference has no target, or leads to itself.
        """
        base = base or self.place
        for _ in range(20):
            node = as_map(value)
            ref = node.get("$ref")
            if not isinstance(ref, str):
                return node, base
            value, base, _ = self.find(ref, base)
        raise CannotImport("$ref: it leads from reference to reference, without end")

    def _joined(self, base: str, address: str) -> str:
        if is_url(base):
            return urljoin(base, address)
        if is_url(address):
            raise CannotImport(
                f"$ref {address[:200]!r}: a file refers to a web address"
            )
        return str((Path(base).parent / unquote(address)).resolve())

    def _tree(self, place: str) -> Json:
        if place == self.place:
            return self.root
        if place not in self.others:
            self._check(place)
            try:
                self.room.take(place)
                data = read(place, self.allow_hosts)
                self.others[place] = parse(data, place, self.room)
            except ConfigError as error:
                self.others[place] = CannotImport(f"$ref: {error}")
        found = self.others[place]
        if isinstance(found, CannotImport):
            raise CannotImport(str(found))
        return found

    def _check(self, place: str) -> None:
        most = MOST_FETCHED if is_url(self.place) else MOST_FILES
        if len(self.others) >= most:
            raise CannotImport(f"$ref: more than {most} other documents")
        if self.is_mapping:
            raise CannotImport(
                f"$ref {place[:200]!r}: the document was passed as a mapping, so no "
                "file is beside it; pass its file or URL instead"
            )
        if is_url(self.place):
            home, other = urlsplit(self.place), urlsplit(place)
            if (home.scheme, home.netloc) != (other.scheme, other.netloc):
                raise CannotImport(
                    f"$ref {place[:200]!r}: only documents of the first one's host "
                    "are read"
                )
            return
        folder = self.folder or Path(self.place).resolve().parent
        if not Path(place).is_relative_to(folder):
            raise CannotImport(
                f"$ref {place[:200]!r}: only documents in {folder} are read; the "
                "option folder=FOLDER names another folder around them"
            )


def is_url(text: str) -> bool:
    """Check whether the text is a web address."""
    return text.lower().startswith(("http://", "https://"))


def load(
    source: str | Path | Node,
    *,
    allow_hosts: Collection[str] = (),
    folder: str | Path | None = None,
) -> tuple[Document, Node]:
    """Return the document, and the `ai-plugin.json` manifest around it or `{}`.

    Raises:
        ConfigError: it cannot be read, is not an OpenAPI document, or is not in the
            folder.
    """
    if isinstance(source, Mapping):
        tree, place = source, "document"
        root = _checked(tree, place)
        _around(folder, place)
        return Document(place=place, root=root, is_mapping=True), {}
    place, room = str(source), Room()
    tree = as_map(parse(read(place, allow_hosts), place, room))
    manifest: Node = {}
    api = as_map(tree.get("api"))
    if "name_for_model" in tree or (api and "paths" not in tree):
        manifest, place = tree, _described(place, as_text(api.get("url")))
        tree = as_map(parse(read(place, allow_hosts), place, room))
    root, hosts = _checked(tree, place), tuple(allow_hosts)
    inside = _around(folder, place)
    document = Document(
        place=place, root=root, allow_hosts=hosts, room=room, folder=inside
    )
    return document, manifest


def _described(place: str, address: str) -> str:
    """Return the place of a manifest's document.

    Raises:
        ConfigError: it is neither a web address nor beside the manifest.
    """
    if is_url(place):
        address = urljoin(place, address) if address else ""
    else:
        # a folder often has a copy of the document that is meant by the address
        beside = (Path(place).parent / address.rpartition("/")[2]).resolve()
        if beside.is_file() and beside.parent == Path(place).resolve().parent:
            return str(beside)
    if not is_url(address):
        raise ConfigError(
            f"{place}: expected the manifest's api.url to be a web address, or to name "
            f"a file beside it, got {address[:200]!r}; name the document itself instead"
        )
    return address


def _around(folder: str | Path | None, place: str) -> Path | None:
    """Return a folder, links resolved, that the document is in."""
    if folder is None:
        return None
    path = Path(folder).expanduser().resolve()
    if is_url(place) or not Path(place).resolve().is_relative_to(path):
        raise ConfigError(
            f"openapi: folder: expected a folder around the file {place}, got {folder}"
        )
    return path


def _checked(tree: Node, place: str) -> Node:
    version = str(tree.get("openapi") or tree.get("swagger") or "")
    if not isinstance(tree.get("paths"), Mapping):
        raise ConfigError(
            f"{place}: expected an OpenAPI document with `paths`, got "
            + (f"version {version[:20]} without any" if version else "something else")
        )
    if version and not version.startswith(("2", "3", "1")):
        raise ConfigError(
            f"{place}: expected OpenAPI 2.0, 3.0 or 3.1, got {version[:20]!r}"
        )
    return tree


def read(place: str, allow_hosts: Collection[str] = ()) -> bytes:
    """Return the bytes of a document.

    Raises:
        ConfigError: there is no such file, or the server does not send it.
    """
    if not is_url(place):
        path = Path(place).expanduser()
        try:
            with path.open("rb") as stream:
                data = stream.read(DOCUMENT_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(f"{place}: cannot be read: {reason}") from None
        if len(data) > DOCUMENT_BYTES:
            raise ConfigError(f"{place}: expected at most {DOCUMENT_BYTES} bytes")
        return data
    try:
        answer = client.fetch(
            place,
            limits=_LIMITS,
            allowed_hosts=allow_hosts,
            accept="application/json, application/yaml, */*;q=0.5",
        )
    except (client.RequestRefused, client.RequestFailed) as error:
        raise ConfigError(f"{place}: cannot be fetched: {error}") from None
    if answer.status >= 400 or answer.truncated:
        reason = "it is too long" if answer.truncated else f"status {answer.status}"
        raise ConfigError(f"{place}: cannot be fetched: {reason}")
    return answer.body


def parse(data: bytes, place: str, room: Room | None = None) -> Json:
    """Return the JSON or YAML as JSON values; every key is text.

    Args:
        data: the document's bytes.
        place: the file or URL that they were read from.
        room: what the import may still hold; default: as for a single document.

    Raises:
        ConfigError: it is neither, or larger than the limits allow.
    """
    room = room or Room()
    room.take(place, size=len(data))
    text = data.decode("utf-8-sig", errors="replace")
    try:
        parsed: Json = json.loads(
            text, strict=False, parse_float=_number, parse_constant=_number
        )
    except (ValueError, RecursionError):
        pass
    else:
        # every value follows one of these characters
        room.take(place, nodes=sum(map(text.count, ",[{")))
        return parsed
    import yaml  # most documents are JSON

    untyped: Any = yaml
    try:
        loader = getattr(untyped, "CBaseLoader", yaml.BaseLoader)
        tree: Any = untyped.compose(text, Loader=loader)
        return None if tree is None else _Plain(place=place, room=room).value(tree)
    except yaml.YAMLError as error:
        message = " ".join(str(error).split())[:300]
        raise ConfigError(f"{place}: neither JSON nor YAML: {message}") from None
    except (RecursionError, CannotImport, ValueError) as error:
        message = str(error) or "nested too deep"
        raise ConfigError(f"{place}: cannot be read as YAML: {message[:300]}") from None


_CONSTANTS: Mapping[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class _Plain(msgspec.Struct, kw_only=True):
    """YAML by the core schema: no dates, and keys are text."""

    place: str
    room: Room

    def value(self, node: Any, depth: int = 0) -> Json:
        """Return the value of a node; aliases are followed and counted."""
        self.room.take(self.place, nodes=1)
        if depth > 200:
            raise CannotImport("nested too deep")
        kind = node.id
        if kind == "sequence":
            return [self.value(item, depth + 1) for item in node.value]
        if kind == "mapping":
            merged: dict[str, Json] = {}
            for key, item in node.value:
                name = str(key.value) if key.id == "scalar" else ""
                inner = self.value(item, depth + 1)
                if name == "<<" and isinstance(inner, dict):
                    merged = {**cast("dict[str, Json]", inner), **merged}
                else:
                    merged[name] = inner
            return merged
        value = _scalar(node.value, plain=not node.style)  # None, or "" from libyaml
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        # 007, +1 and 1.10 are mostly texts, and would lose characters as numbers
        return node.value if is_number and str(value) != node.value else value


def _number(text: str) -> Json:
    """Return a number that JSON can represent; an infinite one stays text."""
    return _scalar(text, plain=True)


def _scalar(text: str, *, plain: bool) -> Json:
    if not plain:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    sign = text[1:] if text[:1] in "+-" else text
    if sign[:1].isdigit() or sign[:1] == ".":
        try:
            if sign.isascii() and sign.isdecimal() and len(sign) < 30:
                return int(text)
            number = float(text.replace("_", "x"))
            if number - number == 0:  # finite
                return number
        except ValueError:
            return text
    return text
