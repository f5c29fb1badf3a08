"""JSON and NDJSON as tables: nothing is rounded, bent or lost without a word."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import pytest

from neuraxis.assets.readers.tables import read_frame
from neuraxis.errors import CommandError

polars: Any = pytest.importorskip("polars")
SHARED = Path(__file__).parents[4] / "shared" / "data"


def _read(text: str, ending: str = ".json") -> tuple[Any, list[str]]:
    told: list[str] = []
    return read_frame(polars, text.encode(), ending, warn=told.append), told


@pytest.mark.parametrize(
    ("cells", "texts", "what"),
    [
        ('[1], 2, {"b": "x"}', ["[1]", "2", '{"b": "x"}'], "lists, numbers and obj"),
        ('1, true, "x"', ["1", "true", "x"], "numbers, texts and true or false"),
        ("1.5, true", ["1.5", "true"], "numbers and true or false"),
        ('[1, [2]], ["é"]', ["[1, [2]]", '["é"]'], "lists, numbers and texts"),
        ('{"b": 1}, {"b": "x"}', ['{"b": 1}', '{"b": "x"}'], "numbers and texts"),
        ("{}, null", ["{}", None], "objects without a field"),
        ("9007199254740993, 1.5", ["9007199254740993", "1.5"], "fractions and integ"),
        ("[9007199254740993, 1.5]", ["[9007199254740993, 1.5]"], "fractions and"),
        (f"{2**127}, 1", [str(2**127), "1"], "integers of more than 38"),
        ("1e400, 2.0", ["1e400", "2.0"], "numbers too large to compute with"),
    ],
)
def test_a_column_without_one_type_is_text_and_told(
    cells: str, texts: list[str | None], what: str
) -> None:
    """As its JSON; the other columns are what they are."""
    rows = [f'{{"a": {cell}, "n": 1}}' for cell in _cells(cells)]
    for text, ending in (
        (f"[{','.join(rows)}]", ".json"),
        ("\n".join(rows), ".jsonl"),
    ):
        frame, told = _read(text, ending)
        assert frame["a"].to_list() == texts
        assert str(frame.schema["n"]) == "Int64"
        assert len(told) == 1
        assert f'"a" holds {what}' in told[0]


def _cells(text: str) -> list[str]:
    """The values, apart at the commas of the first level."""
    found, depth = [""], 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        if char == "," and not depth:
            found.append("")
        else:
            found[-1] += char
    return found


def test_columns_of_one_type_keep_it_and_nothing_is_told() -> None:
    """Also within lists and objects; missing is empty, whole and broken go together."""
    frame, told = _read(
        '[{"i": 1, "f": 1, "t": "x", "b": true, "l": [1, 2.5], "o": {"x": 1}},'
        ' {"f": 2.5, "l": [], "o": {"y": [{"z": null}]}, "long": 18446744073709551616},'
        ' {"b": null, "n": NaN, "f": -Infinity}]'
    )
    kinds = {name: str(kind) for name, kind in frame.schema.items()}
    assert not told
    assert kinds == {
        "i": "Int64",
        "f": "Float64",
        "t": "String",
        "b": "Boolean",
        "l": "List(Float64)",
        "long": "Int128",
        "n": "Float64",
        "o": "Struct({'x': Int64, 'y': List(Struct({'z': Null}))})",
    }
    assert frame["i"].to_list() == [1, None, None]
    assert frame["f"].to_list() == [1.0, 2.5, -math.inf]
    assert frame["l"].to_list() == [[1.0, 2.5], [], None]
    assert frame["o"].to_list()[0] == {"x": 1, "y": None}
    assert frame["long"][1] == 2**64


def test_a_column_that_begins_late_is_empty_before() -> None:
    """Rows are put into columns a thousand at a time."""
    lines = ['{"a": 1}'] * 1500 + ['{"b": 2}'] * 1000
    frame, _ = _read("\n".join(lines), ".ndjson")
    assert frame["a"].to_list() == [1] * 1500 + [None] * 1000
    assert frame["b"].to_list() == [None] * 1500 + [2] * 1000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(encoding: str) -> None:
    """Windows programs save JSON in theirs, too."""
    frame = read_frame(polars, '[{"Größe": "ü"}]'.encode(encoding), ".json")
    assert frame.to_dicts() == [{"Größe": "ü"}]


def test_lines_of_objects_are_read_under_the_name_json() -> None:
    """Many programs write them so."""
    assert _read('{"a": 1}\n{"a": 2}\n')[0]["a"].to_list() == [1, 2]


def test_half_a_character_is_shown_as_one_that_is_missing() -> None:
    """JavaScript cuts texts within an emoji; no table holds such a half."""
    frame, _ = _read('[{"a": "x\\ud83d", "\\ud83d": 1, "\\ud83e": [{"b": "\\ud83d"}]}]')
    assert frame.to_dicts() == [
        {"a": "x\ufffd", "\ufffd": 1, "\ufffd_": [{"b": "\ufffd"}]}
    ]


@pytest.mark.parametrize(
    ("text", "ending", "said"),
    [
        ('[{"a": 1}, 3]', ".json", "Row 2: expected an object .* got 3"),
        ('{"a": 1}\n\n[2]', ".jsonl", r"Line 3: expected an object .* got \[2\]"),
        ('{"a": 1}\n{"a": }', ".jsonl", "Line 2 is no JSON: Expecting value"),
        ('{"a": [1\n2]}', ".jsonl", "Line 1 is no JSON"),
        ('[{"a": 1}', ".json", "The file is no JSON"),
        ("[" * 100_000, ".json", "nested too deeply"),
        (f'[{{"a": {"1" * 5000}}}]', ".json", "cannot be read"),
    ],
)
def test_what_is_no_table_is_told_with_its_place(
    text: str, ending: str, said: str
) -> None:
    """A row that is no object, a line that is no JSON."""
    with pytest.raises(CommandError, match=said):
        _read(text, ending)


def test_names_that_are_other_in_each_row_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each new one is a column as long as the table."""
    monkeypatch.setattr(
        "neuraxis.assets.readers.limits.most_cells", lambda size, each: 10_000
    )
    with pytest.raises(CommandError, match="at most 10000 are read"):
        _read("\n".join(f'{{"k{n}": 0}}' for n in range(1000)), ".jsonl")


