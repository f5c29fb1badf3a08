"""Files of the user in a session: approvals, scripts, undo, and the workspace."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Call, Context, Options, Policy, Session, agent, command
from neuraxis.errors import ConfigError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.sandbox.process.run import probe
from neuraxis.session.answer import Answer

PLUGINS = ("neuraxis:files", "neuraxis:python_file")


def _session(tmp_path: Path, *calls: dict[str, Any], **given: Any) -> Session:
    """A session whose model writes each call as a reply, on a folder with notes."""
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    if not (folder / "notes.txt").exists():
        (folder / "notes.txt").write_text("milk\n", encoding="utf-8")
    replies: list[str] = []
    for each in calls:
        block = json.dumps([each])
        replies += [f"<!-- RESPONSE_START -->\n{block}\n<!-- RESPONSE_END -->", "Done."]
    given = {"journal": tmp_path / "state/journal.db", **given}
    return Session(
        model=ScriptedModel(replies), plugins=PLUGINS, workspace=folder, **given
    )


def _reopened(tmp_path: Path, session: str) -> Session:
    """The session, opened again by another program."""
    return Session.open(
        session,
        model=ScriptedModel([]),
        plugins=PLUGINS,
        workspace=tmp_path / "folder",
        journal=tmp_path / "state/journal.db",
    )


def _write(contents: str = "gone", name: str = "notes.txt") -> dict[str, Any]:
    return {"tool": "FILEWRITER", "file_path": name, "contents": contents}


def _notes(tmp_path: Path) -> str:
    return (tmp_path / "folder/notes.txt").read_text("utf-8")


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        (_write(), "to another name"),
        ({"tool": "delete_file", "file_path": "notes.txt"}, "Leave it as it is"),
        (
            {"tool": "move_file", "file_path": "./notes.txt", "new_path": "n.txt"},
            "Copy it to the other name",
        ),
        (
            {"tool": "append_file", "file_path": "notes.txt", "text": "x"},
            "to another name",
        ),
    ],
)
def test_N1_C14_with_nobody_to_ask_it_is_refused_with_the_way_out(
    call: dict[str, Any], instead: str, tmp_path: Path
) -> None:
    """The call is denied before it runs, and the sentence says what to do."""
    answer = _session(tmp_path, call).run_sync("tidy up")
    error = answer.calls[0].error
    assert error is not None
    assert error.code == "denied"
    assert instead in error.message
    assert "--yes-to" in error.message
    assert _notes(tmp_path) == "milk\n"


def test_N1_an_approval_replaces_it_and_undo_brings_it_back(tmp_path: Path) -> None:
    """In another session over the same journal, too."""
    asked: list[str] = []

    def approve(question: Any) -> bool:
        asked.append(question.reason)
        return True

    session = _session(tmp_path, _write(), approve=approve)
    answer = session.run_sync("Overwrite notes.txt")
    assert asked[0] == (
        'this would replace the user\'s file "notes.txt"; `neuraxis undo` can revert it'
    )
    assert "`neuraxis undo`" in answer.calls[0].warnings[0]
    assert _notes(tmp_path) == "gone"
    session.close()
    later = _reopened(tmp_path, session.id)
    assert later.undo().restored == ("notes.txt",)
    assert _notes(tmp_path) == "milk\n"
    later.close()


def test_N1_yes_to_and_a_policy_that_allows_are_approvals(tmp_path: Path) -> None:
    """Said beforehand; the old version is stored all the same."""
    session = _session(tmp_path, _write(), policy=Policy(yes_to=["files.write_file"]))
    assert session.run_sync("go").calls[0].status == "done"
    assert session.undo().restored == ("notes.txt",)
    session.close()


def test_the_answer_lists_the_files_that_are_there(tmp_path: Path) -> None:
    """Not those that the same run deleted or moved."""
    delete = {"tool": "delete_file", "file_path": "a.txt"}
    move = {"tool": "move_file", "file_path": "b.txt", "new_path": "c.txt"}
    plan = [_write(name="a.txt"), _write(name="b.txt"), delete, move]
    ends: list[Any] = []
    with Session(
        model=ScriptedModel([json.dumps(plan), "Done."]),
        plugins=PLUGINS,
        workspace=tmp_path / "folder",
    ) as session:
        assert session.run_sync("go", ends.append).files == ("c.txt",)
    assert ends[-1].files == ("c.txt",)


def test_N1_an_own_file_is_written_again(tmp_path: Path) -> None:
    """In this session and in the next; not after somebody changed it."""
    new = tmp_path / "folder/new.txt"
    for contents in ("one", "two"):
        session = _session(
            tmp_path, _write(contents, "new.txt"), _write(contents + "!", "new.txt")
        )
        for _ in range(2):
            assert session.run_sync("go").calls[0].status == "done"
        session.close()
    new.write_text("mine", encoding="utf-8")
    session = _session(tmp_path, _write("three", "new.txt"))
    assert session.run_sync("go").calls[0].status == "failed"
    assert new.read_text("utf-8") == "mine"
    session.close()


def _run_script(tmp_path: Path, source: str, **given: Any) -> tuple[Session, Answer]:
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/s.py").write_text(source, encoding="utf-8")
    call = {"tool": "EXECUTE_PYTHON_FILE", "file_path": "s.py"}
    session = _session(tmp_path, call, **given)
    return session, session.run_sync("Run s.py")


SCRIPT = """import os
open('out.txt', 'w').write('new')
os.makedirs('d/e')
open('d/e/f', 'w').write('deep')
open('notes.txt', 'w').write('gone')
os.remove('other.txt')
"""


def test_N1_a_script_brings_back_new_files_only(tmp_path: Path) -> None:
    """What it did to the user's stays undone, and the model is told."""
    session, answer = _run_script(tmp_path, "import os\nos.makedirs('d')\n" + "\n".join(
        ["open('d/out.txt', 'w').write('new')", "open('notes.txt', 'w').write('gone')"]
    ))  # fmt: skip
    assert answer.calls[0].status == "done"
    assert (tmp_path / "folder/d/out.txt").read_text("utf-8") == "new"
    assert _notes(tmp_path) == "milk\n"
    assert any('"notes.txt"' in text for text in answer.calls[0].warnings)
    session.close()


