"""The plugin `assets`: a kept object back into view, in pages, in bounded time."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuraxis import Session, command
from neuraxis.assets.describe import json_size
from neuraxis.assets.store import INLINE_BYTES
from neuraxis.builtin.assets import grep, lines, plugin
from neuraxis.errors import CommandError
from neuraxis.messages import Call, Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.context import Context
from neuraxis.settings import Settings

LOG = "".join(f"line {n}: {'error' if n % 100 == 0 else 'fine'}\n" for n in range(5000))
HERE = "asset://c1/content/response"


def _session(value: Any) -> Session:
    @command(effects="read")
    def gives() -> Any:
        """Gives the value."""
        return value

    session = Session(
        model=ScriptedModel([]),
        plugins=[gives, "neuraxis:assets"],
        settings=Settings(),
    )
    assert _call(session, "gives", "c1").stored
    return session


def _call(session: Session, name: str, number: str = "", **arguments: Any) -> Result:
    call_id = number or session.ids.new()
    asked = Call(id=call_id, plugin=None, command=name, arguments=arguments)
    return asyncio.run(session.call(asked))


def _context(value: Any = None) -> Context:
    return Context(workspace=value)


def test_a_text_is_read_back_in_pages() -> None:
    """Lines and characters: together they are the whole text, each page is said."""
    with _session(LOG) as session:
        start: int | None = 1
        seen: list[str] = []
        while start is not None:
            page = _call(session, "asset_lines", asset=HERE, start=start, count=1000)
            assert not page.stored
            seen += page.value["lines"]
            start = page.value.get("next_start")
        assert seen == LOG.splitlines()
        start, text = 0, ""
        while start is not None:
            page = _call(session, "asset_text", asset=HERE, start=start, count=8000)
            assert not page.stored
            text += page.value["text"]
            start = page.value.get("next_start")
        assert text == LOG


@given(text=st.text(alphabet="ab\n\r\u2028", max_size=60), first=st.integers(0, 10))
def test_lines_are_those_between_line_feeds(text: str, first: int) -> None:
    """From any line on, and their number."""
    whole = text.split("\n")
    if not whole[-1]:
        whole.pop()
    found = lines.lines_of(text)
    assert found.total == len(whole)
    expected = [line.removesuffix("\r") for line in whole]
    assert [line.text for line in found.since(first)] == expected[first:]
    for line in found.since(0):
        assert text[line.position :].startswith(line.text)


def test_a_long_line_is_cut_and_read_on() -> None:
    """It says where the rest is."""
    text = "short\n" + "x" * 5000 + "END\n"
    page = plugin.asset_lines(text)
    assert page["cut"] == [{"line": 2, "characters": 5003, "position": 6}]
    assert plugin.asset_text(text, 6 + 5000, 3)["text"] == "END"


def test_grep() -> None:
    """The lines that fit, with their numbers; from where it stopped, on."""
    with _session(LOG) as session:
        arguments = {"asset": HERE, "pattern": r"\d00: error$"}
        page = _call(session, "asset_grep", **arguments, most=3).value
        assert [match["line"] for match in page["matches"]] == [101, 201, 301]
        assert page["next_start"] == 401
        arguments |= {"start": 401, "most": 200}
        page = _call(session, "asset_grep", **arguments).value
        assert len(page["matches"]) == 46
        assert "next_start" not in page
    assert plugin.asset_grep("A\nb", "a", _context())["matches"] == []
    found = plugin.asset_grep("A\nb", "a", _context(), ignore_case=True)["matches"]
    assert found == [{"line": 1, "text": "A"}]


@pytest.mark.parametrize(
    "pattern",
    [r"(a+)+$", r"(a|a)*$", r"(a|aa)+$", r"(.*a){12}$", r"([a-z]+)*\d", r"(x+x+)+y"],
)
def test_no_pattern_hangs(pattern: str) -> None:
    """What takes Python's own expressions longer than the sun shines: milliseconds."""
    text = "\n".join(["a" * 20_000 + "!", "x" * 20_000, "a" * 30])
    started = time.perf_counter()
    plugin.asset_grep(text, pattern, _context())
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize(
    "pattern", ["(", "[", "a{1000}{1000}", "(?=a)", r"(a)\1", "*", "a" * 2000, "(?#"]
)
def test_a_pattern_that_cannot_be_used_is_told(pattern: str) -> None:
    """Also one that would need a gigabyte."""
    with pytest.raises(CommandError):
        grep.matcher(pattern, False)


