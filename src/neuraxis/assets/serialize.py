"""Save assets as immutable files: arrays raw, tables as Arrow, no pickle.

Layout: 8 bytes magic, 8 bytes length of the header (little endian), the header as JSON
(a tree and a table of parts), then the parts, each at a multiple of 64 bytes so that an
array can be used in place. A file is written under another name and renamed; it is
never changed. `load` maps it into memory: an array of it is read-only and costs no
copy.

The tree consists of tagged lists, so that no text of an asset can be mistaken for a
tag: `["j", json]`, `["d", [[key, node], …]]`, `["l", […]]`, `["t", […]]`, `["p",
index]`, `["x", kind, text]`. A long list of nodes or pairs is replaced by `["c",
[index, …]]`: its slices are separate parts, because the JSON library blocks the
interpreter for a whole text.
"""

from __future__ import annotations

import importlib
import json
import math
import mmap
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from msgspec import Struct

from neuraxis.assets.unfolding import unfolds
from neuraxis.errors import StorageError
from neuraxis.formatting import class_name, with_article

MAGIC = b"NXBUNDL1"
ALIGN = 64
DEPTH = 100
HEADER_BYTES = 64 * 1024 * 1024
SLICE = 1000
"""Nodes of one list that are written in one JSON text."""
_HEAD = struct.Struct("<8sQ")
_LONG_TEXT = 1024
_ARRAY_KINDS = "biufcSUmM"
"""NumPy kinds without Python objects in them."""

_SCALARS = (type(None), bool, int, float, str)

_EXACT: Mapping[str, Callable[[str], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "decimal": Decimal,
    "uuid": UUID,
    "float": float,
}


def _library(name: str) -> Any:
    """Import an optional package, untyped, when one of its values occurs."""
    return importlib.import_module(name)


class CannotBeSaved(Exception):
    """Error: the value contains an object without a safe file form."""


class _Writer(Struct):
    parts: list[dict[str, Any]] = []
    data: list[Any] = []
    offset: int = 0

    def add(self, kind: str, data: Any, **meta: Any) -> list[Any]:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self.parts.append(
            {"kind": kind, "offset": self.offset, "bytes": view.nbytes, **meta}
        )
        self.data.append(view)
        self.offset += -(-view.nbytes // ALIGN) * ALIGN
        return ["p", len(self.parts) - 1]

    def listed(self, nodes: Iterator[list[Any]], count: int) -> list[Any]:
        """Return nodes as a list; a long one as indices of parts."""
        if count <= SLICE:
            return list(nodes)
        parts: list[int] = []
        while part := list(islice(nodes, SLICE)):
            self.add("tree", json.dumps(part).encode())
            parts.append(len(self.parts) - 1)
        return ["c", parts]


_BINARY = getattr(os, "O_BINARY", 0)


def save(value: Any, path: Path) -> int:
    """Write the value; return the number of bytes.

    Raises:
        CannotBeSaved: it contains an object without a safe file form.
        StorageError: the file cannot be written.
    """
    if unfolds(value):
        raise CannotBeSaved("it holds the same parts in too many places")
    writer = _Writer()
    try:
        tree = _tree(value, writer, 0)
        header = json.dumps({"tree": tree, "parts": writer.parts}).encode()
    except ValueError as error:  # an integer with thousands of digits
        raise CannotBeSaved(str(error)) from None
    if len(header) > HEADER_BYTES:
        raise CannotBeSaved("it has too many parts: a table or an array would fit")
    start = -(-(_HEAD.size + len(header)) // ALIGN) * ALIGN
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)  # left by a killed process
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o600
        )
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(MAGIC, len(header)))
            file.write(header)
            file.write(b"\0" * (start - _HEAD.size - len(header)))
            for part, data in zip(writer.parts, writer.data, strict=True):
                file.write(data)
                file.write(b"\0" * (-part["bytes"] % ALIGN))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(
            f"the asset file {path} cannot be written: {error}"
        ) from error
    return start + writer.offset


def _tree(value: Any, writer: _Writer, depth: int) -> list[Any]:
    if depth > DEPTH:
        raise CannotBeSaved(f"it is nested deeper than {DEPTH}, or holds itself")
    match value:
        case float() if type(value) is float and not math.isfinite(value):
            return ["x", "float", repr(value)]
        case str() if len(value) > _LONG_TEXT:
            return writer.add("text", value.encode("utf-8", "surrogatepass"))
        case _ if type(value) in _SCALARS:
            return ["j", value]
        case dict():
            return _dict_tree(cast("dict[Any, Any]", value), writer, depth)
        # Exact types only: subclasses have more than their items.
        case _ if value.__class__ in (list, tuple):
            items = cast("Sequence[Any]", value)
            tag = "l" if isinstance(value, list) else "t"
            nodes = (_tree(item, writer, depth + 1) for item in items)
            return [tag, writer.listed(nodes, len(items))]
        case bytes() | bytearray() | memoryview():
            return writer.add("bytes", bytes(cast("bytes", value)))
        case datetime():
            text = value.isoformat()
            if datetime.fromisoformat(text).isoformat() != text:
                raise CannotBeSaved("a date with nanoseconds has no form in a file")
            return ["x", "datetime", text]
        case date():
            return ["x", "date", value.isoformat()]
        case time():
            return ["x", "time", value.isoformat()]
        case Decimal():
            return ["x", "decimal", str(value)]
        case UUID():
            return ["x", "uuid", str(value)]
        case _:
            return _native(value, writer)


