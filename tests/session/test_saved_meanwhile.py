"""A person saves a file while a call changes it: nothing is lost (attack 17, r3)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.builtin.files import editing
from neuraxis.events import FileChanged
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.process.run import probe
from neuraxis.session.answer import Answer

MINE = "mine, precious\n"
REFUSED = "changed by somebody else meanwhile, so it was not"
SCRIPT = "import os\nopen('n.md', 'w').write('x')\nopen('other.md', 'w').write('x')"


def _call(tool: str, **arguments: str) -> dict[str, str]:
    return {"tool": tool, **arguments}


def _write(name: str, text: str) -> dict[str, str]:
    return _call("FILEWRITER", file_path=name, contents=text)


def _session(tmp_path: Path, *calls: dict[str, str], **given: Any) -> Session:
    """A session whose model makes one call for each request."""
    replies: list[str] = []
    for each in calls:
        block = json.dumps([each])
        replies += [f"<!-- RESPONSE_START -->\n{block}\n<!-- RESPONSE_END -->", "Done."]
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    return Session(
        model=ScriptedModel(replies),
        plugins=("neuraxis:files", "neuraxis:python_file"),
        workspace=folder,
        journal=tmp_path / "state/journal.db",
        **given,
    )


def _saved_at_the_event(
    session: Session, request: str, file: Path, kind: str
) -> tuple[Answer, str]:
    """Save the file when its change is reported; return what holds it afterwards.

    That is after the old version was stored, and before the file is changed.
    """
    saves: list[bool] = []

    def watch(event: object) -> None:
        if isinstance(event, FileChanged) and event.kind == kind and not saves:
            saves.append(True)
            file.write_text(MINE, encoding="utf-8")

    answer = session.run_sync(request, watch=watch)
    assert saves
    return answer, file.read_text(encoding="utf-8")


def _is_refused(answer: Answer) -> bool:
    (call,) = answer.calls
    told = f"{call.error and call.error.message} {call.warnings} {call.value}"
    return REFUSED in told


OWN = (_write("n.md", "milk\n"), "Write n.md")


@pytest.mark.parametrize(
    ("call", "request_", "kind"),
    [
        pytest.param(_write("n.md", "x"), "Write it again", "write", id="over own"),
        pytest.param(_write("m.md", "x"), "Write m.md", "write", id="new name"),
        pytest.param(
            _call("append_file", file_path="n.md", text="eggs"),
            *("Append eggs to n.md", "append"),
            id="append",
        ),
        pytest.param(
            _call("append_file", file_path="m.md", text="eggs"),
            *("Append eggs to m.md", "append"),
            id="append to none",
        ),
        pytest.param(
            _call("replace_in_file", file_path="n.md", old="milk", new="x"),
            *("Replace milk in n.md", "edit"),
            id="passage",
        ),
        pytest.param(
            _call("delete_file", file_path="n.md"), "Delete n.md", "delete", id="delete"
        ),
        pytest.param(
            _call("copy_file", file_path="n.md", new_path="m.md"),
            *("Copy n.md to m.md", "copy"),
            id="copy",
        ),
        pytest.param(
            _call("move_file", file_path="n.md", new_path="m.md"),
            *("Rename n.md to m.md", "move"),
            id="move",
        ),
    ],
)
def test_attack17_r3_what_is_saved_after_the_old_version_was_stored_stays(
    call: dict[str, str], request_: str, kind: str, tmp_path: Path
) -> None:
    """The call fails and says why; undo leaves the file alone."""
    is_new = "m.md" in call.values()
    file = tmp_path / "folder" / ("m.md" if is_new else "n.md")
    with _session(tmp_path, OWN[0], call) as session:
        session.run_sync(OWN[1])
        answer, text = _saved_at_the_event(session, request_, file, kind)
        assert (text, _is_refused(answer)) == (MINE, True)
        if is_new:  # what would have been copied or moved is where it was
            assert (tmp_path / "folder/n.md").read_text(encoding="utf-8") == "milk\n"
        undone = session.undo()
        assert (undone.restored, undone.removed) == ((), ())
        assert undone.changed_since == (file.name,)
        assert file.read_text(encoding="utf-8") == MINE
        assert not [*(tmp_path / "folder").glob(".nx-*")]


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (_write("mine.md", "x"), "write"),
        (_call("delete_file", file_path="mine.md"), "delete"),
        (_call("move_file", file_path="n.md", new_path="mine.md"), "move"),
    ],
)
def test_attack17_r3_a_yes_is_for_the_file_as_it_was(
    call: dict[str, str], kind: str, tmp_path: Path
) -> None:
    """The yes to the change; undo would ask about what was saved since."""
    asked: list[object] = []

    def approve(question: object) -> bool:
        asked.append(question)
        return len(asked) == 1

    with _session(tmp_path, OWN[0], call, approve=approve) as session:
        session.run_sync(OWN[1])
        file = tmp_path / "folder/mine.md"
        file.write_text("as it was", encoding="utf-8")
        answer, text = _saved_at_the_event(session, "Change mine.md", file, kind)
        assert (len(asked), text, _is_refused(answer)) == (1, MINE, True)
        assert session.undo().changed_since == ("mine.md",)
        assert file.read_text(encoding="utf-8") == MINE


@pytest.mark.parametrize(
    ("does", "there"), [("writes", True), ("writes", False), ("deletes", True)]
)
def test_attack17_r3_a_script_replaces_nothing_that_was_saved_meanwhile(
    does: str, there: bool, tmp_path: Path
) -> None:
    """Its other changes are made, and the model is told."""
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    script = SCRIPT.replace("open('n.md', 'w').write('x')", "os.remove('n.md')")
    script = script if does == "deletes" else SCRIPT
    run = _call("EXECUTE_PYTHON_FILE", file_path="job.py")
    with _session(tmp_path, OWN[0], _write("job.py", script), run) as session:
        for request in (OWN[1], "Write job.py"):
            session.run_sync(request)
        file, other = tmp_path / "folder/n.md", tmp_path / "folder/other.md"
        if not there:
            file.unlink()
        answer, text = _saved_at_the_event(session, "Run job.py", file, "script")
        assert (text, other.read_text(encoding="utf-8")) == (MINE, "x")
        assert _is_refused(answer)
        undone = session.undo()
        assert (undone.removed, undone.changed_since) == (("other.md",), ("n.md",))
        assert file.read_text(encoding="utf-8") == MINE


@pytest.mark.parametrize(
    ("does", "name"),
    [("append_file", "n.md"), ("append_file", "m.md"), ("replace_in_file", "n.md")],
)
def test_attack17_r3_a_passage_goes_into_the_file_that_was_read(
    does: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was saved, or made, after it was read: the call is to be repeated."""
    file = tmp_path / "folder" / name

    def late(make: Callable[..., bytes]) -> Callable[..., bytes]:
        def made(*given: Any, **options: Any) -> bytes:
            file.write_text(MINE, encoding="utf-8")
            return make(*given, **options)

        return made

    for function in ("appended", "replaced"):
        monkeypatch.setattr(editing, function, late(getattr(editing, function)))
    given = {"text": "eggs"} if does == "append_file" else {"old": "milk", "new": "x"}
    with _session(tmp_path, OWN[0], _call(does, file_path=name, **given)) as session:
        session.run_sync(OWN[1])
        answer = session.run_sync(f"Change {name}")
        assert _is_refused(answer)
        assert file.read_text(encoding="utf-8") == MINE


