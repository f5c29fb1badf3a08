"""What is replaced or deleted is what was expected; anything else stays."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from neuraxis.sandbox.files import exchange, operations
from neuraxis.sandbox.files.call_files import CallFiles
from neuraxis.sandbox.files.exchange import ChangedMeanwhile
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import VersionStore
from neuraxis.sandbox.files.walk import Folder, parent_folder
from neuraxis.sandbox.files.workspace import Quota


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


OLD = _digest("old")


def _no_links(*_: Any, **__: Any) -> None:
    raise OSError(95, "not supported")


@pytest.fixture(params=["here", "no exchange", "no links"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """This system, one without `renameat2`, and a disk without hard links, too."""
    if request.param != "here":
        monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    if request.param == "no links":
        monkeypatch.setattr(os, "link", _no_links)
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Generator[Folder]:
    """An open folder."""
    (tmp_path / "w").mkdir()
    with parent_folder(tmp_path / "w", ("-",), create=False) as opened:
        yield opened


@pytest.fixture
def atomic(folder: Folder) -> None:
    """A system that exchanges two names at once."""
    (folder.path / "a").touch()
    if not exchange._rename(folder, "a", folder, "b", 1):
        pytest.skip("this system exchanges no names")
    (folder.path / "b").unlink()


def _there(folder: Folder) -> dict[str, str]:
    return {
        path.name: path.read_text() if path.is_file() else "folder"
        for path in folder.path.iterdir()
    }


def _replace(folder: Folder, expected: str | None) -> None:
    (folder.path / ".nx-1").write_text("new")
    exchange.replace(folder, ".nx-1", "f", expected, "f")


def _remove(folder: Folder, expected: str | None) -> None:
    exchange.remove(folder, "f", expected, "f")


def _move(folder: Folder, expected: str | None) -> None:
    if not (folder.path / "new").exists():
        (folder.path / "new").write_text("new")
    exchange.move(folder, "new", folder, "f", expected, "f")


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("expected", [OLD, None])
@pytest.mark.parametrize(
    ("change", "then"),
    [(_replace, {"f": "new"}), (_remove, {}), (_move, {"f": "new"})],
)
def test_what_is_expected_is_replaced_or_deleted(
    change: Callable[..., None],
    then: dict[str, str],
    expected: str | None,
    folder: Folder,
) -> None:
    """Nothing else is left in the folder."""
    (folder.path / "f").write_text("old")
    change(folder, expected)
    assert _there(folder) == then


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("expected", [OLD, ""])
@pytest.mark.parametrize(
    ("change", "done", "kept"),
    [
        (_replace, "written", {}),
        (_remove, "deleted", {}),
        (_move, "replaced", {"new": "new"}),
    ],
)
def test_what_is_not_expected_stays(
    change: Callable[..., None],
    done: str,
    kept: dict[str, str],
    expected: str,
    folder: Folder,
) -> None:
    """Another content, a file where none was, and a folder in the place of a file."""
    (folder.path / "f").write_text("mine")
    told = f"'f' was changed by somebody else meanwhile, so it was not {done}. Read it"
    with pytest.raises(ChangedMeanwhile, match=told):
        change(folder, expected)
    assert _there(folder) == {"f": "mine", **kept}
    (folder.path / "f").unlink()
    (folder.path / "f").mkdir()
    with pytest.raises(ChangedMeanwhile):
        change(folder, expected)
    assert _there(folder) == {"f": "folder", **kept}


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("change", [_replace, _remove, _move])
def test_what_was_deleted_meanwhile_stays_deleted(
    change: Callable[..., None], folder: Folder
) -> None:
    """That, too, is what somebody made of it."""
    with pytest.raises(ChangedMeanwhile):
        change(folder, OLD)
    assert "f" not in _there(folder)


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("change", [_replace, _move])
def test_a_new_name_is_given(change: Callable[..., None], folder: Folder) -> None:
    """Where no file was expected, and none is."""
    change(folder, "")
    assert _there(folder) == {"f": "new"}
    assert (folder.path / "f").stat().st_nlink == 1


def test_a_name_is_never_missing(
    atomic: None, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads meanwhile, or kills the process, meets the old file or the new."""
    seen: list[str] = []
    digest = exchange._digest

    def look(at: Folder, name: str) -> str:
        seen.append((folder.path / "f").read_text())
        return digest(at, name)

    monkeypatch.setattr(exchange, "_digest", look)
    (folder.path / "f").write_text("old")
    _replace(folder, OLD)
    with pytest.raises(ChangedMeanwhile):
        _replace(folder, OLD)
    assert {*seen} == {"old", "new"}


