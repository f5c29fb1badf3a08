"""One conformance suite for every journal; the SQLite file's faults beside it."""

import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from neuraxis import Session
from neuraxis.errors import StorageError
from neuraxis.events import (
    CallStarted,
    Event,
    MessageSent,
    PlanChecked,
    SessionFinished,
)
from neuraxis.journal import Journal, open_journal
from neuraxis.journal.session_lock import Claims
from neuraxis.journal.sqlite import SqliteJournal
from neuraxis.models.scripted import ScriptedModel

SAID = MessageSent(
    sender="user", receiver="model", content="Write \ud800 a file\nplease"
)
STARTED = CallStarted(
    id="a1", plugin="files", command="write", tool="FILEWRITER", arguments={"x": "ü"}
)
TOLD = MessageSent(sender="system", receiver="model", content="The results are…")
ANSWERED = MessageSent(sender="model", receiver="user", content="Good morning.")
CHECKED = PlanChecked(steps=({"tool": "files.a"}, {"tool": "b"}), by_program=True)


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Journal]:
    where = None if request.param == "memory" else tmp_path / "deep" / "journal.db"
    opened = open_journal(where)
    yield opened
    opened.close()


def test_events_come_back_in_order(journal: Journal) -> None:
    """What was appended is read, numbered from 1, with its time."""
    before = time.time()
    journal.append("s", SAID)
    journal.append("s", STARTED, durable=True)
    entries = journal.read("s")
    assert [(entry.seq, entry.event) for entry in entries] == [(1, SAID), (2, STARTED)]
    assert all(before - 1 < entry.at < time.time() + 1 for entry in entries)
    assert list(journal.read("other")) == []


def test_sessions_are_listed_last_used_first(journal: Journal) -> None:
    """Each with its title, on one line."""
    journal.append("one", SAID)
    time.sleep(0.01)
    journal.append("two", STARTED)
    listed = journal.sessions()
    assert [info.session for info in listed] == ["two", "one"]
    assert listed[1].title.startswith("Write ")
    assert "\n" not in listed[1].title
    assert listed[1].events == 1


def test_a_session_without_a_request_has_the_title_of_its_calls(
    journal: Journal,
) -> None:
    """`neuraxis call` and `plan run` begin such sessions."""
    journal.append("s", CHECKED)
    assert [info.title for info in journal.sessions()] == ["files.a, b"]
    journal.append("s", SAID)
    assert journal.sessions()[0].title.startswith("Write ")


@pytest.mark.parametrize(
    ("events", "title", "state"),
    [
        ((TOLD,), "", "unfinished"),
        ((TOLD, CHECKED), "files.a, b", "unfinished"),
        ((TOLD, CHECKED, SAID), "Write ", "unfinished"),
        ((ANSWERED, SAID, replace(SAID, content="again")), "Write ", "unfinished"),
        ((SAID, TOLD, SessionFinished(outcome="waiting")), "Write ", "waiting"),
        ((SessionFinished(outcome="failed"), STARTED), "", "failed"),
        ((SessionFinished(outcome="failed"), TOLD), "", "unfinished"),
        ((STARTED,), "", ""),
    ],
)
def test_a_title_is_the_users_first_message(
    journal: Journal, events: Sequence[Event], title: str, state: str
) -> None:
    """Every journal gives the same events the same title and state."""
    for event in events:
        journal.append("s", event)
    (info,) = journal.sessions()
    assert info.title[: len(title) or None] == title
    assert info.state == state


def test_a_file_is_opened_again_and_numbering_goes_on(tmp_path: Path) -> None:
    """A second process' journal continues where the first one stopped."""
    path = tmp_path / "journal.db"
    first = open_journal(path)
    first.append("s", SAID)
    first.close()
    second = open_journal(path)
    second.append("s", STARTED)
    assert [entry.seq for entry in second.read("s")] == [1, 2]
    second.close()


