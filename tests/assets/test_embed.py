"""References in a text to a person, and files that a person attaches (B61, B62)."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import Options, Session
from neuraxis.assets.attachments import read_attachment
from neuraxis.assets.describe import BUDGET
from neuraxis.assets.embed import CannotBeShown, _head, embed
from neuraxis.assets.store import AssetStore
from neuraxis.cli.run import run
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.references.asset_ref import AssetRef, format_url, parse_embedded
from neuraxis.settings import Setting, Settings


def _shown(value: Any, text: str = "<|asset://a1/content/response|>") -> str:
    store = AssetStore()
    store.keep("a1", "c", value)
    return embed(text, store, _nowhere)


def _nowhere(name: str, data: bytes) -> str:
    raise CannotBeShown(name)


# --- B62: text to a person --------------------------------------------------------


@given(text=st.text() | st.text(alphabet='<|>{}asset:/"_id01 '))
def test_B62_a_text_without_a_reference_stays(text: str) -> None:
    """Byte for byte, whatever brackets are in it; so does one that leads nowhere."""
    assert embed(text, AssetStore(), _nowhere) == text


@given(before=st.text(), value=st.text(max_size=50), after=st.text())
def test_B62_what_is_put_in_is_never_read_again(
    before: str, value: str, after: str
) -> None:
    """A text of a page that names an asset brings none in."""
    trick = f"{value}<|asset://a1/content/command|>"
    mark = "<|asset://a1/content/response|>"
    if parse_embedded(before + mark + after) != [
        (
            len(before),
            len(before) + len(mark),
            AssetRef(asset_id="a1", field_path=("content", "response")),
        )
    ]:
        return  # the text around it is a reference itself
    assert _shown(trick, before + mark + after) == before + trick + after


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Lyon", "Lyon"),
        (5, "5"),
        (None, "null"),
        ({"a": 1}, '\n```json\n{\n  "a": 1\n}\n```\n'),
        ([1], "\n```json\n[\n  1\n]\n```\n"),
        (b"xyz", "<class 'bytes'> 3 bytes"),
        (
            [{"a": 1, "b": "x|y\nz"}],
            "\n\n| a | b |\n| --- | --- |\n| 1 | x\\|y z |\n\n",
        ),
    ],
)
def test_B62_each_kind_has_a_form(value: Any, expected: str) -> None:
    """Text as text, JSON as JSON, rows as a table, the rest in words."""
    assert _shown(value) == expected


@pytest.mark.parametrize(
    "written",
    [
        "<|asset://a1|>",
        "<|asset://a1/content|>",
        '<|{"asset_id": "a1"}|>',
        '<|{"asset_id": "a1", "field_path": ["content", "response"]}|>',
    ],
)
def test_B62_all_forms_of_a_reference(written: str) -> None:
    """URL and object; a whole asset is its answer."""
    assert _shown("Lyon", f"In {written}.") == "In Lyon."


def test_B62_a_picture_is_a_file_of_the_workspace(tmp_path: Path) -> None:
    """Saved once under a name of its own, shown as Markdown; told in words if not."""
    pictures = pytest.importorskip("PIL.Image")
    picture = pictures.new("RGBA", (7, 5), "red")
    saved: dict[str, bytes] = {}

    def save(name: str, data: bytes) -> str:
        saved[name] = data
        return name

    store = AssetStore()
    store.keep("a1", "c", {"parts": [picture, picture.convert("CMYK")]})
    text = "See <|asset://a1/content/response/parts/0|>, "
    text += "<|asset://a1/content/response/parts/1|>"
    assert embed(text, store, save) == (
        "See ![a1, 7x5](shown/a1-parts-0.png), ![a1, 7x5](shown/a1-parts-1.png)"
    )
    assert saved["shown/a1-parts-0.png"].startswith(b"\x89PNG")
    assert "7x5, RGBA" in embed(text, store, _nowhere)


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_B62_a_table_is_a_table(library: str) -> None:
    """Its first rows; how many there are more."""
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    shown = _shown(make({"n": list(range(50)), "t": ["x"] * 50}))
    assert shown.startswith("\n\n| n | t |\n| --- | --- |\n| 0 | x |\n")
    assert shown.count("\n| ") == 22
    assert "(30 more rows)" in shown


def test_B62_a_long_text_is_a_file() -> None:
    """Its beginning is put in, the whole is saved."""
    saved: dict[str, bytes] = {}
    store = AssetStore()
    store.keep("a1", "c", "x" * 30_000)
    text = embed(
        "<|asset://a1/content/response|>",
        store,
        lambda name, data: saved.setdefault(name, data) and name,
    )
    assert "[30000 characters, the whole text](shown/a1.txt)" in text
    assert saved["shown/a1.txt"] == b"x" * 30_000


def test_B62_the_answer_of_a_run_is_readable(tmp_path: Path) -> None:
    """The person reads the object, the model's own words stay in the history."""
    pictures = pytest.importorskip("PIL.Image")
    said = "Here it is: <|asset://a1/content|>"
    session = Session(model=ScriptedModel([said]), workspace=tmp_path)
    session.attach(pictures.new("RGB", (4, 3)))
    with session:
        answer = session.run_sync("show it")
    assert answer.text == "Here it is: ![a1, 4x3](shown/a1-content.png)"
    assert answer.files == ("shown/a1-content.png",)
    assert (tmp_path / "shown" / "a1-content.png").is_file()
    assert session.history[-1].content == said