def test_N1_a_script_that_is_approved_is_undone(tmp_path: Path) -> None:
    """One question for all its changes; deleting is one of them."""
    asked: list[Any] = []

    def approve(question: Any) -> bool:
        asked.append(question.call["files"])
        return True

    (tmp_path / "folder").mkdir()
    folder = tmp_path / "folder"
    (folder / "other.txt").write_text("other", encoding="utf-8")
    (folder / "s.py").write_text(SCRIPT, encoding="utf-8")
    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    call = {"tool": "EXECUTE_PYTHON_FILE", "file_path": "s.py"}
    session = _session(tmp_path, call, approve=approve)
    answer = session.run_sync("Run s.py")
    assert answer.files == ("d/e/f", "notes.txt", "out.txt")  # not what it deleted
    assert asked == [{"changed": ["notes.txt"], "deleted": ["other.txt"]}]
    assert _notes(tmp_path) == "gone"
    assert not (folder / "other.txt").exists()
    undone = session.undo()
    assert set(undone.restored) == {"notes.txt", "other.txt"}
    assert sorted(path.name for path in folder.iterdir()) == [
        "notes.txt", "other.txt", "s.py",
    ]  # fmt: skip
    session.close()


def test_N1_undo_asks_about_what_changed_since(tmp_path: Path) -> None:
    """The person who approves is asked; who says no keeps the file."""
    asked: list[str] = []
    says = [True, False]

    def approve(question: Any) -> bool:
        asked.append(question.reason)
        return says.pop(0)

    session = _session(tmp_path, _write(), approve=approve)
    session.run_sync("Overwrite notes.txt")
    (tmp_path / "folder/notes.txt").write_text("mine", encoding="utf-8")
    assert session.undo().changed_since == ("notes.txt",)
    assert "changed after the run" in asked[1]
    assert _notes(tmp_path) == "mine"
    assert session.undo(changed_since=True).restored == ("notes.txt",)
    assert _notes(tmp_path) == "milk\n"
    session.close()


async def _exists(folder: Path) -> Session:
    @command(effects="read")
    def look(context: Context) -> bool:
        """Look whether the workspace is there."""
        return context.workspace.is_dir()

    session = Session(model=ScriptedModel([]), plugins=[look], workspace=folder)
    result = await session.call(Call(id="", plugin=None, command="look", arguments={}))
    assert result.value is True
    return session


def test_N10_the_workspace_exists_before_the_first_command(tmp_path: Path) -> None:
    """Whoever opens a file in it need not make it."""
    import asyncio

    asyncio.run(_exists(tmp_path / "a/b")).close()


def test_M6_a_workspace_that_is_a_link_is_refused_by_name(tmp_path: Path) -> None:
    """A checkout may hold one to the user's home."""
    (tmp_path / "home").mkdir()
    link = tmp_path / "neuraxis-workspace"
    try:
        link.symlink_to(tmp_path / "home")
    except OSError:
        pytest.skip("links cannot be made here")
    session = Session(model=ScriptedModel(["x"]), workspace=link)
    with pytest.raises(ConfigError, match="neuraxis-workspace is a link to"):
        session.run_sync("hello")
    session.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_L_stored_assets_are_for_their_owner_only(tmp_path: Path) -> None:
    """0600 in 0700 folders, as the journal is."""
    session = _session(tmp_path, options=Options(asset_folder=tmp_path / "assets"))
    session.attach("private " * 10_000)
    made = [tmp_path / "assets", *(tmp_path / "assets").rglob("*")]
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in made}
    assert modes == {True: 0o700, False: 0o600}
    session.close()


