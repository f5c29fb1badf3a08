"""M7: what the file tool refuses, a session's script neither reads nor writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuraxis import Session
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe

NAMES = (
    ".env",
    ".envrc",
    ".vscode/tasks.json",
    "sub/.git/hooks/pre-commit",
    "sub/.env",
)
SCRIPT = f"""\
import os
for name in {NAMES!r}:
    try:
        print("read", open(name).read())
    except OSError:
        pass
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    try:
        open(name, "w").write("theirs")
    except OSError:
        pass
open("made.txt", "w").write("theirs")
"""


@pytest.mark.parametrize("there", [True, False])
def test_M7_a_script_cannot_do_what_the_file_tool_refuses(
    tmp_path: Path, there: bool
) -> None:
    """Through a session, with a person who says yes to all; a new text comes back."""
    if not any(kind.works for kind in probe()):
        pytest.skip("no sandbox works on this machine")
    work = tmp_path / "w"
    for name in NAMES if there else ():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("4711", encoding="utf-8")
    calls = [
        {"tool": "FILEWRITER", "file_path": "eggs_plan.py", "contents": SCRIPT},
        {"tool": "EXECUTE_PYTHON_FILE", "file_path": "eggs_plan.py"},
    ]
    with Session(
        model=ScriptedModel([json.dumps(calls), "ok"]),
        plugins=["neuraxis:files", "neuraxis:python_file"],
        workspace=work,
        approve=lambda _: True,
    ) as session:
        answer = session.run_sync("Write eggs_plan.py and run it")
    assert answer.calls[1].status == "done", answer.calls[1]
    assert "4711" not in str(answer.calls[1].value)
    assert (work / "made.txt").read_text(encoding="utf-8") == "theirs"
    for name in NAMES:
        assert (work / name).exists() is there
        assert not there or (work / name).read_text(encoding="utf-8") == "4711"
