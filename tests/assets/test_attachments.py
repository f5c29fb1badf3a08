"""B61: which object an attached file is, by its ending and by what is installed."""

from __future__ import annotations

import datetime
import sys
import threading
from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.assets import attachments
from neuraxis.assets.attachments import read_attachment
from neuraxis.assets.readers.tables import read_frame
from neuraxis.errors import CommandError, ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.references.asset_ref import AssetRef


def test_B61_the_case_of_an_ending_says_nothing(tmp_path: Path) -> None:
    """Cameras and old programs write `.PNG` and `.CSV`."""
    pytest.importorskip("polars")
    pictures = pytest.importorskip("PIL.Image")
    pictures.new("L", (2, 1)).save(tmp_path / "P.PNG")
    (tmp_path / "T.CSV").write_text("a,b\n1,2\n", encoding="utf-8")
    assert read_attachment(tmp_path / "P.PNG").size == (2, 1)
    assert read_attachment(tmp_path / "T.CSV").to_dicts() == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_B61_cells_are_parted_by_what_stands_between_them(
    between: str, tmp_path: Path
) -> None:
    """A CSV of any country; numbers and dates are no texts."""
    pytest.importorskip("polars")
    rows = [["day", "n", "word"], ["2026-01-31", "5", "é"]]
    text = "".join(between.join(row) + "\n" for row in rows)
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    expected = {"day": datetime.date(2026, 1, 31), "n": 5, "word": "é"}
    assert read_attachment(tmp_path / "t.csv").to_dicts() == [expected]


def test_B61_a_tsv_is_parted_by_tabs_only(tmp_path: Path) -> None:
    """However many commas its texts have."""
    pytest.importorskip("polars")
    (tmp_path / "t.tsv").write_text("a,b,c\td\n1,2,3\t4\n", encoding="utf-8")
    assert read_attachment(tmp_path / "t.tsv").columns == ["a,b,c", "d"]


def test_where_an_attached_table_differs_from_its_file_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There is no result whose warnings would tell it."""
    pytest.importorskip("polars")
    (tmp_path / "t.csv").write_text("a,b\n1\n", encoding="utf-8")
    assert read_attachment(tmp_path / "t.csv").rows() == [(1, None)]
    assert (
        "t.csv: Rows with fewer cells than the first line: 1; the rest" in caplog.text
    )


def test_B61_without_its_library_a_file_is_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Or its bytes: they are still of use. What to install is logged."""
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (tmp_path / "p.png").write_bytes(b"\x89PNG")
    assert read_attachment(tmp_path / "t.csv") == "a,b\n1,2\n"
    assert read_attachment(tmp_path / "p.png") == b"\x89PNG"
    for extra in ("neuraxis[tables]", "neuraxis[images]"):
        assert extra in caplog.text
    assert "Attaching t.csv as a table needs the package 'polars'" in caplog.text


@pytest.mark.parametrize("name", ["note", "note.", ".csv", "a.png.txt", "data.json"])
def test_B61_any_other_file_is_its_text(name: str, tmp_path: Path) -> None:
    """Line breaks as they are; nothing is read out of it."""
    (tmp_path / name).write_bytes(b'{"a": 1}\r\n')
    assert read_attachment(tmp_path / name) == '{"a": 1}\r\n'


def test_B61_an_empty_file_is_an_empty_text(tmp_path: Path) -> None:
    """And no mistake."""
    (tmp_path / "a.txt").touch()
    assert read_attachment(tmp_path / "a.txt") == ""


def test_B61_a_picture_is_whole_without_its_file(tmp_path: Path) -> None:
    """It can be changed or removed; the object stays what it was."""
    pictures = pytest.importorskip("PIL.Image")
    path = tmp_path / "p.bmp"
    pictures.new("RGB", (1, 1), (1, 2, 3)).save(path)
    picture = read_attachment(path)
    path.unlink()
    assert picture.getpixel((0, 0)) == (1, 2, 3)


def test_B61_too_many_pixels_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file may be a picture larger than the memory."""
    pictures = pytest.importorskip("PIL.Image")
    monkeypatch.setattr(attachments, "MOST_PIXELS", 100)
    pictures.new("1", (10, 10)).save(tmp_path / "fits.png")
    pictures.new("1", (101, 1)).save(tmp_path / "wide.png")
    assert read_attachment(tmp_path / "fits.png").size == (10, 10)
    with pytest.raises(ConfigError, match=r"wide\.png .*101x1 pixels, at most 100"):
        read_attachment(tmp_path / "wide.png")


def test_B61_a_folder_cannot_be_attached(tmp_path: Path) -> None:
    """One line, with the path."""
    with pytest.raises(ConfigError, match="cannot be read") as told:
        read_attachment(tmp_path)
    assert str(tmp_path) in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_B61_a_text_of_another_program_is_a_text(encoding: str, tmp_path: Path) -> None:
    """What is no text stays bytes."""
    (tmp_path / "t.txt").write_bytes("Größe: 5 €".encode(encoding))
    (tmp_path / "t.bin").write_bytes(b"\x89\x00\xff")
    assert read_attachment(tmp_path / "t.txt") == "Größe: 5 €"
    assert read_attachment(tmp_path / "t.bin") == b"\x89\x00\xff"


def test_B61_a_photo_is_upright(tmp_path: Path) -> None:
    """A phone writes how it was held, and not the picture turned."""
    pictures = pytest.importorskip("PIL.Image")
    exif = pictures.Exif()
    exif[0x112] = 6
    pictures.new("RGB", (20, 10)).save(tmp_path / "a.jpg", exif=exif)
    assert read_attachment(tmp_path / "a.jpg").size == (10, 20)


def test_a_picture_that_is_none_is_told_in_words(tmp_path: Path) -> None:
    """Not with the address of an object."""
    pytest.importorskip("PIL.Image")
    (tmp_path / "p.png").write_text("no picture", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"as \.png: its content is no picture$"):
        read_attachment(tmp_path / "p.png")


def test_a_spreadsheet_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its bytes are no table; a command that reads one is told as well."""
    polars = pytest.importorskip("polars")
    file = tmp_path / "sales.xlsx"
    file.write_bytes(b"PK\x03\x04\xff")
    assert read_attachment(file) == file.read_bytes()
    assert f"attach=[pandas.read_excel({str(file)!r})]" in caplog.text
    with pytest.raises(CommandError, match="Ask the user to save it as CSV"):
        read_frame(polars, b"PK", ".xlsx")


async def test_a_file_is_read_while_the_event_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table of 110 MB was parsed in the loop, for 3 s."""
    threads: list[int] = []

    def read(path: Path) -> str:
        threads.append(threading.get_ident())
        return path.name

    monkeypatch.setattr("neuraxis.assets.attachments.read_attachment", read)
    one, two = tmp_path / "one.csv", str(tmp_path / "two.csv")
    async with Session(ScriptedModel(["done"]), workspace=tmp_path) as session:
        await session.run("go", attach=[one, two, "three"])
        names = [
            session.assets.resolve(AssetRef(asset_id=id, field_path=("content",)))
            for id in session.assets.ids
        ]
    assert names == ["one.csv", "two.csv", "three"]
    assert len(threads) == 3
    assert threading.get_ident() not in threads
