"""What a yes to a script's changes is for: the change that was asked about."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Session
from neuraxis.cli.approve import question as terminal_question
from neuraxis.events import ApprovalAsked, to_json
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe
from neuraxis.settings import Settings

pytestmark = pytest.mark.skipif(
    not any(kind.works for kind in probe()), reason="no sandbox works here"
)
READ = {"tool": "file_reader", "file_path": "page.txt"}
RUN = {"tool": "EXECUTE_PYTHON_FILE", "file_path": "go.py"}
FIX = "t = open('notes.md').read(); open('notes.md', 'w').write(t.replace('tpyo', 'x'))"
Approve = Callable[[ApprovalAsked], bool]


def _write(path: str, contents: str) -> dict[str, Any]:
    return {"tool": "FILEWRITER", "file_path": path, "contents": contents}


def _session(folder: Path, approve: Approve, *plans: Any, **more: Any) -> Session:
    folder.mkdir(exist_ok=True)
    replies = [one if isinstance(one, str) else json.dumps(one) for one in plans]
    return Session(
        model=ScriptedModel(replies),
        plugins=["neuraxis:files", "neuraxis:python_file"],
        workspace=folder,
        settings=Settings(),
        approve=approve,
        **more,
    )


def _run_script(folder: Path, code: str, approve: Approve) -> Answer:
    """What becomes of a script that the request asks for."""
    with _session(folder, approve, [_write("go.py", code), RUN], "ok") as session:
        return session.run_sync("write go.py and run it")


@pytest.mark.parametrize(
    "later",
    [
        _write("notes.md", "gone"),
        {"tool": "delete_file", "file_path": "notes.md"},
        {"tool": "move_file", "file_path": "notes.md", "new_path": "b.md"},
    ],
)
@pytest.mark.parametrize("when", ["same request", "next request", "next session"])
def test_a_file_that_a_script_changed_stays_the_users(
    tmp_path: Path, later: dict[str, Any], when: str
) -> None:
    """The yes was for one line; the rest of the file is none of the runtime's."""
    folder, asked = tmp_path / "w", list[ApprovalAsked]()
    folder.mkdir()
    (folder / "notes.md").write_text("mine\ntpyo\n")

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return len(asked) == 1

    given = {"journal": str(tmp_path / "j.sqlite")}
    plan: list[Any] = [_write("go.py", FIX), RUN]
    plans = [[*plan, later], "ok"] if when == "same request" else [plan, "ok", later]
    with _session(folder, approve, *plans, "ok", **given) as session:
        session.run_sync("fix the typo in notes.md with go.py")
        if when == "next request":
            session.run_sync("thanks")
    if when == "next session":
        with _session(folder, approve, later, "ok", **given) as session:
            session.run_sync("hello")
    assert len(asked) == 2
    assert "the user's file" in asked[1].reason
    assert (folder / "notes.md").read_text() == "mine\nx\n"


def test_a_file_that_a_script_makes_is_the_runtimes(tmp_path: Path) -> None:
    """Nobody is asked when it is changed, by a script or a call."""
    asked = list[ApprovalAsked]()
    plan = [_write("go.py", "open('n.md', 'a').write('x')"), RUN, RUN]
    plan += [_write("n.md", "y"), {"tool": "delete_file", "file_path": "n.md"}]
    approve = lambda one: bool(asked.append(one))  # noqa: E731
    with _session(tmp_path / "w", approve, plan, "ok") as session:
        answer = session.run_sync("write go.py and run it")
    assert [call.status for call in answer.calls] == ["done"] * 5
    assert asked == []


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a.md", "open('a.md', 'a').write('x')"),
        ("a.md", "import os; os.remove('a.md')"),
        ("a.md", "import os; os.rename('a.md', 'd.md')"),
        # nobody was asked about it: it was the runtime's to make
        ("new.md", "open('new.md', 'w').write('x')"),
    ],
)
@pytest.mark.parametrize("yes", [True, False])
def test_what_the_user_wrote_while_they_were_asked_is_not_overwritten(
    tmp_path: Path, name: str, code: str, yes: bool
) -> None:
    """The other changes are made; the model is told."""
    for path in ("a.md", "b.md"):
        (tmp_path / path).write_text("old\n")

    def approve(_: ApprovalAsked) -> bool:
        (tmp_path / name).write_text("a whole new chapter\n")
        return yes

    more = "\nopen('b.md', 'w').write('new')\nopen('c.md', 'w').write('new')"
    answer = _run_script(tmp_path, code + more, approve)
    assert (tmp_path / name).read_text() == "a whole new chapter\n"
    assert (tmp_path / "b.md").read_text() == ("new" if yes else "old\n")
    assert (tmp_path / "c.md").read_text() == "new"
    told = f'something else changed, deleted or made these files: "{name}"'
    assert (told in str(answer.calls[-1].warnings)) is (yes or name == "new.md")