def test_a_search_ends_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where the run was cancelled."""
    monkeypatch.setattr(grep, "SECONDS", -1.0)
    with pytest.raises(CommandError, match="stopped after 0 lines"):
        plugin.asset_grep(LOG, "x", _context())
    monkeypatch.setattr(grep, "SECONDS", 10.0)
    context = _context()
    context.cancelled.set()
    with pytest.raises(CommandError, match="stopped"):
        plugin.asset_grep(LOG, "x", context)


def test_a_match_in_a_long_line_is_shown() -> None:
    """The part around it, and where that is in the text."""
    text = "first\n" + "." * 50_000 + "needle" + "." * 50_000
    (match,) = plugin.asset_grep(text, "needle", _context())["matches"]
    assert "needle" in match["text"]
    assert len(match["text"]) == plugin.MATCH
    at = match["position"]
    assert text[at : at + plugin.MATCH] == match["text"]


def test_half_a_character_is_no_reason_to_fail() -> None:
    """A file that is no proper text is searched all the same."""
    found = plugin.asset_grep("a\ud800b\nc", "b", _context())["matches"]
    assert [match["line"] for match in found] == [1]


def test_tables_lists_and_arrays() -> None:
    """One way into all of them; rows counted from 0."""
    numpy = pytest.importorskip("numpy")
    polars = pytest.importorskip("polars")
    rows = [{"city": f"c{n}", "n": n} for n in range(3000)]
    for value in (rows, polars.DataFrame(rows)):
        page = plugin.asset_rows(value, 2990, 5, ["n"])
        assert page["rows"] == [{"n": n} for n in range(2990, 2995)]
        assert (page["total_rows"], page["next_start"]) == (3000, 2995)
        (match,) = plugin.asset_grep(value, '"c2999"', _context())["matches"]
        assert match["line"] == 3000
        assert plugin.asset_lines(value, 3, 1)["lines"] == ['{"city": "c2", "n": 2}']
    array = numpy.arange(6).reshape(3, 2)
    assert plugin.asset_rows(array)["rows"] == [[0, 1], [2, 3], [4, 5]]
    assert plugin.asset_lines(array)["lines"] == ["[0, 1]", "[2, 3]", "[4, 5]"]
    with pytest.raises(CommandError, match="Expected a table, a list or an array"):
        plugin.asset_rows(numpy.array(5))
    assert plugin.asset_rows(numpy.zeros((2, 3, 4)))["rows"][0].startswith("<class")


@pytest.mark.parametrize("name", ["asset_lines", "asset_rows", "asset_text"])
def test_no_page_becomes_an_asset(name: str) -> None:
    """However large what it shows: the answer can be said."""
    wide = [{f"key {n} {m}": "é" * 900 for n in range(40)} for m in range(40)]
    tea = "茶は美味しい\n🍵" * 9000
    for value in (
        *(wide, ["y" * 5000] * 100, "z" * 100_000, ["\\" * 5000] * 100, tea),
        *([tea] * 9, [{"t": tea}], [{"a": tea, "b": [tea]}] * 3),
    ):
        if name == "asset_rows" and isinstance(value, str):
            continue
        for count in (1, 40, 1000):
            view = getattr(plugin, name)(value, count=count)
            assert json_size(view) <= INLINE_BYTES
    if name != "asset_rows":
        found = plugin.asset_grep(tea, "茶", _context(), most=200)
        assert json_size(found) <= INLINE_BYTES


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("asset_lines", {"asset": 5}, "integer has no lines"),
        ("asset_lines", {"asset": b"\xff\xfe"}, "no text in UTF-8"),
        ("asset_lines", {"asset": "a", "start": 3}, "no line 3"),
        ("asset_text", {"asset": "a", "start": 3}, "none at 3"),
        ("asset_rows", {"asset": "a"}, "Expected a table, a list or an array"),
        ("asset_rows", {"asset": {"k": 1}}, "its fields: k"),
        ("asset_rows", {"asset": [1], "start": 4}, "no row 4"),
    ],
)
def test_what_is_not_there_is_told(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    """With how much there is."""
    with pytest.raises(CommandError, match=said):
        getattr(plugin, name)(**arguments)


def test_describe() -> None:
    """Each kind in what matters of it; a whole asset by its answer."""
    assert plugin.describe_asset(LOG)["lines"] == 5000
    told = plugin.describe_asset({"content": {"command": "c", "response": {"a": 1}}})
    assert told["fields"] == {"a": 1}
    assert plugin.describe_asset({"content": [1, 2]})["items"] == 2
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({f"c{n}": [1] for n in range(200)})
    told = plugin.describe_asset(frame)
    assert (told["rows"], len(told["columns"])) == (1, 50)
    pictures = pytest.importorskip("PIL.Image")
    told = plugin.describe_asset(pictures.new("RGB", (4, 5)))
    assert "4x5, RGB" in told["is"]


def test_list_assets() -> None:
    """All of the session's, also those that the description left out."""
    with _session(LOG) as session:
        session.attach("a text of the person", "a note")
        told = _call(session, "list_assets").value
    assert [(item["asset_id"], item["from"]) for item in told["assets"]] == [
        ("c1", "gives"),
        ("a1", "the user"),
    ]
    assert told["total_assets"] == 2


