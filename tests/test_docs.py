"""The documentation's Python examples run as they stand."""

import asyncio
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuraxis import Session, command
from neuraxis.models.scripted import ScriptedModel, ScriptedReply, read_reply
from neuraxis.planning.load import read_plan
from neuraxis.session import build as build_module

_ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

PAGES = [_ROOT / "README.md", *sorted((_ROOT / "docs").glob("**/*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(
    page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In order, in one namespace; a model named in them is stood in for by a script."""
    if page.name == "coming-from.md":
        pytest.skip("test_coming_from.py runs it, with models of other packages")
    blocks = _BLOCK.findall(page.read_text(encoding="utf-8"))

    def stand_in(name: Any, settings: Any) -> Any:
        if hasattr(name, "stream"):
            return name
        return ScriptedModel(lambda prompt: "It is said.")

    monkeypatch.setattr(build_module, "find_model", stand_in)
    monkeypatch.setattr(build_module, "find_models", stand_in)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


def test_the_first_program_prints_what_the_readme_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the offline planner, as a newcomer runs it."""
    readme = PAGES[0].read_text(encoding="utf-8")
    shown = re.search(r"^```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert shown
    exec(compile(_BLOCK.findall(readme)[0], "README.md", "exec"), {})
    assert capsys.readouterr().out == shown[1]


def test_the_spans_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each reply and each call, below that of the run, and all have an end."""
    trace: Any = pytest.importorskip("opentelemetry.trace")
    begun: list[tuple[str, Any]] = []
    ended: list[str] = []
    given: dict[str, Any] = {}

    class Span(trace.NonRecordingSpan):  # type: ignore[misc]
        name = ""

        def set_attributes(self, attributes: Any) -> None:
            given.update(attributes)

        def end(self, end_time: int | None = None) -> None:
            ended.append(self.name)

    class Tracer:
        def start_span(self, name: str) -> Span:
            begun.append((name, getattr(trace.get_current_span(), "name", None)))
            span = Span(trace.INVALID_SPAN_CONTEXT)
            span.name = name
            return span

        def start_as_current_span(self, name: str) -> Any:
            return trace.use_span(self.start_span(name), end_on_exit=True)

    monkeypatch.setattr(trace, "get_tracer", lambda name: Tracer())
    replies = ['[{"tool": "population", "city": "Turin"}]', "Many."]
    monkeypatch.setattr(
        build_module, "find_model", lambda *_: ScriptedModel(list(replies))
    )
    page = (_ROOT / "docs" / "sessions.md").read_text(encoding="utf-8")
    section = page.partition("\n### Logs and traces\n")[2].partition("\n## ")[0]
    blocks = [_BLOCK.findall(page)[0], *_BLOCK.findall(section)]
    namespace: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "sessions.md", "exec"), namespace)
    chat, call = "chat scripted:", "execute_tool population"
    below = [(name, "run") for name in (chat, call, chat)]
    assert begun == [("run", None), *below]
    assert ended == [chat, call, chat, "run"]
    assert given["neuraxis.status"] == "done"


def test_the_plan_of_the_page_runs() -> None:
    """The file that plans.md shows: checked, and run with a parameter of its own."""
    page = (_ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    written = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert written
    noted: list[str] = []

    @command(effects="read")
    def population(city: str, year: int) -> str:
        """Inhabitants of a city."""
        return f"{city} in {year}"

    @command(effects="once")
    def note(text: str) -> None:
        """Write it down."""
        noted.append(text)

    saved = read_plan(written[1])
    params = saved.values([("city", "Turin")])
    with Session(model=ScriptedModel([]), plugins=[population, note]) as session:
        assert session.check(saved.calls, params).problems == ()
        results = asyncio.run(session.call_all(saved.calls, params=params))
    assert [result.status for result in results] == ["done", "done"]
    assert noted == ['Turin: ["Turin in 2024", "Turin in 2025"]']


def test_the_script_of_the_page_is_read() -> None:
    """The file that models.md shows; its table has each key of a reply."""
    page = (_ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    section = page.partition("\n## Replies from a file\n")[2].partition("\n## ")[0]
    written = re.search(r"^```yaml\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    assert written
    replies = [read_reply(reply) for reply in yaml.safe_load(written[1])]
    assert replies[0].text == '[{"tool": "population", "city": "Lyon"}]\n'
    assert replies[1].expect == ("520774",)
    assert replies[2].tool_calls[0].arguments == '{"city": "Turin"}'
    assert replies[3].error.startswith("timeout")
    keys = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(keys) == sorted(ScriptedReply.__struct_fields__)


LINKED = [
    *PAGES,
    *(_ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")),
]


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page names a file that is there."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_settings_page_names_the_guards() -> None:
    """What a project's file may not set is told where settings are told."""
    from neuraxis.settings import GUARDED

    text = (_ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert all(f"`{guard}" in text for guard in GUARDED)


def test_what_the_api_page_lists_of_a_session_is_there() -> None:
    """Its attributes are told by hand, since no class declares them."""
    pytest.importorskip("griffe")
    told = runpy.run_path(str(_ROOT / "docs" / "make_api.py"))["_ATTRIBUTES"]
    with Session(ScriptedModel([]), plugins=[]) as session:
        assert [name for name in told["Session"] if not hasattr(session, name)] == []


def test_the_api_page_is_up_to_date() -> None:
    """It is made from the docstrings: `python docs/make_api.py`."""
    pytest.importorskip("griffe")
    made = runpy.run_path(str(_ROOT / "docs" / "make_api.py"))["page"]()
    assert (_ROOT / "docs" / "api.md").read_text(encoding="utf-8") == made