def _after_exchange(
    monkeypatch: pytest.MonkeyPatch, *then: Callable[[], object]
) -> None:
    """Do something after the first exchange of names, after the second, and so on."""
    rename, pending = exchange._rename, [*then]

    def late(*given: Any) -> bool:
        done = rename(*given)
        if pending and given[-1] == 2:
            pending.pop(0)()
        return done

    monkeypatch.setattr(exchange, "_rename", late)


def test_of_two_saves_the_newest_has_the_name_and_the_older_is_kept(
    atomic: None, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody stored the older one: its name is told."""
    file = folder.path / "f"
    file.write_text("mine")
    _after_exchange(monkeypatch, lambda: file.write_text("mine, later"))
    with pytest.raises(ChangedMeanwhile, match=r"it held in between is in '\.nx-1'"):
        _replace(folder, OLD)
    assert _there(folder) == {"f": "mine, later", ".nx-1": "mine"}


def test_of_three_saves_none_but_those_replaced_by_their_owner_is_lost(
    atomic: None, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third one replaced the first by itself."""
    file = folder.path / "f"
    file.write_text("1")
    saves = [lambda: file.write_text("2"), lambda: file.write_text("3")]
    _after_exchange(monkeypatch, *saves)
    with pytest.raises(ChangedMeanwhile):
        _replace(folder, OLD)
    assert _there(folder) == {"f": "3", ".nx-1": "2"}


def test_a_save_without_end_ends(
    atomic: None, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that saves at every moment holds nobody up."""
    file, saves = folder.path / "f", iter(range(10_000))
    file.write_text("mine")
    endless = [lambda: file.write_text(str(next(saves)))] * 1_000
    _after_exchange(monkeypatch, *endless)
    with pytest.raises(ChangedMeanwhile):
        _replace(folder, OLD)
    last = next(saves) - 1
    assert {*_there(folder).values()} == {str(last), str(last - 1)}


def test_a_save_comes_back_where_the_file_was_deleted_next(
    atomic: None, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was deleted was not it."""
    file = folder.path / "f"
    file.write_text("mine")
    _after_exchange(monkeypatch, file.unlink)
    with pytest.raises(ChangedMeanwhile):
        _replace(folder, OLD)
    assert _there(folder) == {"f": "mine"}


@pytest.mark.parametrize(("change", "before"), [(_replace, 1), (_remove, 0)])
def test_an_interruption_loses_nothing(
    change: Callable[..., None],
    before: int,
    atomic: None,
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between taking a file and comparing it."""
    digest, interruptions = exchange._digest, [False] * before + [True]

    def interrupted(at: Folder, name: str) -> str:
        if interruptions and interruptions.pop(0):
            raise KeyboardInterrupt
        return digest(at, name)

    (folder.path / "f").write_text("mine")
    monkeypatch.setattr(exchange, "_digest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(folder, OLD)
    assert _there(folder) == {"f": "mine"}


@pytest.mark.usefixtures("system")
@pytest.mark.parametrize("text", ["old", "mine"])
def test_what_is_saved_while_a_file_is_compared_for_deletion_stays(
    text: str, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two saves, the older one is under a name that is told."""
    file, digest = folder.path / "f", exchange._digest

    def late(at: Folder, name: str) -> str:
        file.write_text("new one")
        return digest(at, name)

    file.write_text(text)
    monkeypatch.setattr(exchange, "_digest", late)
    if text == "old":
        _remove(folder, OLD)
        assert _there(folder) == {"f": "new one"}
        return
    with pytest.raises(ChangedMeanwhile, match=r"in between is in '\.nx-"):
        _remove(folder, OLD)
    assert file.read_text() == "new one"
    assert {*_there(folder).values()} == {"new one", "mine"}


def test_a_source_that_is_saved_during_the_move_stays(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a move takes two steps, and where it is refused after the first."""
    monkeypatch.setattr(exchange, "_renameat2", lambda: None)
    new, link = folder.path / "new", os.link

    def late(*given: Any, **options: Any) -> None:
        link(*given, **options)
        new.write_text("saved again")

    monkeypatch.setattr(os, "link", late)
    _move(folder, "")
    assert _there(folder) == {"f": "new", "new": "saved again"}


def test_a_moved_file_is_moved_as_it_is_by_then(folder: Folder) -> None:
    """Nothing of it is lost, so that it need not be what it was."""
    (folder.path / "f").write_text("old")
    (folder.path / "new").write_text("saved again")
    _move(folder, OLD)
    assert _there(folder) == {"f": "saved again"}


def test_a_move_that_fails_replaces_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that was taken away has its name again."""
    (folder.path / "f").write_text("old")
    with pytest.raises(FileNotFoundError):
        exchange.move(folder, "not there", folder, "f", OLD, "f")
    assert _there(folder) == {"f": "old"}
    (folder.path / "n").write_text("n")
    digest = exchange._digest

    def late(at: Folder, name: str) -> str:
        (folder.path / "f").write_text("made meanwhile")
        return digest(at, name)

    monkeypatch.setattr(exchange, "_digest", late)
    with pytest.raises(ChangedMeanwhile):
        exchange.move(folder, "n", folder, "f", OLD, "f")
    assert _there(folder) == {"f": "made meanwhile", "n": "n"}


def test_a_second_name_of_a_file_is_no_other_file(tmp_path: Path) -> None:
    """Where case does not tell names apart, a name's case can be changed."""
    (tmp_path / "a").write_text("a")
    if not (tmp_path / "A").exists():
        os.link(tmp_path / "a", tmp_path / "A")
    operations.move(tmp_path, "a", "A", _digest("a"))
    assert (tmp_path / "A").read_text() == "a"


def _save(file: Path, how: str) -> None:
    if how == "in place":
        file.write_text("mine", encoding="utf-8")
    else:
        beside = file.with_name("beside")
        beside.write_text("mine", encoding="utf-8")
        beside.replace(file)


@pytest.mark.parametrize("how", ["in place", "by rename"])
@pytest.mark.parametrize("change", ["write", "move over it"])
def test_attack17_r3_a_save_at_any_moment_is_not_lost(
    change: str, how: str, tmp_path: Path
) -> None:
    """It is in its place, or undo brings it back."""
    folder = tmp_path / "w"
    folder.mkdir()
    lost: list[int] = []
    for number in range(40):
        history = FileHistory(folder, VersionStore())
        way = CallFiles(history=history, call_id="c", warn=lambda _: None)
        name, other = f"d{number}", f"e{number}"
        for own in (name, other):
            way.write(own, b"own", Quota())
        history.begin()
        file = folder / name
        person = threading.Timer(random.uniform(0, 0.003), _save, (file, how))
        person.start()
        with suppress(FileRefused):
            if change == "write":
                way.write(name, b"new", Quota())
            else:
                way.move(other, name)
        person.join()
        after = {path.read_text() for path in folder.iterdir()}
        if "mine" not in after:
            history.undo()
        if "mine" not in after | {path.read_text() for path in folder.iterdir()}:
            lost.append(number)
        for path in folder.iterdir():
            path.unlink()
    assert lost == []
