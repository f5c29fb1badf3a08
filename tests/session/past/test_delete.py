"""One session is deleted: nothing of it is left on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neuraxis import (
    ConfigError,
    NoSuchSession,
    Options,
    Session,
    SessionBusy,
    StorageError,
    command,
    delete_session,
    list_sessions,
)
from neuraxis.journal import SessionInfo, open_journal
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

SECRET = "Ada lives in Lovelace Lane 7"


@command(effects="read")
def letter() -> str:
    """Return a long letter."""
    return f"{SECRET}. " * 2_000


def use(folder: Path, name: str, text: str = SECRET, **given: Any) -> None:
    """A session with a stored object and an old version of a file."""
    replies = [
        '[{"tool": "letter"}]',
        '[{"tool": "FILEWRITER", "file_path": "n.txt", "contents": "other"}]',
        text,
    ]
    options = Options(asset_folder=folder / "assets")
    (folder / "w").mkdir(exist_ok=True)
    with Session(
        ScriptedModel(replies),
        plugins=[letter, "neuraxis:files"],
        id=name,
        journal=folder / "j.db",
        workspace=folder / "w",
        options=options,
        settings=Settings(),
        approve=lambda asked: True,
        **given,
    ) as session:
        (folder / "w" / "n.txt").write_text(SECRET, encoding="utf-8")
        assert session.run_sync(text).outcome == "answered"
    (folder / "w" / "n.txt").unlink()


def holding(folder: Path, text: bytes = SECRET.encode()) -> list[str]:
    """The files that hold the text."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path.name for path in found if text in path.read_bytes())


@pytest.mark.parametrize("name", ["ada", "users/ada"])
def test_nothing_of_a_deleted_session_is_on_disk(tmp_path: Path, name: str) -> None:
    """Neither in the journal, also while others have it open, nor beside it."""
    use(tmp_path, name)
    assert len(holding(tmp_path)) >= 3
    other = open_journal(tmp_path / "j.db")
    other.sessions()
    delete_session(tmp_path / "j.db", name, asset_folder=tmp_path / "assets")
    assert holding(tmp_path) == []
    assert list(other.sessions()) == []
    other.close()
    assert list((tmp_path / "versions").glob("*/")) == []
    assert list((tmp_path / "assets").iterdir()) == []


def test_other_sessions_and_other_files_stay(tmp_path: Path) -> None:
    """What lies in the folders is deleted only if the session stored it."""
    use(tmp_path, "ada")
    use(tmp_path, "bob", "Bob")
    mine = tmp_path / "assets" / "ada" / "mine.csv"
    mine.write_text("1", encoding="utf-8")
    delete_session(tmp_path / "j.db", "ada", asset_folder=tmp_path / "assets")
    assert [info.session for info in list_sessions(tmp_path / "j.db")] == ["bob"]
    assert list(mine.parent.iterdir()) == [mine]
    assert list((tmp_path / "assets" / "bob").iterdir())
    assert list((tmp_path / "versions" / "bob").iterdir())


def test_a_session_of_no_such_id_is_told_with_the_nearest(tmp_path: Path) -> None:
    """It is an error that a web service can tell from others."""
    use(tmp_path, "ada-1")
    with pytest.raises(
        NoSuchSession, match=r"'ada1' in the journal\. Did you mean ada-1"
    ):
        delete_session(tmp_path / "j.db", "ada1")
    with pytest.raises(NoSuchSession):
        Session.open("ada1", journal=tmp_path / "j.db", settings=Settings())
    delete_session(tmp_path / "j.db", "ada-1")
    with pytest.raises(NoSuchSession):
        delete_session(tmp_path / "j.db", "ada-1")


def test_an_open_session_is_not_deleted(tmp_path: Path) -> None:
    """Neither here nor in another process; nothing of it goes."""
    use(tmp_path, "ada")
    given: dict[str, Any] = {"settings": Settings(), "workspace": tmp_path / "w"}
    program = (
        "import sys; from neuraxis import delete_session as d\n"
        "try: d(sys.argv[1], 'ada', asset_folder=sys.argv[2])\n"
        "except Exception as error: print(type(error).__name__)"
    )
    files = tmp_path / "j.db", tmp_path / "assets"
    with Session.open("ada", journal=files[0], **given):
        with pytest.raises(SessionBusy):
            delete_session(files[0], "ada", asset_folder=files[1])
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, files)],
            capture_output=True, text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stdout == "SessionBusy\n"
    assert len(holding(tmp_path)) >= 3


def test_a_journal_that_somebody_reads_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log still holds the text, so that it is no success."""
    import sqlite3

    monkeypatch.setattr("neuraxis.journal.database._BUSY", 0.1)
    use(tmp_path, "ada")
    reader = sqlite3.connect(tmp_path / "j.db")
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM events").fetchone()
    with pytest.raises(StorageError, match=r"ada is deleted, but j\.db-wal"):
        delete_session(tmp_path / "j.db", "ada")
    reader.close()


def test_the_session_may_begin_again(tmp_path: Path) -> None:
    """Its id is free."""
    use(tmp_path, "ada")
    delete_session(tmp_path / "j.db", "ada", asset_folder=tmp_path / "assets")
    use(tmp_path, "ada", "Hello")
    assert [info.title for info in list_sessions(tmp_path / "j.db")] == ["Hello"]


def test_a_session_in_memory_is_deleted() -> None:
    """Any journal can."""
    journal = open_journal("memory")
    with Session(ScriptedModel(["Hi."]), journal=journal, id="s") as session:
        session.run_sync("Hi")
    delete_session(journal, "s")
    assert list(journal.sessions()) == []


def test_a_journal_that_cannot_delete_is_told_before_anything_goes(
    tmp_path: Path,
) -> None:
    """Its objects would be gone, and its events would not."""
    use(tmp_path, "ada")

    class Older:
        """A journal of another program, from before sessions could be deleted."""

        def sessions(self) -> list[Any]:
            return [SessionInfo(session="ada", started=0, ended=0, events=1, title="")]

    with pytest.raises(ConfigError, match="a journal with a method `delete`"):
        delete_session(Older(), "ada", asset_folder=tmp_path / "assets")  # type: ignore[arg-type]
    assert list((tmp_path / "assets" / "ada").iterdir())
