"""A SQLite journal in a long life: forgotten, closed, deleted, forked, shared."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import StorageError
from neuraxis.events import MessageSent
from neuraxis.journal import flush, open_journal
from neuraxis.journal.session_lock import Claims
from neuraxis.journal.sqlite import SqliteJournal

SAID = MessageSent(sender="user", receiver="model", content="x")


def _python(code: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
        + [str(argument) for argument in arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert not done.stderr
    return done.stdout.strip()


def _lines(path: Path, session: str) -> int:
    journal = open_journal(path)
    found = len(journal.read(session))
    journal.close()
    return found


def _is_free(path: Path, session: str) -> bool:
    """Whether another process may go on with the session."""
    code = """
        import sys
        from pathlib import Path
        from neuraxis.journal.session_lock import Claims
        print(Claims(Path(sys.argv[1])).take(sys.argv[2]))
    """
    return _python(code, f"{path}-locks", session) == "True"


def test_a_forgotten_journal_is_written_and_closed(tmp_path: Path) -> None:
    """What it held back is not lost, and other processes may have its sessions."""
    path = tmp_path / "journal.db"
    journal: Any = open_journal(path)
    journal.append("s", SAID)
    assert not _is_free(path, "s")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del journal
        gc.collect()
    assert not told
    assert _is_free(path, "s")
    assert _lines(path, "s") == 1


def test_what_is_held_back_is_written_at_the_end_of_the_process(tmp_path: Path) -> None:
    """Also where it is never collected: a thread that hangs has it."""
    path = tmp_path / "journal.db"
    code = """
        import sys, threading, time
        from pathlib import Path
        from neuraxis.events import MessageSent
        from neuraxis.journal import open_journal
        journal = open_journal(Path(sys.argv[1]))
        said = MessageSent(sender="user", receiver="model", content="x")
        journal.append("s", said)
        hang = lambda mine: time.sleep(100)
        threading.Thread(target=hang, args=(journal,), daemon=True).start()
    """
    _python(code, path)
    assert _lines(path, "s") == 1


@pytest.mark.parametrize("way", ["deleted", "replaced", "folder"])
def test_a_file_that_is_gone_is_told_with_the_next_write(
    tmp_path: Path, way: str
) -> None:
    """SQLite writes on into a deleted file, which nobody will ever read."""
    path = tmp_path / "deep" / "journal.db"
    journal = open_journal(path)
    journal.append("s", SAID, durable=True)
    aside = path.with_name("aside.db")
    if way == "folder":
        path.parent.rename(tmp_path / "aside")
    else:
        path.rename(aside)
    if way == "replaced":
        path.touch()
    with pytest.raises(StorageError, match=r"deleted or replaced while it was in use"):
        journal.append("s", SAID, durable=True)
    with pytest.raises(StorageError, match="put that file back"):
        journal.read("s")
    if way == "deleted":
        aside.rename(path)
        journal.append("s", SAID, durable=True)
        assert len(journal.read("s")) == 3
        journal.close()


def test_a_closed_journal_says_so_and_is_closed_once(tmp_path: Path) -> None:
    """SQLite would speak of a closed database."""
    journal = open_journal(tmp_path / "journal.db")
    journal.append("s", SAID)
    journal.close()
    journal.close()
    for session in ("s", "other"):
        with pytest.raises(StorageError, match=r"was closed, as `Session\.close`"):
            journal.append(session, SAID)
    with pytest.raises(StorageError, match="was closed"):
        journal.read("s")
    journal.close()
    assert _lines(tmp_path / "journal.db", "s") == 1


def test_one_session_that_went_on_elsewhere_is_no_other_ones_fault(
    tmp_path: Path,
) -> None:
    """What is held back of it is let go; the others of the journal are written."""
    path = tmp_path / "journal.db"
    first, second = open_journal(path), open_journal(path)
    first.append("s", SAID)
    first._claims.release("s")  # type: ignore[attr-defined] - as where files have no locks
    second.append("s", SAID, durable=True)
    first.append("mine", SAID)
    with pytest.raises(StorageError, match="session s went on elsewhere"):
        first.append("mine", SAID, durable=True)
    second.release("s")
    with pytest.raises(StorageError, match="open it again"):
        first.append("s", SAID)
    first.append("mine", SAID, durable=True)
    assert len(second.read("mine")) == 3
    assert len(first.read("s")) == 1
    first.append("s", SAID, durable=True)
    assert len(second.read("s")) == 2
    first.close()
    second.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_carries_nothing_of_sqlite_along(tmp_path: Path) -> None:
    """The child writes its own sessions; those of the parent are the parent's."""
    path = tmp_path / "journal.db"
    code = """
        import os, sys
        from pathlib import Path
        from neuraxis.errors import StorageError
        from neuraxis.events import MessageSent
        from neuraxis.journal import open_journal
        said = MessageSent(sender="user", receiver="model", content="x")
        journal = open_journal(Path(sys.argv[1]))
        journal.append("parent", said)
        child = os.fork()
        if not child:
            journal.append("child", said, durable=True)
            try:
                journal.append("parent", said)
            except StorageError as error:
                assert "open already" in str(error), error
                journal.close()
                os._exit(7)
            os._exit(8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        journal.append("parent", said, durable=True)
        print(len(journal.read("parent")), len(journal.read("child")))
        journal.close()
    """
    assert _python(code, path).split() == ["7", "2", "1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_session_that_the_parent_left_is_opened_again_in_the_child(
    tmp_path: Path,
) -> None:
    """What the child knows of it may be too little by then."""
    path = tmp_path / "journal.db"
    code = """
        import os, sys
        from pathlib import Path
        from neuraxis.errors import StorageError
        from neuraxis.events import MessageSent
        from neuraxis.journal import open_journal
        said = MessageSent(sender="user", receiver="model", content="x")
        journal = open_journal(Path(sys.argv[1]))
        journal.append("s", said, durable=True)
        ready, go_on = os.pipe()
        child = os.fork()
        if not child:
            os.read(ready, 1)
            try:
                journal.append("s", said)
            except StorageError as error:
                assert "went on elsewhere" in str(error), error
                assert len(journal.read("s")) == 2
                journal.append("s", said, durable=True)
                os._exit(7)
            os._exit(8)
        journal.append("s", said, durable=True)
        journal.close()
        os.write(go_on, b"x")
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert _python(code, path) == "7"
    assert _lines(path, "s") == 3


def test_flush_takes_any_journal_and_loses_no_answer(tmp_path: Path) -> None:
    """One that has no such method, and one that cannot write now."""
    flush(open_journal(None))
    journal = open_journal(tmp_path / "journal.db")
    assert isinstance(journal, SqliteJournal)
    journal.append("s", SAID)
    (tmp_path / "journal.db").rename(tmp_path / "aside")
    flush(journal)
    (tmp_path / "aside").rename(tmp_path / "journal.db")
    flush(journal)
    assert len(journal.read("s")) == 1
    journal.close()
    with pytest.raises(StorageError, match="was closed"):
        journal.read("s")


def test_claims_of_a_forgotten_journal_do_not_disturb_those_of_another(
    tmp_path: Path,
) -> None:
    """Each gives back its own."""
    path = tmp_path / "journal.db"
    first: Any = open_journal(path)
    second = Claims(tmp_path / "journal.db-locks")
    first.append("s", SAID)
    assert second.take("other")
    del first
    gc.collect()
    assert _is_free(path, "s")
    assert not _is_free(path, "other")
    second.close()
    assert _is_free(path, "other")


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    """All rows of a commit are one text for SQLite, in which none changes."""
    texts = [
        "a\0b",
        '"quoted" \\ \\u0000',
        "\u2028 é 😀",
        "\ud800",
        "",
        "x" * 1_000_000,
    ]
    journal = open_journal(tmp_path / "journal.db")
    for session in ("é 😀", 'with "quotes" and \\'):
        for text in texts:
            journal.append(
                session, MessageSent(sender="user", receiver="model", content=text)
            )
    journal.close()
    journal = open_journal(tmp_path / "journal.db")
    for session in ("é 😀", 'with "quotes" and \\'):
        found = [entry.event for entry in journal.read(session)]
        assert [
            each.content for each in found if isinstance(each, MessageSent)
        ] == texts
    journal.close()


def test_R1_a_session_that_outlives_its_interpreter_says_nothing(
    tmp_path: Path,
) -> None:
    """A hook of the program holds its module, and so the session, to the end."""
    assert (
        _python(
            """
        import sys
        import time
        from neuraxis import Session
        from neuraxis.settings import Settings
        from neuraxis.testing import ScriptedModel

        session = Session(
            ScriptedModel(["Yes."]),
            journal=sys.argv[1] + "/runs.db",
            workspace=sys.argv[1],
            settings=Settings(),
        )
        print(session.run_sync("Open?").text)
        clock = time.time
        time.time = lambda: clock()
        """,
            tmp_path,
        )
        == "Yes."
    )