def test_two_open_journals_share_a_file(tmp_path: Path) -> None:
    """Two sessions of two processes write at the same time."""
    path = tmp_path / "journal.db"
    one, two = open_journal(path), open_journal(path)
    for _ in range(20):
        one.append("one", SAID, durable=True)
        two.append("two", SAID, durable=True)
    assert len(one.read("two")) == len(two.read("one")) == 20
    one.close()
    two.close()


def test_a_durable_event_survives_kill_9(tmp_path: Path) -> None:
    """The process dies right after a durable append: the file opens and has it."""
    path = tmp_path / "journal.db"
    code = textwrap.dedent(f"""
        import os, signal
        from neuraxis.events import MessageSent, CallStarted
        from neuraxis.journal import open_journal
        journal = open_journal({str(path)!r})
        said = MessageSent(sender="user", receiver="model", content="x")
        journal.append("s", said)
        journal.append("s", said, durable=True)
        journal.append("s", said)
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    died = subprocess.run([sys.executable, "-c", code], timeout=30, check=False)
    assert died.returncode == -9
    journal = open_journal(path)
    assert len(journal.read("s")) == 2
    journal.close()


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    """Neither a text nor another program's database is written to."""
    text = tmp_path / "notes.txt"
    text.write_text("shopping list " * 100, encoding="utf-8")
    with pytest.raises(StorageError, match="cannot be opened"):
        open_journal(text)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(StorageError, match="not a journal"):
        open_journal(other)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    """An older program does not write into a newer file."""
    path = tmp_path / "journal.db"
    open_journal(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version=99")
    database.close()
    with pytest.raises(StorageError, match="later version"):
        open_journal(path)


def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    """The page limit stands for a full disk: SQLite answers both with SQLITE_FULL."""
    journal = open_journal(tmp_path / "journal.db")
    database = journal._writer.database  # type: ignore[attr-defined]
    database.open().execute("PRAGMA max_page_count=8")
    big = SessionFinished(outcome="answered", text="x" * 200_000)
    with pytest.raises(StorageError, match="full"):
        journal.append("s", big, durable=True)
    journal._writer._rows.clear()  # type: ignore[attr-defined]
    journal.close()


def test_a_new_file_may_be_begun_by_several_at_once(tmp_path: Path) -> None:
    """The first two runs of a person may be started in the same moment."""
    for turn in range(12):
        path = tmp_path / f"{turn}.db"
        start = threading.Barrier(8)

        def begin(name: str, path: Path = path, start: Any = start) -> None:
            start.wait()
            journal = open_journal(path)
            journal.append(name, SAID, durable=True)
            journal.close()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(begin, "abcdefgh"))
        journal = open_journal(path)
        assert sorted(info.session for info in journal.sessions()) == list("abcdefgh")
        journal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
def test_what_was_said_is_for_its_owner_only(tmp_path: Path) -> None:
    """The file and what SQLite puts beside it; the mode of an older one is kept."""
    journal = open_journal(tmp_path / "journal.db")
    journal.append("s", SAID, durable=True)
    modes = {
        file.name: file.stat().st_mode & 0o777
        for file in tmp_path.iterdir()
        if file.is_file()
    }
    assert set(modes) >= {"journal.db", "journal.db-wal"}
    assert set(modes.values()) == {0o600}
    journal.close()
    (tmp_path / "journal.db").chmod(0o640)
    open_journal(tmp_path / "journal.db").close()
    assert (tmp_path / "journal.db").stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(sys.platform == "win32", reason="locks are those of POSIX")
def test_one_process_at_a_time_goes_on_with_a_session(tmp_path: Path) -> None:
    """Two would number their calls alike; the lock of a killed one is gone."""
    path = tmp_path / "journal.db"
    code = f"""
        import sys
        from pathlib import Path
        from neuraxis.events import MessageSent
        from neuraxis.journal import open_journal
        journal = open_journal(Path({str(path)!r}))
        said = MessageSent(sender="user", receiver="model", content="x")
        journal.append("s", said, durable=True)
        print("written", flush=True)
        sys.stdin.read()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    other.stdout.readline()
    journal = open_journal(path)
    assert len(journal.read("s")) == 1
    with pytest.raises(StorageError, match="open already"):
        journal.append("s", SAID)
    journal.append("mine", SAID)
    other.kill()
    other.communicate()
    journal.append("s", SAID, durable=True)
    assert len(journal.read("s")) == 2
    journal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="locks are those of POSIX")
def test_closing_one_journal_keeps_the_claims_of_another(tmp_path: Path) -> None:
    """A process that closes a file loses all its locks on it, however it opened it."""
    path = tmp_path / "journal.db"
    code = f"""
        import sys
        from pathlib import Path
        from neuraxis.journal.session_lock import Claims
        claims = Claims(Path({str(path)!r}))
        print(*[claims.take(name) for name in ("kept", "left", "both")])
    """

    def others() -> str:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    first, second = Claims(path), Claims(tmp_path / "." / "journal.db")
    assert first.take("kept")
    assert first.take("both")
    assert second.take("left")
    assert not second.take("both")
    assert others() == "False False False"
    second.close()
    assert others() == "False True False"
    second.close()
    first.close()
    assert others() == "True True True"


def test_a_session_that_went_on_elsewhere_is_opened_again(tmp_path: Path) -> None:
    """What was read is no longer all of it: the next ids would be taken."""
    path = tmp_path / "journal.db"
    first, second = open_journal(path), open_journal(path)
    first.append("s", SAID, durable=True)
    assert len(second.read("s")) == 1
    first.append("s", SAID, durable=True)
    with pytest.raises(StorageError, match="open already"):
        second.append("s", SAID)
    first.release("s")
    with pytest.raises(StorageError, match="went on elsewhere"):
        second.append("s", SAID)
    assert len(second.read("s")) == 2
    second.append("s", SAID, durable=True)
    first.close()
    second.close()


@pytest.mark.parametrize("place", [b"events", b"CREATE TABLE", b"message", b"sender"])
def test_a_damaged_file_is_a_storage_error(tmp_path: Path, place: bytes) -> None:
    """Also where the damage is no text: SQLite quotes it in what it says."""
    path = tmp_path / "journal.db"
    journal = open_journal(path)
    journal.append("s", SAID, durable=True)
    journal.close()
    path.write_bytes(path.read_bytes().replace(place, place[:-2] + b"\xf5\x80"))
    with pytest.raises(StorageError, match=r"cannot be (read|opened)|damaged"):
        open_journal(path).read("s")


def test_a_deleted_session_is_gone_and_may_begin_again(journal: Journal) -> None:
    """The others stay; its numbers begin at 1 again."""
    for name in ("s", "t"):
        journal.claim(name)
        journal.append(name, SAID)
    journal.delete("s")
    assert [info.session for info in journal.sessions()] == ["t"]
    assert list(journal.read("s")) == []
    journal.append("s", STARTED, durable=True)
    assert [(entry.seq, entry.event) for entry in journal.read("s")] == [(1, STARTED)]


def test_a_new_session_is_numbered_without_a_look_into_the_file(tmp_path: Path) -> None:
    """An id that does exist is not written over: its next write is an error."""
    journal = SqliteJournal(tmp_path / "journal.db")
    asked: list[str] = []
    journal._open().set_trace_callback(asked.append)
    journal.claim("s", is_new=True)
    journal.append("s", STARTED, durable=True)
    assert asked == []
    journal.release("s")
    journal.claim("s", is_new=True)
    with pytest.raises(StorageError, match="went on elsewhere"):
        journal.append("s", SAID, durable=True)
    assert [(entry.seq, entry.event) for entry in journal.read("s")] == [(1, STARTED)]
    journal.close()


def test_a_session_with_a_random_id_is_new(tmp_path: Path) -> None:
    """Its run asks the file nothing on the event loop; another thread writes it."""
    journal = SqliteJournal(tmp_path / "journal.db")
    asked: list[str] = []
    journal._open().set_trace_callback(asked.append)
    with Session(ScriptedModel(["Yes."]), journal=journal) as session:
        assert session.run_sync("Is it open?").text == "Yes."
        assert asked == []
    journal.close()