def _dict_tree(value: dict[Any, Any], writer: _Writer, depth: int) -> list[Any]:
    if not all(type(key) is str for key in value):
        raise CannotBeSaved("it holds a mapping with keys that are no texts")
    pairs = ([key, _tree(item, writer, depth + 1)] for key, item in value.items())
    return ["d", writer.listed(pairs, len(value))]


def _native(value: Any, writer: _Writer) -> list[Any]:
    """Serialise arrays, tables and pictures by the module of their class."""
    cls = cast("type[Any]", type(value))
    package = cls.__module__.partition(".")[0]
    if package == "numpy" and hasattr(value, "dtype"):
        return _numpy_tree(value, writer)
    if package in ("pandas", "polars", "pyarrow"):
        return _table_tree(value, package, cls.__name__, writer)
    if package == "PIL":
        has_colour = "transparency" in value.info and value.mode in ("L", "RGB")
        is_indexed = value.mode in ("P", "PA")
        image = value.convert("RGBA") if is_indexed or has_colour else value
        return writer.add(
            "image", image.tobytes(), mode=image.mode, size=list(image.size)
        )
    raise CannotBeSaved(f"a {class_name(cls)} has no form in a file")


def _numpy_tree(value: Any, writer: _Writer) -> list[Any]:
    numpy, dtype = _library("numpy"), value.dtype
    if dtype.kind not in _ARRAY_KINDS:
        raise CannotBeSaved(f"an array of {dtype} holds Python objects")
    if isinstance(value, numpy.generic):
        scalar = numpy.asarray(value)
        return writer.add("number", scalar.tobytes(), dtype=scalar.dtype.str)
    # a subclass would lose its mask or matrix rules
    if type(value) is not numpy.ndarray:
        raise CannotBeSaved(
            f"{with_article(type(value).__qualname__)} has no form in a file"
        )
    plain = numpy.ascontiguousarray(value)
    raw = plain.view("u1").reshape(-1) if plain.size else b""
    if dtype.kind in "mM" and plain.size:
        raw = plain.view("i8").view("u1").reshape(-1)
    return writer.add("array", raw, dtype=dtype.str, shape=list(value.shape))


def _table_tree(value: Any, package: str, name: str, writer: _Writer) -> list[Any]:
    try:
        arrow = _library("pyarrow")
        ipc = _library("pyarrow.ipc")
    except ImportError:
        raise CannotBeSaved("saving a table needs the package pyarrow") from None
    if package == "pandas" and name == "DataFrame":
        _check_cells(value)
        try:
            table = arrow.Table.from_pandas(value)
        except (arrow.ArrowException, TypeError, OverflowError) as error:
            raise CannotBeSaved(f"a column has no form in a file: {error}") from None
    elif package == "polars" and name == "DataFrame":
        if _library("polars").Object in value.dtypes:  # Arrow would get addresses
            raise CannotBeSaved("a column of Python objects has no form in a file")
        table = value.to_arrow()
    elif package == "pyarrow" and name == "Table":
        table = value
    else:
        raise CannotBeSaved(
            f"{with_article(f'{package}.{name}')} has no form in a file"
        )
    sink = arrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return writer.add("table", sink.getvalue(), library=package)


def _check_cells(frame: Any) -> None:
    """Refuse cells that Arrow would change."""
    for at, kind in enumerate(frame.dtypes):
        if str(kind) == "object" and not _is_kept(frame.iloc[:, at]):
            raise CannotBeSaved("a column of Python objects has no form in a file")


def _is_kept(cells: Iterable[Any]) -> bool:
    """Return whether Arrow keeps cells as they are, at any depth.

    It fills in missing keys, makes a set a list, and crashes at a list in itself.
    """
    for _ in range(DEPTH):
        kinds = set(map(type, cells))
        if not kinds.isdisjoint((dict, set, frozenset, tuple)):
            return False
        if list not in kinds:
            return True
        lists = [cast("list[Any]", cell) for cell in cells if type(cell) is list]
        once = {id(cell): cell for cell in lists}
        cells = list(chain.from_iterable(once.values()))
    return False


