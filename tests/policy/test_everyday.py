"""Thirty ordinary requests: how often a person is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuraxis import Answer, Session
from neuraxis.builtin.fetch_url import plugin as fetch_url
from neuraxis.builtin.web_search import providers
from neuraxis.builtin.web_search.providers import Hit
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.http.client import Response
from neuraxis.sandbox.process.run import probe
from neuraxis.settings import Setting, Settings

REQUESTS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("everyday.yaml").read_text("utf-8")
)
FILES = {
    "prices.csv": "thing,price\nlamp,30\nchair,80\n",
    "notes.txt": "buy milk\ncall Ada about the budget\n",
    "sales.csv": "city,amount\nLyon,10\nTurin,20\nLyon,30\n",
    "customers.csv": "city,name\nTurin,Bo\n,\nLyon,Ada\n",
    "thesis.md": "# Thesis\n\nTea is a drink.\n",
    "measurements.json": '[{"t": 1, "v": 2.5}, {"t": 2, "v": 3.5}]',
    "area.py": "def area(width, height):\n    return width + height\n",
    "draft.txt": "Once upon a time\n",
    "old.log": "started\n",
    "letter.txt": "Dear Ada\n",
    "report.md": "# Report\n\nThe deadline is Friday.\n",
    "summary.md": "The total is 70.\n",
    "hello.py": "print('hello')\n",
    "error.log": "OSError: [Errno 28] No space left on device\n",
    "invoice.txt": "Lamp, 30\n",
}
PLUGINS = ["fetch_url", "web_search", "files", "tables", "plots", "python_file"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's files, and a web that answers."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")

    def fetch(url: str, **_: Any) -> Response:
        body = f"What stands at {url}: the harbour opens again.".encode()
        return Response(
            url=url, status=200, reason="OK", content_type="text/plain", charset=None,
            body=body,
        )  # fmt: skip

    def hits(*_: Any) -> list[Hit]:
        url = "https://kitchen.example/apple-cake"
        return [Hit(title="Found", url=url, snippet="Four apples, and Thimphu.")]

    monkeypatch.setattr(fetch_url.client, "fetch", fetch)
    monkeypatch.setattr(providers, "ddgs", hits)
    work = tmp_path / "w"
    work.mkdir()
    for name, text in FILES.items():
        (work / name).write_text(text, encoding="utf-8")
    return work


def session_for(folder: Path, requests: list[dict[str, Any]], approve: Any) -> Session:
    replies: list[str] = []
    for request in requests:
        replies += [*map(json.dumps, request["replies"]), "Done."]
    provider = {"search.provider": Setting(value="ddgs", source="test")}
    return Session(
        model=ScriptedModel(replies),
        plugins=[f"neuraxis:{name}" for name in PLUGINS],
        workspace=folder,
        settings=Settings(values=provider),
        approve=approve,
    )


def all_done(request: dict[str, Any], answer: Answer) -> None:
    planned = sum(map(len, request["replies"]))
    errors = [result.error for result in answer.calls if result.error]
    assert not errors, (request["q"], errors)
    assert len(answer.calls) == planned, request["q"]


@pytest.mark.parametrize(
    "request_", REQUESTS, ids=[each["q"][:50] for each in REQUESTS]
)
def test_a_session_of_its_own(folder: Path, request_: dict[str, Any]) -> None:
    """As often as foreseen, and the request is done."""
    asked: list[ApprovalAsked] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    with session_for(folder, [request_], approve) as session:
        all_done(request_, session.run_sync(request_["q"]))
    assert len(asked) == request_.get("asked", 0), [each.summary for each in asked]


def test_at_most_nine_questions_in_sessions_of_their_own() -> None:
    """The figure that the requests above add up to."""
    assert len(REQUESTS) == 30
    assert sum(request.get("asked", 0) for request in REQUESTS) <= 9


@pytest.mark.parametrize("wide", [0, -1])
def test_at_most_eight_questions_in_one_session(folder: Path, wide: int) -> None:
    """Where the person says yes for this host, or this command."""
    asked: list[str] = []

    def approve(question: ApprovalAsked) -> bool | str:
        asked.append(question.summary)
        return question.offers[wide] if question.offers else True

    with session_for(folder, REQUESTS, approve) as session:
        for request in REQUESTS:
            all_done(request, session.run_sync(request["q"]))
    assert len(asked) <= 8, asked
