"""What a script's changes need so that they come back, and how they are undone."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from neuraxis.sandbox.files.call_files import CallFiles
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import VersionStore


class _World(Struct):
    """A folder of the user's, and what they were asked and the model was told."""

    way: CallFiles
    folder: Path
    asked: list[dict[str, list[str]]]
    warned: list[str]


def _world(tmp_path: Path, no: str = "") -> _World:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "d").mkdir()
    for name in ("a", "d/x", "d/y"):
        (folder / name).write_text(name)
    asked, warned = list[dict[str, list[str]]](), list[str]()

    def ask(held: Mapping[str, Sequence[str]], lost: Sequence[str]) -> str:
        asked.append({done: list(paths) for done, paths in held.items()})
        return no

    way = CallFiles(
        history=FileHistory(folder, VersionStore(tmp_path / "v", "s")),
        call_id="c1",
        warn=warned.append,
        ask=ask,
    )
    return _World(way=way, folder=folder, asked=asked, warned=warned)


MINE = hashlib.sha256(b"a").hexdigest()
"""Of what stands in the user's file `a`."""
NEW = hashlib.sha256(b"new").hexdigest()
D_IS_A_FILE = [("d", NEW), ("d/x", ""), ("d/y", "")]
A_IS_A_FOLDER = [("a", ""), ("a/n", NEW)]


def test_a_folder_becomes_a_file_with_one_question(tmp_path: Path) -> None:
    """About the files in it; then `undo` brings them back."""
    world = _world(tmp_path)
    assert {*world.way.bring_back(D_IS_A_FILE, world.folder)} == {"d", "d/x", "d/y"}
    assert world.asked == [{"deleted": ["d/x", "d/y"]}]
    shutil.rmtree(world.folder / "d")
    (world.folder / "d").write_text("new")
    undone = world.way.history.undo()
    assert (undone.removed, undone.restored) == (("d",), ("d/x", "d/y"))
    assert (world.folder / "d" / "y").read_text() == "d/y"


def test_a_file_becomes_a_folder_with_one_question(tmp_path: Path) -> None:
    """And `undo` makes it the file again."""
    world = _world(tmp_path)
    assert {*world.way.bring_back(A_IS_A_FOLDER, world.folder)} == {"a", "a/n"}
    assert world.asked == [{"deleted": ["a"]}]
    (world.folder / "a").unlink()
    (world.folder / "a").mkdir()
    (world.folder / "a" / "n").write_text("new")
    undone = world.way.history.undo()
    assert (undone.removed, undone.restored) == (("a/n", "a"), ("a",))
    assert (world.folder / "a").read_text() == "a"


def test_after_a_no_nothing_takes_the_place(tmp_path: Path) -> None:
    """The model is told of what was refused, and of what had no room."""
    world = _world(tmp_path, no="no")
    assert world.way.bring_back([*A_IS_A_FOLDER, *D_IS_A_FILE], world.folder) == {}
    refused, lost = world.warned
    assert all(f'"{name}"' in refused for name in ("a", "d/x", "d/y"))
    assert '"a/n": "a" stays' in lost
    assert '"d": "d/x" stays' in lost


def test_a_folder_with_a_file_of_somebody_else_stays_whole(tmp_path: Path) -> None:
    """It is not emptied for a file that cannot come; nobody is asked in vain."""
    world = _world(tmp_path)
    (world.folder / "d" / "theirs").write_text("x")
    assert {*world.way.bring_back([*D_IS_A_FILE, ("n", NEW)], world.folder)} == {"n"}
    assert not world.asked
    assert '"d": the folder there holds "d/theirs"' in world.warned[0]


def test_N1_a_script_does_not_change_a_write_protected_file(tmp_path: Path) -> None:
    """As the file tool does not; nobody is asked in vain."""
    world = _world(tmp_path)
    (world.folder / "a").chmod(0o444)
    assert {*world.way.bring_back([("a", NEW), ("n", NEW)], world.folder)} == {"n"}
    assert not world.asked
    assert '"a" is write-protected' in world.warned[0]


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        ([("a", ""), ("b", MINE)], {"moved": ["a"]}),
        ([("a", NEW), ("b", MINE)], {"changed": ["a"]}),
    ],
)
def test_what_a_script_moves_stays_the_users(
    changed: list[tuple[str, str]], asked: dict[str, list[str]], tmp_path: Path
) -> None:
    """The yes was for the new name, not for writing over the only copy."""
    world = _world(tmp_path)
    shutil.copy(world.folder / "a", world.folder / "b.part")
    assert {*world.way.bring_back(changed, world.folder)} == {"a", "b"}
    (world.folder / "b.part").rename(world.folder / "b")
    assert world.asked == [asked]
    with pytest.raises(FileRefused, match="this would delete the user's file"):
        world.way.delete("b")


def test_after_a_no_a_copy_of_a_script_is_the_runtimes(tmp_path: Path) -> None:
    """The user's file is where it was."""
    world = _world(tmp_path, no="the user said no")
    assert {*world.way.bring_back([("a", ""), ("b", MINE)], world.folder)} == {"b"}
    shutil.copy(world.folder / "a", world.folder / "b")
    world.way.delete("b")


def test_names_that_cannot_be_journaled_stay(tmp_path: Path) -> None:
    """Not UTF-8: one warning for all, which can itself be written."""
    world = _world(tmp_path)
    changed = [(f"n{n}\udcff", NEW) for n in range(30)]
    assert {*world.way.bring_back([*changed, ("n", NEW)], world.folder)} == {"n"}
    assert len(world.warned) == 1
    assert "20 more" in world.warned[0]
    assert world.warned[0].encode()


def test_a_link_of_the_user_stays_without_a_question(tmp_path: Path) -> None:
    """A yes would change nothing: no version of it can be stored."""
    world = _world(tmp_path)
    (world.folder / "link").symlink_to("a")
    assert world.way.bring_back([("link", "")], world.folder) == {}
    assert not world.asked
    assert "'link' is no regular file" in world.warned[0]


def test_undo_leaves_a_file_that_took_the_place_of_a_new_folder(tmp_path: Path) -> None:
    """It is the person's; only folders go as folders."""
    world = _world(tmp_path)
    world.way.make_folder("made")
    (world.folder / "made").rmdir()
    (world.folder / "made").write_text("mine")
    assert world.way.history.undo().removed == ()
    assert (world.folder / "made").read_text() == "mine"


def test_attack16_a2_what_was_saved_before_a_script_changed_it_comes_back(
    tmp_path: Path,
) -> None:
    """Of a file that the run had changed, and of one that the script deletes."""
    world = _world(tmp_path)
    a, n = world.folder / "a", world.folder / "n"
    world.way.bring_back([("a", NEW), ("n", NEW)], world.folder)
    for file in (a, n):
        file.write_text("new")
        file.write_text(f"mine {file.name}")
    later = hashlib.sha256(b"later").hexdigest()
    assert {*world.way.bring_back([("a", later), ("n", "")], world.folder)} == {
        "a",
        "n",
    }
    assert world.asked[1:] == [{"deleted": ["n"], "changed": ["a"]}]
    a.write_text("later")
    n.unlink()
    undone = world.way.history.undo()
    assert {*undone.restored} == {*undone.changed_during} == {"a", "n"}
    assert [file.read_text() for file in (a, n)] == ["mine a", "mine n"]