@pytest.mark.parametrize(
    "call", [_write("n.md", "x"), _call("delete_file", file_path="n.md")]
)
def test_attack17_r3_what_is_saved_after_the_permission_was_not_permitted(
    call: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their own file it was, when the call was free."""
    file, change = tmp_path / "folder/n.md", FileHistory.change

    def late(*given: Any, **options: Any) -> object:
        if file.exists():
            file.write_text(MINE, encoding="utf-8")
        return change(*given, **options)

    monkeypatch.setattr(FileHistory, "change", late)
    with _session(tmp_path, OWN[0], call) as session:
        session.run_sync(OWN[1])
        assert _is_refused(session.run_sync("Change it"))
        assert file.read_text(encoding="utf-8") == MINE


def test_attack17_r3_after_a_refusal_a_yes_changes_the_file_and_undo_knows_it(
    tmp_path: Path,
) -> None:
    """Undo goes back to what the person saved, not to what was before."""
    call = _write("n.md", "x")
    with _session(tmp_path, OWN[0], call, call, approve=lambda _: True) as session:
        session.run_sync(OWN[1])
        file = tmp_path / "folder/n.md"
        _, text = _saved_at_the_event(session, "Write it again", file, "write")
        assert text == MINE
        session.run_sync("Replace n.md")
        assert file.read_text(encoding="utf-8") == "x"
        assert session.undo().restored == ("n.md",)
        assert file.read_text(encoding="utf-8") == MINE


def test_attack17_r3_undo_replaces_nothing_that_was_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told as changed since, and undo can be repeated."""
    with _session(tmp_path, OWN[0], _write("n.md", "x")) as session:
        for request in (OWN[1], "Write it again"):
            session.run_sync(request)
        file, get = tmp_path / "folder/n.md", session.files.store.get

        def late(digest: str) -> bytes | None:
            file.write_text(MINE, encoding="utf-8")
            return get(digest)

        monkeypatch.setattr(session.files.store, "get", late)
        assert session.undo().changed_since == ("n.md",)
        assert file.read_text(encoding="utf-8") == MINE
        monkeypatch.undo()
        assert session.undo(changed_since=True).restored == ("n.md",)
        assert file.read_text(encoding="utf-8") == "milk\n"