def test_a_long_cell_is_searched_to_its_end(tmp_path: Path) -> None:
    """What is shown of it may be short, what is searched is not."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"n": [1, 2], "t": ["x" * 5000 + "needle", "y"]})
    context = Context(workspace=tmp_path)
    (match,) = plugin.asset_grep(frame, "needle", context)["matches"]
    assert match["line"] == 1
    assert "needle" in match["text"]
    assert plugin.asset_lines(frame)["cut"] == [{"line": 1, "characters": 5023}]


def test_one_part_that_is_no_json_hides_nothing_beside_it(tmp_path: Path) -> None:
    """It is described in its place; the rest is shown, and searched."""
    items: list[Any] = [{"name": "needle", "v": float("nan")}, (b"x", "other")]
    context = Context(workspace=tmp_path)
    (match,) = plugin.asset_grep(items, "needle", context)["matches"]
    assert match["line"] == 1
    assert json.loads(plugin.asset_text(items[0])["text"])["name"] == "needle"
    assert '"other"' in plugin.asset_lines(items)["lines"][1]
    items.append(items)  # it holds itself, twice
    items.append([items, b"y"])
    assert plugin.asset_lines(items)["total_lines"] == 4


def test_a_description_is_no_text() -> None:
    """A table has no text to page through: what it is is told as an error."""
    polars = pytest.importorskip("polars")
    with pytest.raises(CommandError, match=r"DataFrame has no text: .*asset_rows"):
        plugin.asset_text(polars.DataFrame({"a": [1]}))


def test_a_long_item_is_cut_beside_the_data() -> None:
    """No note stands in an item, since rows may be handed on."""
    items = ["x" * 9000, {"t": "y" * 9000}]
    view = plugin.asset_rows(items)
    first, second = view["rows"]
    assert set(first) == {"x"}
    assert set(second["t"]) == {"y"}
    assert len(first) == len(second["t"]) > 3000
    assert view["cut"] == [
        {"row": 0, "characters": 9000},
        {"row": 1, "column": "t", "characters": 9000},
    ]
    assert plugin.asset_rows(items, 1)["cut"][0]["row"] == 1


def test_a_field_that_no_item_has_is_told() -> None:
    """Not a column of nulls; one that some items have is theirs."""
    items = [{"a": 1}, {"a": 2, "b": 3}, 4]
    rows = plugin.asset_rows(items, columns=["b"])["rows"]
    assert rows == [{"b": None}, {"b": 3}, 4]
    with pytest.raises(CommandError, match="No item has the field c"):
        plugin.asset_rows(items, columns=["a", "c"])


def test_a_long_name_of_a_field_says_that_it_is_cut() -> None:
    """And two that begin alike are both told."""
    told = plugin.describe_asset({"k" * 100: 1, "k" * 99 + "x": 2, "k" * 80: 3})
    fields = told["fields"]
    assert list(fields.values()) == [1, 2, 3]
    cut = f"{'k' * 80}… (100 characters)"
    assert list(fields) == [cut, f"{cut} #2", "k" * 80]