def test_objects_as_dictionaries_stay_text() -> None:
    """Polars would have a column for each of their keys."""
    rows = ",".join(f'{{"a": {{"k{n}": 0}}}}' for n in range(501))
    frame, told = _read(f"[{rows}]")
    assert frame["a"][500] == '{"k500": 0}'
    assert "more than 500 fields" in told[0]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared test data is not here")
def test_real_files_are_tables() -> None:
    """Nine of them had columns that Polars refuses."""
    for path in sorted(SHARED.rglob("*.jsonl")):
        data = path.read_bytes()
        if len(data) < 2_000_000:
            frame = read_frame(polars, data, ".jsonl")
            assert frame.height == sum(1 for line in data.splitlines() if line.strip())


@pytest.mark.parametrize(
    ("ending", "text", "where"),
    [
        (".json", '[{"a": 1, "a": 2}]', "The file"),
        (".json", '[{"a": {"a": 1, "b": 1, "a": 2}}]', "The file"),
        (".ndjson", '{"b": 1}\n{"a": 1, "a": 2}\n', "Line 2"),
        (".json", '{"b": 1}\n{"a": 1, "a": 2}\n', "Line 2"),
    ],
)
def test_a_key_that_is_there_twice_is_refused(
    ending: str, text: str, where: str
) -> None:
    """Python would take the last value without a word."""
    error = f'{where} cannot be read: the key "a" appears twice'
    with pytest.raises(CommandError, match=error):
        read_frame(polars, text.encode(), ending)


def test_a_key_twice_is_found_among_many() -> None:
    """In linear time: comparing each key with all others took minutes."""
    keys = ", ".join(f'"k{index}": 1' for index in range(100_000))
    began = time.perf_counter()
    with pytest.raises(CommandError, match='"k99999" appears twice'):
        read_frame(polars, f'[{{{keys}, "k99999": 2}}]'.encode(), ".json")
    assert time.perf_counter() - began < 10
