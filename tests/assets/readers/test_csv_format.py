"""A CSV file that is replaced by a table keeps its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.assets.readers.csv_format import CsvFormat, format_of
from neuraxis.testing import ScriptedModel

GERMAN = "\ufeffproduct;price;pieces\r\nFjörd;119,50;34\r\nTrek;139,25;5\r\n"
SORTED = "\ufeffproduct;price;pieces\r\nTrek;139,25;5\r\nFjörd;119,5;34\r\n"


@pytest.mark.parametrize(
    ("text", "ending", "expected"),
    [
        ("", ".csv", CsvFormat()),
        ("a,b\n1,2\n", ".csv", CsvFormat()),
        ("a\n1\n", ".csv", CsvFormat()),
        ("a\tb\n1\t2\n", ".tsv", CsvFormat(separator="\t")),
        ("", ".tsv", CsvFormat(separator="\t")),
        ("a;b\n1.5;2\n", ".csv", CsvFormat(separator=";")),
        ("a;b\n1,5;2\n", ".csv", CsvFormat(separator=";", decimal_comma=True)),
        ("a;b\n1,5;2.5\n", ".csv", CsvFormat(separator=";")),
        ("a;b\nx 1,5;2\n", ".csv", CsvFormat(separator=";")),
        ("a,b\r\n1,2\r\n", ".csv", CsvFormat(line_terminator="\r\n")),
    ],
)
def test_the_format_of_a_file(text: str, ending: str, expected: CsvFormat) -> None:
    """Decimal commas only where no number has a point, and commas part no cells."""
    assert format_of(text.encode(), ending) == expected


@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252", "utf-16"])
def test_what_spreadsheets_would_misread_gets_a_mark(encoding: str) -> None:
    """It is written as UTF-8, which they know by the mark alone."""
    assert format_of("a,b\nä,ö\n".encode(encoding), ".csv").include_bom
    assert not format_of("a,b\nä,ö\n".encode(), ".csv").include_bom


def test_what_is_no_text_has_the_usual_format() -> None:
    """Such a file is replaced all the same."""
    assert format_of(b"\x81\x8d\x00", ".csv") == CsvFormat()


@pytest.mark.parametrize(
    "last",
    [
        '"tool": "write_table", "table": "{{ previous_result }}"',
        '"tool": "save_result", "value": "{{ previous_result }}"',
    ],
)
def test_sorting_a_file_changes_the_order_of_its_lines_alone(
    tmp_path: Path, last: str
) -> None:
    """It came back with commas, points and no mark: one column in a spreadsheet."""
    pytest.importorskip("polars")
    stock = tmp_path / "stock.csv"
    stock.write_bytes(GERMAN.encode())
    plan = (
        '[{"tool": "read_table", "file_path": "stock.csv"}, {"tool": "sort_rows", '
        '"table": "{{ previous_result }}", "columns": ["pieces"]}, '
        f'{{{last}, "file_path": "stock.csv"}}]'
    )
    plugins = ["neuraxis:tables", "neuraxis:files"]

    async def agree(question: object) -> bool:
        return True

    model = ScriptedModel([plan, "Sorted."])
    with Session(model, plugins=plugins, workspace=tmp_path, approve=agree) as session:
        answer = session.run_sync("Sort stock.csv by pieces")
    assert [result.status for result in answer.calls] == ["done"] * 3
    assert stock.read_bytes().decode() == SORTED


def test_a_sample_that_ends_within_a_character_keeps_the_format() -> None:
    """65,536 bytes may cut an umlaut in two."""
    line = "Ágnes;1,5;Öl\n".encode()
    for shift in range(len(line)):
        data = b"n" * shift + b"a;b;c\n" + line * 6000
        assert format_of(data, ".csv").separator == ";"
        assert format_of(data, ".csv").decimal_comma
