"""Read JSON or NDJSON bytes into a Polars data frame.

Python parses the file and checks every value: Polars' inference would merge 1 and true,
round a long integer next to a fraction, and refuse a list next to a number. A column
whose values have no common type becomes text, with a warning through `warn`. The caller
passes Polars, since it may not be installed.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, cast

from neuraxis.assets.readers import limits
from neuraxis.errors import CommandError
from neuraxis.formatting import quote
from neuraxis.parsing.surrogates import whole_pairs

_FIELDS = 500
"""Maximum fields of the objects in one column, each a Polars column."""
_DEPTH = 50
_AT_ONCE = 1000
"""Rows that are read and converted together."""
_EXACT = 2**53
"""Largest integer range that floating point represents exactly."""
_WORDS = {bool: "true or false", int: "numbers", float: "numbers", str: "texts"}
_MAY_OVERFLOW = re.compile(rb"[eE]\+?\d{3}|\d{300}")
_NAMED_COLUMNS = 10
"""Maximum columns that a warning names."""
Warn = Callable[[str], None]


class _Uneven(Exception):
    """Error: the values have no common type; the message lists their types."""


def json_frame(polars: Any, data: bytes, ending: str, most: int, warn: Warn) -> Any:
    """Return the table, with at most one row more than `most`.

    Args:
        polars: the library.
        data: the whole file, in UTF-8 without a mark.
        ending: of `.json` the whole file may be one list of objects or one object.
        most: maximum number of rows.
        warn: receives the names of columns that became text.

    Raises:
        CommandError: it is not JSON, or not a table.
    """
    table = _table(data, ending, most, None)
    uneven: dict[str, str] = {}
    large = _MAY_OVERFLOW.search(data)
    if large and any(_overflowed(values) for values in table.values()):
        exact = _table(data, ending, most, _number_or_text)
        # Python also writes `Infinity`; both mean the same number.
        for name in [name for name in table if table[name] != exact[name]]:
            uneven[name] = "numbers too large to compute with"
        table = exact
    columns_: dict[str, Any] = {}
    for name in list(table):
        values = table.pop(name)  # Frees the memory before the next column is made.
        kind = polars.String
        if name not in uneven:
            try:
                kind = _type(polars, values)
            except _Uneven as reason:
                uneven[name] = str(reason)
        if name in uneven:
            values = [None if item is None else _text(item) for item in values]
        column = _series(polars, _whole(name), values, kind)
        # Replacing lone surrogates may make two names equal.
        while column.name in columns_:
            column = column.alias(f"{column.name}_")
        columns_[column.name] = column
    if uneven:
        warn(_warning_text(uneven))
    return polars.DataFrame(columns_)


def _warning_text(uneven: dict[str, str]) -> str:
    shown = list(uneven.items())[:_NAMED_COLUMNS]
    reasons = "; ".join(f"{quote(name)} holds {reason}" for name, reason in shown)
    others = (
        f"; and {len(uneven) - _NAMED_COLUMNS} more"
        if len(uneven) > _NAMED_COLUMNS
        else ""
    )
    return (
        f"Columns that were read as text, what is no text in them as its JSON: "
        f"{reasons}{others}."
    )


# --- bytes to columns ------------------------------------------------------------


def _table(
    data: bytes, ending: str, most: int, number: Callable[[str], Any] | None
) -> dict[str, list[Any]]:
    """Return the columns as lists of values, all of the same length."""
    columns: dict[str, list[Any]] = {}
    rows = 0
    for where, block in _blocks(data, ending, number):
        if set(map(type, block)) - {dict}:
            at, row = next(
                pair for pair in enumerate(block) if type(pair[1]) is not dict
            )
            raise CommandError(
                f'{where(at)}: expected an object such as {{"city": "Lyon"}}, got '
                f"{quote(row)}: a table has one object for each row."
            )
        after = rows + len(block)
        for name in dict.fromkeys(chain.from_iterable(block)):
            if name not in columns:
                limits.check(after, len(columns) + 1, len(data), limits.JSON_CELL)
                columns[name] = [None] * rows
        for name, column in columns.items():
            column.extend([row.get(name) for row in block])
        rows = after
        if rows > most:
            break
        limits.check(rows, len(columns), len(data), limits.JSON_CELL)
    return columns


def _blocks(
    data: bytes, ending: str, number: Callable[[str], Any] | None
) -> Iterator[tuple[Callable[[int], str], list[Any]]]:
    """Yield blocks of rows, each with its place in the file."""
    if ending == ".json" and data.strip():
        try:
            value = _parsed(data, "The file", number)
        except CommandError:
            first = data.lstrip().partition(b"\n")[0].rstrip()
            if not (first.startswith(b"{") and first.endswith(b"}")):
                raise  # The file may be NDJSON under another ending.
        else:
            rows = cast("list[Any]", value if isinstance(value, list) else [value])
            for start in range(0, len(rows), _AT_ONCE):
                some = rows[start : start + _AT_ONCE]
                yield lambda at, start=start: f"Row {start + at + 1}", some
            return
    file = io.BytesIO(data)
    start = 0
    while block := list(islice(file, _AT_ONCE)):
        lines = [
            (place, line)
            for place, line in enumerate(block, start + 1)
            if not line.isspace()
        ]
        start += len(block)
        places = [place for place, _ in lines]
        yield lambda at, places=places: f"Line {places[at]}", _of_lines(lines, number)


def _of_lines(
    lines: list[tuple[int, bytes]], number: Callable[[str], Any] | None
) -> list[Any]:
    """Yield the value of each line with its line number."""
    joined = b",".join(line for _, line in lines)
    try:  # Parsing a block at once takes half the time.
        values = _loads(f"[{joined.decode()}]", number)
        if len(values) == len(lines):
            return values
    except (ValueError, RecursionError):
        pass  # The loop below finds the faulty line.
    return [_parsed(line, f"Line {place}", number) for place, line in lines]


def _loads(text: str, number: Callable[[str], Any] | None) -> Any:
    return json.loads(text, parse_float=number, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, or refuse one that has a key twice."""
    made: dict[str, Any] = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ValueError(
                    f"the key {quote(name)} appears twice in one object; write it once"
                )
            seen.add(name)
    return made