def test_an_id_of_ones_own_leads_out_of_no_folder(tmp_path: Path) -> None:
    """Old versions and objects of `../../x` stay in their folders, and are found."""
    name = "../../escaped"
    given: dict[str, Any] = {
        "id": name,
        "options": Options(asset_folder=tmp_path / "a/b/assets"),
        "policy": Policy(yes_to=["files.write_file"]),
    }
    with _session(tmp_path, _write("new"), **given) as session:
        session.attach([1] * 10)
        session.run_sync("Change notes.txt")
    assert _notes(tmp_path) == "new"
    (versions,) = [
        file for file in (tmp_path / "state/versions").iterdir() if file.is_dir()
    ]
    (assets,) = (tmp_path / "a/b/assets").iterdir()
    assert list(versions.iterdir())
    assert list(assets.iterdir())
    assert not [*tmp_path.rglob("escaped*")]
    with _reopened(tmp_path, name) as later:
        assert later.undo().restored == ("notes.txt",)
    assert _notes(tmp_path) == "milk\n"


@pytest.mark.parametrize(
    "given",
    [
        "https://example.org/a.png",
        Path("https://example.org/a.png"),
        "data:image/png;base64,iVBO" + "R" * 5_000,
    ],
)
def test_an_address_is_not_attached(given: str | Path) -> None:
    """It is not fetched, and no mangled path is told."""
    told = "attach: expected the path of a file, got the address .*download it"
    with Session(ScriptedModel([])) as session:
        with pytest.raises(ConfigError, match=told):
            session.run_sync("What is this?", attach=[given])
        assert not session.assets.ids


def test_a_text_that_is_a_files_name_is_stored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """`run(attach=["a.csv"])` reads the file, `session.attach("a.csv")` does not."""
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")
    with Session(ScriptedModel([])) as session:
        session.attach("a.csv, and more\n")
        session.attach("no such file")
        assert "stores these characters" not in caplog.text
        session.attach(str(tmp_path / "a.csv"))
    assert "write attach(Path(" in caplog.text


@command(effects="read")
def person(context: Context) -> str:
    """The person saves the file meanwhile."""
    (context.workspace / "list.md").write_text("mine\n", encoding="utf-8")
    return "ok"


def _plan_with_edit(*after: dict[str, Any]) -> list[str]:
    """Replies: the file is made, a person saves it, and these calls follow."""
    calls = [_write("a", "list.md"), {"tool": "person"}, *after]
    return [json.dumps([call]) for call in calls] + ["Done."]


def test_attack16_a2_a_yes_to_a_deletion_that_can_be_undone_is_true(
    tmp_path: Path,
) -> None:
    """The file that the run had made holds a person's edit by then."""
    asked: list[str] = []

    def approve(question: Any) -> bool:
        asked.append(question.reason)
        return True

    delete = {"tool": "delete_file", "file_path": "list.md"}
    with Session(
        ScriptedModel(_plan_with_edit(delete)),
        plugins=[*PLUGINS, person],
        workspace=tmp_path,
        approve=approve,
    ) as session:
        session.run_sync("Make list.md")
        assert not (tmp_path / "list.md").exists()
        undone = session.undo()
    assert "`session.undo()` can revert it" in asked[0]
    assert (undone.restored, undone.changed_during) == (("list.md",), ("list.md",))
    assert (tmp_path / "list.md").read_text("utf-8") == "mine\n"


def test_attack16_a2_an_edit_between_an_agents_change_and_the_outer_ones_comes_back(
    tmp_path: Path,
) -> None:
    """Both are changes of one run."""
    inner = [json.dumps([_write("a", "list.md")]), "Made."]
    writer = agent(
        "writer", "Writes.", model=ScriptedModel(inner), plugins=["neuraxis:files"]
    )
    append = {"tool": "append_file", "file_path": "list.md", "text": "b"}
    calls = [{"tool": "writer", "request": "Make list.md"}, {"tool": "person"}, append]
    replies = [*(json.dumps([call]) for call in calls), "Done."]
    with Session(
        ScriptedModel(replies),
        plugins=["neuraxis:files", writer, person],
        workspace=tmp_path,
    ) as session:
        session.run_sync("Make list.md, add b to list.md")
        assert (tmp_path / "list.md").read_text("utf-8").startswith("mine\nb")
        undone = session.undo()
    assert (undone.restored, undone.changed_during) == (("list.md",), ("list.md",))
    assert (tmp_path / "list.md").read_text("utf-8") == "mine\n"