def test_a_file_that_the_user_deleted_while_they_were_asked_stays_deleted(
    tmp_path: Path,
) -> None:
    """A yes to a change of it is none to make it again."""
    (tmp_path / "a.md").write_text("mine", encoding="utf-8")
    code = "open('a.md', 'a').write('x')"
    answer = _run_script(tmp_path, code, lambda _: (tmp_path / "a.md").unlink() is None)
    assert not (tmp_path / "a.md").exists()
    assert '"a.md"' in str(answer.calls[-1].warnings)


def test_what_nobody_touched_meanwhile_is_changed_after_the_yes(tmp_path: Path) -> None:
    """The control."""
    (tmp_path / "a.md").write_text("mine", encoding="utf-8")
    _run_script(tmp_path, "open('a.md', 'a').write('x')", lambda _: True)
    assert (tmp_path / "a.md").read_text() == "minex"


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("journal", [True, False])
def test_a_name_that_is_no_utf_8_is_told_as_not_kept(
    tmp_path: Path, there: bool, journal: bool
) -> None:
    """Nobody is asked in vain, and all that is told can be written."""
    folder, odd = tmp_path / "w", b"\xff\xfe.md"
    folder.mkdir()
    (folder / "page.txt").write_text("x")
    place = os.fsencode(folder) + b"/" + odd
    code = f"open({odd!r}, 'w').write('x')"
    if there:
        Path(os.fsdecode(place)).write_text("mine", encoding="utf-8")
        code = f"import os; os.remove({odd!r})"
    asked = list[ApprovalAsked]()
    given = {"journal": str(tmp_path / "j.sqlite")} if journal else {}
    more = "\nopen('x.cfg', 'w').write('x')"
    plans = [READ, [_write("go.py", code + more), RUN], "ok"]
    approve = lambda one: not asked.append(one)  # noqa: E731
    with _session(folder, approve, *plans, **given) as session:
        answer = session.run_sync("Read page.txt, write go.py and run it")
    told = "".join(answer.calls[-1].warnings)
    assert told.encode()
    assert "Not all that the script did was kept" in told
    assert "\\udcff" in told
    assert os.path.exists(place) is there
    assert [one.call["files"] for one in asked] == [{"made": ["x.cfg"]}]  # type: ignore[index,call-overload]
    assert terminal_question(asked[0]).encode()
    assert json.dumps(to_json(asked[0]), ensure_ascii=False).encode()
    assert (folder / "x.cfg").exists()


def test_a_folder_with_a_name_that_is_no_utf_8_stays(tmp_path: Path) -> None:
    """The message names what is in the way, with escapes."""
    (tmp_path / "d").mkdir()
    place = os.fsencode(tmp_path) + b"/d/\xff"
    Path(os.fsdecode(place)).write_text("mine", encoding="utf-8")
    code = "import shutil; shutil.rmtree('d'); open('d', 'w').write('x')"
    answer = _run_script(tmp_path, code, lambda _: True)
    told = "".join(answer.calls[-1].warnings)
    assert told.encode()
    assert '"d": the folder there holds "d/\\udcff"' in told
    assert os.path.exists(place)
