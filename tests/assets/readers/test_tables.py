"""A file that a person attaches and one that a command reads are the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis.assets.attachments import read_attachment
from neuraxis.builtin.tables import frames, plugin
from neuraxis.errors import ConfigError
from neuraxis.plugins.context import Context

polars: Any = pytest.importorskip("polars")

FILES: dict[str, bytes] = {
    "codes.csv": b"plz,name\n00123,x\n4567,y\n",
    "german.csv": "Größe;Stadt\n2,5;Köln\n1.234,50;Bonn\n".encode("cp1252"),
    "unicode.csv": "Größe;Stadt\n1;Köln\n".encode("utf-16"),
    "quoted.csv": b'"a,b,c";"d"\n1;2\n',
    "late.csv": b"a,b\n" + b"1,x\n" * 10_001 + b"1.5,y\n",
    "blank.csv": b"a,b\n1,2\n\n\n",
    "t.TSV": b"a\tb\n01\t2,5\n",
    "empty.csv": b"a,b\n",
}


@pytest.mark.parametrize("name", FILES)
def test_B61_an_attached_table_is_the_one_that_is_read(
    name: str, tmp_path: Path
) -> None:
    """Names, types and cells."""
    path = tmp_path / name
    path.write_bytes(FILES[name])
    attached = read_attachment(path)
    read = plugin.read_table(name, Context(workspace=tmp_path))
    assert attached.schema == read.schema
    assert attached.equals(read)


def test_B61_parquet_too(tmp_path: Path) -> None:
    """With the same limits."""
    frame = polars.DataFrame({"a": [1, None], "b": ["00123", ""]})
    path = tmp_path / "t.parquet"
    path.write_bytes(frames.written(frame, ".parquet"))
    assert frame.equals(read_attachment(path))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_B61_what_cannot_be_read_is_told(name: str, tmp_path: Path) -> None:
    """By the file's name, without the words of Polars to programmers."""
    path = tmp_path / name
    path.write_bytes(b"a,b\n1,2,3\n")
    with pytest.raises(ConfigError, match=name) as told:
        read_attachment(path)
    assert "truncate_ragged_lines" not in str(told.value)