def load(path: Path) -> Any:
    """Load a value that `save` wrote; its arrays are read-only.

    The file is untrusted: every offset, type and depth is checked, tables are
    validated completely.

    Raises:
        StorageError: the file is missing, cut off, or was changed.
    """
    try:
        with path.open("rb") as file:
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise StorageError(f"the asset file {path} cannot be read: {error}") from error
    try:
        return _load(mapped)
    except StorageError:
        raise
    except ImportError as error:
        raise StorageError(f"reading the asset file {path} needs {error}") from error
    except (
        ArithmeticError,
        LookupError,
        MemoryError,
        OSError,  # PyArrow raises it for bytes that are not a table.
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise StorageError(f"the asset file {path} is damaged: {error}") from error


def _load(mapped: memoryview) -> Any:
    magic, length = _HEAD.unpack_from(mapped, 0)
    if magic != MAGIC or length > min(HEADER_BYTES, len(mapped)):
        raise ValueError("it is no asset file of this version")
    header = json.loads(bytes(mapped[_HEAD.size : _HEAD.size + length]))
    start = -(-(_HEAD.size + length) // ALIGN) * ALIGN
    parts: list[Any] = []
    for part in header["parts"]:
        offset, size = part["offset"], part["bytes"]
        if (
            not isinstance(offset, int)
            or not isinstance(size, int)
            or offset < 0
            or size < 0
            or offset % ALIGN
            or start + offset + size > len(mapped)
        ):
            raise ValueError("a part lies outside the file")
        begin = start + offset
        parts.append((part, mapped[begin : begin + size]))
    return _value(header["tree"], parts, 0)


def _value(node: Any, parts: list[Any], depth: int) -> Any:
    if depth > DEPTH:
        raise ValueError("it is nested too deep")
    tag: Any = node[0]
    content: Any = node[1]
    if tag in ("d", "l", "t") and content and content[0] == "c":
        content = [item for index in content[1] for item in _slice(parts, index)]
    match tag:
        case "j" if content is None or isinstance(content, bool | int | float | str):
            return content
        case "d":
            return {str(key): _value(item, parts, depth + 1) for key, item in content}
        case "l":
            return [_value(item, parts, depth + 1) for item in content]
        case "t":
            return tuple(_value(item, parts, depth + 1) for item in content)
        case "x":
            return _EXACT[str(content)](node[2])
        case "p" if isinstance(content, int) and content >= 0:
            part, data = parts[content]
            return _READERS[part["kind"]](part, data)
        case _:
            raise ValueError(f"unknown tag {tag!r}")


def _slice(parts: list[Any], index: int) -> list[Any]:
    """Remove a slice of a long list from the parts.

    Each is used once, so that none contains itself.
    """
    nodes, parts[index] = parts[index], None
    if nodes[0]["kind"] != "tree":
        raise ValueError("a slice of a list is missing")
    return json.loads(bytes(nodes[1]))


def _dtype(part: Mapping[str, Any]) -> Any:
    dtype = _library("numpy").dtype(str(part["dtype"]))
    if dtype.kind not in _ARRAY_KINDS or dtype.hasobject:
        raise ValueError(f"an array of {dtype} is refused")
    return dtype


def _read_number(part: Mapping[str, Any], data: memoryview) -> Any:
    """Return one NumPy scalar, such as a mean or a count."""
    dtype = _dtype(part)
    if len(data) != dtype.itemsize:
        raise ValueError("a number does not fit its bytes")
    return _library("numpy").frombuffer(data, dtype)[0]


def _read_array(part: Mapping[str, Any], data: memoryview) -> Any:
    numpy, dtype = _library("numpy"), _dtype(part)
    shape = tuple(int(size) for size in part["shape"])
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(
        data
    ):
        raise ValueError("an array's shape does not fit its bytes")
    return numpy.frombuffer(data, dtype=dtype).reshape(shape)


def _read_table(part: Mapping[str, Any], data: memoryview) -> Any:
    arrow, ipc = _library("pyarrow"), _library("pyarrow.ipc")
    table = ipc.open_stream(arrow.py_buffer(data)).read_all()
    # Bytes from another process crash the reader unless fully validated.
    table.validate(full=True)
    match part["library"]:
        case "pandas":
            # else 2**53 + 1 beside None would become a rounded fraction
            return table.to_pandas(integer_object_nulls=True)
        case "polars":
            return _library("polars").from_arrow(table)
        case _:
            return table


def _read_image(part: Mapping[str, Any], data: memoryview) -> Any:
    pictures = _library("PIL.Image")
    width, height = (int(size) for size in part["size"])
    limit = pictures.MAX_IMAGE_PIXELS
    if width < 1 or height < 1 or (limit is not None and width * height > limit):
        raise ValueError("a picture's size is refused")
    return pictures.frombytes(str(part["mode"]), (width, height), bytes(data))


def _read_text(part: Mapping[str, Any], data: memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")


def _read_bytes(part: Mapping[str, Any], data: memoryview) -> bytes:
    return bytes(data)


_READERS: Mapping[str, Callable[[Mapping[str, Any], memoryview], Any]] = {
    "array": _read_array,
    "number": _read_number,
    "table": _read_table,
    "image": _read_image,
    "text": _read_text,
    "bytes": _read_bytes,
}
