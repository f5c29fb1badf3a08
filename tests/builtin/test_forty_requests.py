"""Forty ordinary requests on a folder with ten files of a person (finding N1)."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuraxis import Session
from neuraxis.events import ApprovalAsked
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe

REQUESTS: list[dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("forty_requests.yaml").read_text("utf-8")
)
PLUGINS = ("files", "python_file", "tables", "images", "plots")


def _picture() -> bytes:
    image = pytest.importorskip("PIL.Image")
    sink = BytesIO()
    image.new("RGB", (8, 8), "red").save(sink, "PNG")
    return sink.getvalue()


def _persons_files() -> dict[str, bytes]:
    """Ten files, with line ends of Windows and bytes that are no text among them."""
    return {
        "notes.txt": b"buy milk\ncall Ada\n",
        "sales.csv": b"city,amount\nLyon,10\nTurin,20\nLyon,30\n",
        "report.md": b"# Report\n\nSales rose. The deadline is Friday.\n",
        "draft.txt": "Über den Wolken".encode("cp1252"),
        "old.log": b"\x00\x01 not a text\n",
        "config.json": b'{"debug": false}\n',
        "photo.png": _picture(),
        "hello.py": b"print('hello')  # TODO world\n",
        "todo.md": b"- write a poem\r\n- rest\r\n",
        "letter.txt": b"Dear Ada",
    }


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _replies() -> list[str]:
    replies: list[str] = []
    for request in REQUESTS:
        calls = json.dumps(request["calls"])
        replies += [f"<!-- RESPONSE_START -->\n{calls}\n<!-- RESPONSE_END -->", "Done."]
    return replies


def test_N1_forty_ordinary_requests_change_what_they_ask_for(tmp_path: Path) -> None:
    """Nothing else changes, a person is asked as foreseen, and undo brings all back."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    pytest.importorskip("polars")
    pytest.importorskip("matplotlib")
    assert len(REQUESTS) == 40
    folder, before = tmp_path / "folder", _persons_files()
    folder.mkdir()
    for name, data in before.items():
        (folder / name).write_bytes(data)
    (folder / "photo.png").chmod(0o640)
    asked: list[ApprovalAsked] = []
    session = Session(
        model=ScriptedModel(_replies()),
        plugins=[f"neuraxis:{name}" for name in PLUGINS],
        workspace=folder,
        journal=tmp_path / "state/journal.db",
        approve=lambda question: not asked.append(question),  # type: ignore[func-returns-value]
    )
    now = dict(before)
    for request in REQUESTS:
        asked.clear()
        answer = session.run_sync(request["q"])
        for result in answer.calls:
            assert result.status == "done", (request["q"], result.error)
        assert bool(asked) == request.get("approved", False), request["q"]
        after = _files(folder)
        changes = request.get("changes", {})
        for name in before:
            if name in changes:
                wanted = changes[name]
                assert (None if wanted is None else wanted.encode()) == after.get(
                    name
                ), request["q"]
            elif name in now:
                assert after.get(name) == now[name], (request["q"], name)
        assert set(request.get("makes", ())) <= set(after) - set(now), request["q"]
        if "says" in request:
            assert answer.calls[-1].value["output"] == request["says"]
        now = after
    for _ in REQUESTS:
        undone = session.undo()
        assert () == undone.changed_since + undone.lost + undone.refused, undone
    assert _files(folder) == before
    assert {path.name for path in folder.rglob("*")} == set(before), "folders are left"
    assert (folder / "photo.png").stat().st_mode & 0o777 == 0o640
    session.close()