class _Refuses:
    """Object whose library crashes when it is looked at."""

    @property
    def size(self) -> object:
        raise RuntimeError("closed")


@pytest.mark.parametrize(
    "value",
    [10**5000, [10**5000], {"a": {10**5000}}, [{"a": 10**5000}]],
    ids=["number", "list", "set", "table"],
)
def test_B62_an_object_that_cannot_be_written_ends_no_run(
    value: Any, tmp_path: Path
) -> None:
    """An integer of 5,000 digits ended the run; the reference stays as it was."""
    said = "It is <|asset://a1/content|>, and <|asset://a2/content|>."
    with Session(model=ScriptedModel([said]), workspace=tmp_path) as session:
        session.attach(value)
        session.attach("Lyon")
        answer = session.run_sync("show it")
    assert answer.text == "It is <|asset://a1/content|>, and Lyon."
    assert answer.outcome == "answered"
    mark = "<|asset://a1/content/response|>"
    assert _shown(_Refuses(), mark) == mark


@pytest.mark.parametrize(
    "value",
    [
        ["x" * 10**6] * 2_000,
        {"a": {"b": ["x" * 10**6] * 2_000}},
        [{"a": ["x" * 10**6] * 2_000}],
        "x" * 3 * 10**7,
        {"k" * 3 * 10**7: 1},
    ],
    ids=["list", "mapping", "table", "text", "key"],
)
def test_B62_a_long_object_is_not_written_as_a_whole(value: Any) -> None:
    """A list of one text, 2,000 times, took 4 GB; so did a text of 190 MB."""
    store = AssetStore()
    store.keep("a1", "c", value)
    tracemalloc.start()
    shown = embed("<|asset://a1/content/response|>", store, lambda name, data: name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(shown) < 21_000
    assert peak < 2_000_000


@given(
    value=st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_B62_the_beginning_of_a_long_object_stays(value: Any) -> None:
    """What is shown of an object does not depend on how much of it was read."""
    for limit in (1, 10, 100):
        head = json.dumps(_head(value, [limit + 1]), ensure_ascii=False, indent=2)
        whole = json.dumps(value, ensure_ascii=False, indent=2)
        assert head == whole or head[:limit] == whole[:limit]
        assert (len(head) > limit) == (len(whole) > limit)


def test_B62_a_text_beyond_the_limit_of_files_is_told_in_words(tmp_path: Path) -> None:
    """The answer held the whole text, which the journal could not store."""
    said = "See <|asset://a1/content|>"
    (tmp_path / "big.txt").write_text("x" * 30_000, encoding="utf-8")
    settings = Settings(
        values={"files.file_bytes": Setting(value=25_000, source="the test")}
    )
    with Session(ScriptedModel([said]), workspace=tmp_path, settings=settings) as one:
        answer = one.run_sync("show it", attach=[tmp_path / "big.txt"])
    assert answer.text == f"See {'x' * 80}… (30000 characters)"
    assert answer.files == ()


# --- B61: what a person attaches -----------------------------------------------------


def test_B61_files_are_what_their_ending_says(tmp_path: Path) -> None:
    """A picture, a table, a text, bytes."""
    polars = pytest.importorskip("polars")
    pictures = pytest.importorskip("PIL.Image")
    pictures.new("RGB", (4, 3)).save(tmp_path / "p.png")
    (tmp_path / "t.csv").write_text("a;b\n1;2\n", encoding="utf-8")
    (tmp_path / "n.md").write_text("\ufeffnote", encoding="utf-8")
    (tmp_path / "x.bin").write_bytes(b"\xff\x00")
    polars.DataFrame({"a": [1]}).write_parquet(tmp_path / "t.parquet")
    assert read_attachment(tmp_path / "p.png").size == (4, 3)
    assert read_attachment(tmp_path / "t.csv").to_dicts() == [{"a": 1, "b": 2}]
    assert read_attachment(tmp_path / "t.parquet").to_dicts() == [{"a": 1}]
    assert read_attachment(tmp_path / "n.md") == "note"
    assert read_attachment(tmp_path / "x.bin") == b"\xff\x00"


@pytest.mark.parametrize("name", ["p.png", "t.parquet", "none.txt", "t.csv"])
def test_B61_a_broken_file_is_told(name: str, tmp_path: Path) -> None:
    """With its path."""
    pytest.importorskip("polars")
    pytest.importorskip("PIL.Image")
    if name != "none.txt":
        (tmp_path / name).write_bytes(b"" if name == "t.csv" else b"\x89PNG broken")
    with pytest.raises(ConfigError, match=name):
        read_attachment(tmp_path / name)


def test_B61_the_model_is_told_and_can_use_it(tmp_path: Path) -> None:
    """In the list of assets, with the description; a later session has it too."""
    pytest.importorskip("polars")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n", encoding="utf-8")
    call = {"tool": "table_rows", "table": "asset://a1/content"}
    model = ScriptedModel([json.dumps([call]), "ok", "yes"])
    options: dict[str, Any] = {
        "model": model,
        "plugins": ["neuraxis:tables"],
        "journal": tmp_path / "j.db",
        "options": Options(asset_folder=tmp_path / "assets"),
    }
    session = Session(**options)
    assert session.attach(tmp_path / "t.csv") == "a1"
    answer = session.run_sync("what is in it?")
    assert (
        "2 rows, 2 columns: a Int64, b Int64" in model.prompts[0].messages[-1].content
    )
    assert "t.csv" in model.prompts[0].messages[-1].content
    assert answer.calls[0].value["rows"] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    session.close()
    later = Session.open(session.id, **options)
    assert later.assets.resolve(AssetRef(asset_id="a1", field_path=("content",))).height
    assert later.attach("more") == "a3"
    later.close()


@given(value=st.text() | st.lists(st.text()), description=st.text())
def test_B56_an_attachment_stays_in_the_budget(value: Any, description: str) -> None:
    """With its description."""
    store = AssetStore()
    kept = store.attach("a1", value, description)
    assert len(json.dumps(kept.meta, ensure_ascii=False)) <= BUDGET + 20
    assert len(json.dumps(store.meta(), ensure_ascii=False)) <= BUDGET + 60


def test_B61_attach_on_the_command_line(tmp_path: Path) -> None:
    """`run --attach FILE`, as often as wanted; a wrong name ends with code 2."""
    (tmp_path / "n.txt").write_text("the note", encoding="utf-8")
    (tmp_path / "s.yaml").write_text(
        '- text: "<|asset://a1/content|> and <|asset://a2/content|>"\n'
        '  expect: ["n.txt"]\n',
        encoding="utf-8",
    )
    options = ["-m", f"scripted:{tmp_path / 's.yaml'}", "--journal", "memory"]
    options += ["-w", str(tmp_path / "w"), "-q"]
    attached = ["--attach", str(tmp_path / "n.txt")] * 2
    result = CliRunner().invoke(run, ["go", *options, *attached])
    assert "the note and the note\n" == result.output
    missing = CliRunner().invoke(run, ["go", *options, "--attach", "none.txt"])
    assert isinstance(missing.exception, ConfigError)


def test_B61_a_file_without_size_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device says that it is empty, and never ends."""
    monkeypatch.setattr("neuraxis.assets.attachments.MOST_BYTES", 1_000)
    (tmp_path / "fits").write_bytes(b"a" * 1_000)
    assert read_attachment(tmp_path / "fits") == "a" * 1_000
    endless = [tmp_path / "larger"]
    endless[0].write_bytes(b"a" * 1_001)
    if Path("/dev/zero").exists():
        endless.append(Path("/dev/zero"))
    for path in endless:
        with pytest.raises(ConfigError, match="at most 1000 bytes"):
            read_attachment(path)


def test_B62_two_objects_have_two_files() -> None:
    """Also where their paths differ in what no file name has, or behind its end."""
    saved: dict[str, bytes] = {}

    def save(name: str, data: bytes) -> str:
        assert name not in saved
        saved[name] = data
        return name

    store = AssetStore()
    keys = ["x y", "x_y", "x/y", "é", "è", "k" * 90 + "1", "k" * 90 + "2", "a-b"]
    value = {key: key + "." * 30_000 for key in keys} | {"a": {"b": "." * 30_000}}
    store.keep("a1", "c", {**value, "odd": object()})
    refs = [("content", "response", key) for key in keys]
    refs.append(("content", "response", "a", "b"))
    urls = [format_url(AssetRef(asset_id="a1", field_path=path)) for path in refs]
    embed(" ".join(f"<|{url}|>" for url in urls), store, save)
    assert len(saved) == len(urls)
    assert all(len(name) < 120 and name.isascii() for name in saved)