def _parsed(text: bytes, where: str, number: Callable[[str], Any] | None) -> Any:
    try:
        return _loads(text.decode(), number)
    except json.JSONDecodeError as error:
        at = f", line {error.lineno}, column {error.colno}"
        raise CommandError(f"{where} is no JSON: {error.msg}{at}.") from None
    except RecursionError:
        raise CommandError(f"{where} is nested too deeply.") from None
    except ValueError as error:  # a key twice, or an integer too long for Python
        raise CommandError(f"{where} cannot be read: {str(error)[:200]}.") from None


def _number_or_text(text: str) -> float | str:
    """Return the number as text if it overflows, such as 1e400."""
    number = float(text)
    return number if math.isfinite(number) else text


def _overflowed(values: list[Any]) -> bool:
    """Check for an infinite number at any depth."""
    pending: list[Any] = [values]
    while pending:
        item = pending.pop()
        if isinstance(item, float):
            if math.isinf(item):
                return True
            continue
        inner = cast("list[Any]", item.values() if isinstance(item, dict) else item)
        if {float, dict, list} & set(map(type, inner)):
            pending += [part for part in inner if isinstance(part, float | dict | list)]
    return False


# --- values to types ---------------------------------------------------------------


def _type(polars: Any, values: list[Any], depth: int = 0) -> Any:
    """Return the common type of all values.

    Raises:
        _Uneven: there is none.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return polars.Null
    if kinds <= {int, float}:
        return _type_of_numbers(polars, values, kinds)
    if len(kinds) > 1:
        raise _Uneven(_words(kinds))
    if depth > _DEPTH:
        raise _Uneven("values nested deeply")
    match kinds.pop().__name__:
        case "bool":
            return polars.Boolean
        case "str":
            return polars.String
        case "list":
            inner = list(chain.from_iterable(filter(None, values)))
            return polars.List(_type(polars, inner, depth + 1))
        case _:
            return _type_of_objects(polars, values, depth)


def _type_of_numbers(polars: Any, values: list[Any], kinds: set[Any]) -> Any:
    if int not in kinds:
        return polars.Float64
    integers = [item for item in values if isinstance(item, int)]
    least, greatest = min(integers), max(integers)
    if float in kinds:
        if max(-least, greatest) > _EXACT:
            raise _Uneven("fractions and integers of more than 15 digits")
        return polars.Float64
    if least >= -(2**63) and greatest < 2**63:
        return polars.Int64
    if least >= -(2**127) and greatest < 2**127:
        return polars.Int128
    raise _Uneven("integers of more than 38 digits")


def _type_of_objects(polars: Any, values: list[Any], depth: int) -> Any:
    fields: dict[str, list[Any]] = {}
    for item in filter(None, values):
        for name, value in item.items():
            fields.setdefault(name, []).append(value)
        if len(fields) > _FIELDS:
            raise _Uneven(f"objects with more than {_FIELDS} fields in all")
    if not fields:
        raise _Uneven("objects without a field")
    return polars.Struct(
        {name: _type(polars, inner, depth + 1) for name, inner in fields.items()}
    )


def _words(kinds: set[Any]) -> str:
    words = sorted(
        {_WORDS.get(kind, "lists" if kind is list else "objects") for kind in kinds}
    )
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _series(polars: Any, name: str, values: list[Any], kind: Any) -> Any:
    def made(values: list[Any]) -> Any:
        if not kind.is_nested():
            return polars.Series(name, values, dtype=kind, strict=True)
        # The only constructor that accepts 1 next to 2.5 in a list; it loses
        # nothing, since all values have this type.
        rows = [{name: item} for item in values]
        return polars.from_dicts(rows, schema={name: kind}, strict=False)[name]

    try:
        return made(values)
    except UnicodeEncodeError:
        return made(_whole(values))


def _whole(value: Any) -> Any:
    """Replace lone surrogates, which no table can hold."""
    if isinstance(value, str):
        return whole_pairs(value)
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value).items()
        return {_whole(name): _whole(item) for name, item in entries}
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
