"""What may happen to a file, what is stored of it, and how a run is undone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from neuraxis.events import Event, FileChanged, from_json, to_json
from neuraxis.sandbox.files import operations
from neuraxis.sandbox.files.call_files import CallFiles
from neuraxis.sandbox.files.history import FileHistory
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.versions import VersionStore
from neuraxis.sandbox.files.workspace import Quota

Q = Quota()


def _way(
    tmp_path: Path, *words: str, budget: int = 1 << 30, **kept: Any
) -> tuple[CallFiles, Path, list[Event], list[str]]:
    """A call's way to the files of a folder, its events and its warnings."""
    folder = tmp_path / "w"
    folder.mkdir(exist_ok=True)
    events, warned = list[Event](), list[str]()
    history = FileHistory(
        folder,
        VersionStore(tmp_path / "state/versions", "s1", budget),
        events.append,
    )
    way = CallFiles(
        history=history, call_id="a1", warn=warned.append, words=words, **kept
    )
    return way, folder, events, warned


@pytest.mark.parametrize(
    "change",
    [
        lambda way: way.write("n.txt", b"x", Q),
        lambda way: way.move("n.txt", "m.txt"),
        lambda way: way.delete("n.txt"),
        lambda way: way.write("n.txt", b"old and x", Q, use="change"),
    ],
)
def test_N1_a_file_of_the_user_is_not_lost(
    change: Callable[[CallFiles], Any], tmp_path: Path
) -> None:
    """Replaced, moved, deleted, or changed where no request names it: refused."""
    way, folder, events, _ = _way(tmp_path, "do something with m.txt")
    (folder / "n.txt").write_bytes(b"old")
    with pytest.raises(
        FileRefused, match=r"(other name|Leave it as it is).* --yes-to PLUGIN"
    ):
        change(way)
    assert (folder / "n.txt").read_bytes() == b"old"
    assert [] == events == sorted(folder.glob("m*"))
    way.history.allow("a1", "n.txt")
    change(way)
    assert events


@pytest.mark.parametrize(
    ("content", "instead"),
    [
        (b"old", "Write to another name, append to it, or change a passage of it; or "),
        (b"\x89PNG\r\n\x1a\n\0\0", "Write to another name; or tell"),
    ],
)
def test_what_may_be_done_instead_fits_the_file(
    content: bytes, instead: str, tmp_path: Path
) -> None:
    """Nothing is appended to a picture."""
    way, folder, _, _ = _way(tmp_path)
    (folder / "n").write_bytes(content)
    with pytest.raises(FileRefused, match=instead):
        way.write("n", b"new", Q)


def test_N1_an_approval_is_for_the_file_as_it_was(tmp_path: Path) -> None:
    """Who changes it in between did not approve that."""
    way, folder, _, _ = _way(tmp_path)
    (folder / "n.txt").write_bytes(b"old")
    way.history.allow("a1", "n.txt")
    (folder / "n.txt").write_bytes(b"newer")
    with pytest.raises(FileRefused):
        way.delete("n.txt")


def test_N1_C14_own_files_are_written_again_until_somebody_changes_them(
    tmp_path: Path,
) -> None:
    """Known by digest, also in a later session over the same state."""
    way, folder, _, _ = _way(tmp_path)
    way.write("n.txt", b"one", Q)
    way.write("n.txt", b"two", Q)
    later = _way(tmp_path)[0]
    later.write("n.txt", b"three", Q)
    (folder / "n.txt").write_bytes(b"mine")
    for each in (way, later, _way(tmp_path)[0]):
        with pytest.raises(FileRefused, match="changed since Neuraxis wrote it"):
            each.write("n.txt", b"four", Q)


def test_N1_a_changed_passage_does_not_make_the_file_the_runtimes(
    tmp_path: Path,
) -> None:
    """Appending to it is free, replacing it afterwards is not."""
    way, folder, _, _ = _way(tmp_path, "append x to n.txt")
    (folder / "n.txt").write_bytes(b"old")
    way.write("n.txt", b"old x", Q, use="change", kind="append")
    with pytest.raises(FileRefused):
        way.write("n.txt", b"x", Q)


def test_N1_a_file_that_an_append_makes_is_the_runtimes(tmp_path: Path) -> None:
    """Nothing of it is the user's until they change it."""
    way, folder, _, _ = _way(tmp_path)
    way.write("log.md", b"x", Q, use="change", kind="append")
    way.write("log.md", b"y", Q)
    (folder / "log.md").write_bytes(b"mine")
    with pytest.raises(FileRefused, match="changed since Neuraxis wrote it"):
        way.delete("log.md")


def test_N1_the_old_version_is_told_and_stored_for_its_owner_only(
    tmp_path: Path,
) -> None:
    """0600 in 0700 folders; the answer says so in a line."""
    way, folder, _, warned = _way(tmp_path, free=True)
    (folder / "n.txt").write_bytes(b"old")
    way.write("n.txt", b"new", Q)
    assert warned == [
        'The old version of "n.txt" is stored; `neuraxis undo` brings it back.'
    ]
    state = tmp_path / "state/versions"
    stored = [path for path in state.rglob("*") if path.is_file()]
    assert b"old" in [path.read_bytes() for path in stored]
    if os.name == "posix":
        assert {path.stat().st_mode & 0o777 for path in stored} == {0o600}
        folders = {state, *(path.parent for path in stored)}
        assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}


def test_what_is_told_of_old_versions(tmp_path: Path) -> None:
    """Moved, deleted, or a changed passage of the user's; once, and what is stored."""
    way, folder, _, warned = _way(tmp_path, free=True)
    for name in ("a", "b", "c"):
        (folder / name).write_bytes(b"old")
    way.move("a", "m")
    way.write("b", b"old x", Q, use="change", kind="append")
    way.write("b", b"old x y", Q, use="change", kind="append")
    way.bring_back([("c", "0" * 64)], folder)
    way.write("new", b"x", Q)
    way.write("new", b"x y", Q)
    way.delete("new")
    assert [text.split('"')[1] for text in warned] == ["a", "b", "c"]
    way.write("new", b"x", Q)
    way.history.begin()
    way.write("new", b"x y", Q, use="change", kind="append")
    assert len(warned) == 3  # a changed passage of what the runtime wrote
    way.history.begin()
    way.move("new", "newer")
    assert warned[3:] == [warned[0].replace('"a"', '"new"')]


def test_N1_undo_brings_back_bytes_and_permissions(tmp_path: Path) -> None:
    """Replaced, moved over another, deleted and made; folders that were made go."""
    way, folder, _, _ = _way(tmp_path, free=True)
    for name in ("a", "b", "c"):
        (folder / name).write_bytes(name.encode() * 3)
    (folder / "a").chmod(0o600)
    way.history.begin()
    way.write("a", b"new", Q)
    way.move("a", "b")
    way.delete("c")
    way.write("x/y/z", b"", Q)
    way.make_folder("p/q")
    undone = way.history.undo()
    assert set(undone.restored) == {"a", "b", "c"}
    assert set(undone.removed) == {"x/y/z", "x/y", "x", "p/q", "p"}
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"a": b"aaa", "b": b"bbb", "c": b"ccc"}
    assert os.name != "posix" or (folder / "a").stat().st_mode & 0o777 == 0o600
    assert way.history.undo() == way.history.undo(), "there is nothing more"


def test_N1_undo_goes_to_the_last_run_that_changed_something(tmp_path: Path) -> None:
    """A run that wrote the same bytes again is none; nothing is undone twice."""
    way, folder, events, _ = _way(tmp_path)
    for content in (b"one", b"two", b"two"):
        way.history.begin()
        way.write("n", content, Q)
    assert (way.history.undo().restored, (folder / "n").read_bytes()) == (
        ("n",),
        b"one",
    )
    later = _way(tmp_path)[0]
    later.history.replay([from_json(to_json(event)) for event in events])
    assert later.history.undo().removed == ("n",)
    assert later.history.undo().run == 0


def test_N1_undo_asks_where_somebody_changed_it_since(tmp_path: Path) -> None:
    """Left without an answer, restored with one; their version is stored too."""
    way, folder, _, _ = _way(tmp_path, free=True)
    (folder / "n").write_bytes(b"old")
    way.write("n", b"new", Q)
    (folder / "n").write_bytes(b"mine")
    assert way.history.undo().changed_since == ("n",)
    assert (folder / "n").read_bytes() == b"mine"
    asked: list[str] = []
    assert way.history.undo(lambda path: not asked.append(path)).restored == ("n",)  # type: ignore[func-returns-value]
    assert (asked, (folder / "n").read_bytes()) == (["n"], b"old")
    stored = [path.read_bytes() for path in (tmp_path / "state/versions/s1").iterdir()]
    assert b"mine" in stored


def test_N1_undo_after_the_process_ended(tmp_path: Path) -> None:
    """The journal's events and the stored versions are all it needs."""
    way, folder, events, _ = _way(tmp_path, free=True)
    (folder / "n").write_bytes(b"old")
    way.write("n", b"new", Q)
    later, _, more, _ = _way(tmp_path)
    later.history.replay([from_json(to_json(event)) for event in events])
    assert later.history.undo().restored == ("n",)
    third = _way(tmp_path)[0]
    third.history.replay([*events, *more])
    assert not third.history.undo().restored


def test_N1_stored_versions_have_a_budget(tmp_path: Path) -> None:
    """The oldest go first; what could never be stored is not changed at all."""
    way, folder, _, _ = _way(tmp_path, free=True, budget=10)
    for name, size in (("a", 6), ("b", 6), ("c", 11)):
        (folder / name).write_bytes(name.encode() * size)
    way.write("a", b"", Q)
    way.write("b", b"", Q)
    with pytest.raises(FileRefused, match=r"files\.versions_bytes"):
        way.write("c", b"", Q)
    assert (folder / "c").read_bytes() == b"c" * 11
    undone = way.history.undo()
    assert (undone.restored, undone.lost) == (("b",), ("a",))


def test_an_old_journal_and_a_bare_event_are_read() -> None:
    """Each field that may be missing has a default."""
    bare = from_json({"type": "file_changed", "v": 1, "call": "a1", "path": "n"})
    assert bare == FileChanged(call="a1", path="n")


def test_many_changes_of_one_run_do_not_push_out_the_users_version(
    tmp_path: Path,
) -> None:
    """What the run itself made is not stored again: undo needs what was before."""
    way, folder, _, _ = _way(tmp_path, "in n.txt", budget=3_000)
    (folder / "n.txt").write_bytes(b"mine")
    for number in range(20):
        way.write("n.txt", bytes(1_000) + bytes([number]), Q, use="change")
    assert len(list((tmp_path / "state/versions/s1").iterdir())) == 1
    assert way.history.undo().restored == ("n.txt",)
    assert (folder / "n.txt").read_bytes() == b"mine"
    # what somebody changed meanwhile is stored, too
    way.history.begin()
    way.write("n.txt", b"one", Q, use="change")
    (folder / "n.txt").write_bytes(b"theirs")
    way.write("n.txt", b"two", Q, use="change")
    assert len(list((tmp_path / "state/versions/s1").iterdir())) == 3


def test_a_file_more_reads_and_writes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the index nor the stored versions are gone through for each file."""
    way, folder, _, _ = _way(tmp_path, free=True)
    counted, glob = list[int](), Path.glob
    monkeypatch.setattr(
        Path, "glob", lambda *a, **k: counted.append(1) or glob(*a, **k)
    )
    for number in range(30):
        (folder / f"{number}.txt").write_text(f"old {number}")
    names = [f"{number}.{kind}" for number in range(30) for kind in ("txt", "new")]
    changed = [(name, hashlib.sha256(b"new").hexdigest()) for name in names]
    way.bring_back(changed, tmp_path)
    index = next((tmp_path / "state/versions").glob("written-*.json"))
    assert len(index.read_text("utf-8").split("\n")) == 31
    for name in names:
        (folder / name).write_bytes(b"new")
    monkeypatch.setattr("neuraxis.sandbox.files.workspace.usage", None)
    undone = way.history.undo()
    assert len(undone.restored) == len(undone.removed) == 30
    assert len(counted) <= 3


def test_the_index_is_written_anew_once_most_of_it_is_outdated(tmp_path: Path) -> None:
    """It forgets what no longer counts, and a note that was cut off harms no other."""
    store = VersionStore(tmp_path / "versions", "s1")
    for number in range(1_005):
        store.note_written(tmp_path, {"n.txt": f"d{number}", "gone": ""})
    index = next((tmp_path / "versions").glob("written-*.json"))
    with index.open("ab") as stream:
        stream.write(b'\n{"m.txt": "cut o')
    store.note_written(tmp_path, {"o.txt": "d"})
    found = {"n.txt": "d1004", "o.txt": "d"}
    assert found == store.written_in(tmp_path) == store.written_in(tmp_path)
    assert len(index.read_bytes().splitlines()) <= 2


def test_a_file_that_stays_as_it_is_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its digest is known until the system says that the file has changed."""
    way, folder, _, _ = _way(tmp_path)
    way.write("n.txt", b"one", Q)
    read = list[str]()
    monkeypatch.setattr(
        operations,
        "digest_of",
        lambda root, path, own=operations.digest_of: (
            read.append(path) or own(root, path)
        ),
    )
    os.utime(folder / "n.txt", (1, 1))
    monkeypatch.setattr("neuraxis.sandbox.files.history._TICK", -(1 << 62))
    assert [way.history.is_own("n.txt") for _ in range(3)] == [True] * 3
    assert read == ["n.txt"]
    (folder / "n.txt").write_bytes(b"two")
    assert not way.history.is_own("n.txt")


def _append(way: CallFiles, name: str, text: str) -> None:
    path = way.history.workspace / name
    data = path.read_bytes() if path.exists() else b""
    way.write(name, data + text.encode(), Q, use="change", kind="append")


def _save(way: CallFiles, name: str, text: str = "mine\n") -> None:
    """A person saves the file."""
    (way.history.workspace / name).write_text(text, encoding="utf-8")


def test_attack16_a2_what_was_saved_during_the_run_comes_back_after_its_deletion(
    tmp_path: Path,
) -> None:
    """The run had made the file; it ended as it began, without one."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _append(way, "n", "a")
    _save(way, "n")
    (folder / "n").chmod(0o600)
    way.delete("n")
    undone = way.history.undo()
    assert (undone.restored, undone.changed_during) == (("n",), ("n",))
    assert (folder / "n").read_text() == "mine\n"
    assert os.name != "posix" or (folder / "n").stat().st_mode & 0o777 == 0o600
    assert way.history.undo().run == 0


@pytest.mark.parametrize("there", [True, False])
def test_attack16_a2_undo_stops_at_what_was_saved_between_two_changes(
    there: bool, tmp_path: Path
) -> None:
    """Of an old file, and of one that the run made, with its folder."""
    way, folder, events, _ = _way(tmp_path, free=True)
    if there:
        (folder / "d").mkdir()
        (folder / "d/n").write_bytes(b"old\n")
    _append(way, "d/n", "milk\n")
    _save(way, "d/n")
    _append(way, "d/n", "eggs\n")
    _append(way, "d/n", "salt\n")
    later = _way(tmp_path)[0].history
    later.replay([from_json(to_json(event)) for event in events])
    undone = later.undo()
    assert (undone.restored, undone.removed) == (("d/n",), ())
    assert undone.changed_during == ("d/n",)
    assert (folder / "d/n").read_text() == "mine\n"
    assert not later.is_own("d/n")


def test_attack16_a2_a_folder_of_the_run_is_not_removed_where_an_edit_comes_back(
    tmp_path: Path,
) -> None:
    """Nothing is told to be removed that is there afterwards."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _append(way, "d/e/n", "a")
    way.make_folder("d/f")
    _save(way, "d/e/n")
    way.delete("d/e/n")
    undone = way.history.undo()
    assert (undone.removed, undone.restored) == (("d/f",), ("d/e/n",))
    assert (folder / "d/e/n").read_text() == "mine\n"


def test_attack16_a2_of_two_edits_the_newest_comes_back(tmp_path: Path) -> None:
    """The older one stays among the stored versions; so does the oldest of all."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _save(way, "n", "old")
    for text in ("first", "second"):
        _append(way, "n", " x")
        _save(way, "n", text)
    _append(way, "n", " x")
    assert way.history.undo().changed_during == ("n",)
    assert (folder / "n").read_text() == "second"
    stored = [path.read_bytes() for path in (tmp_path / "state/versions/s1").iterdir()]
    assert {b"old", b"first", b"second"} <= {*stored}
    # the person went back to the oldest
    way.history.begin()
    for text in ("third", "second"):
        _append(way, "n", " x")
        _save(way, "n", text)
    _append(way, "n", " x")
    way.history.undo()
    assert (folder / "n").read_text() == "second"


def test_attack16_a2_a_file_that_was_deleted_during_the_run_goes_again(
    tmp_path: Path,
) -> None:
    """That, too, is what a person made of it."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _save(way, "n")
    _append(way, "n", " x")
    (folder / "n").unlink()
    _append(way, "n", " y")
    undone = way.history.undo()
    assert (undone.removed, undone.changed_during) == (("n",), ("n",))
    assert not (folder / "n").exists()


@pytest.mark.parametrize("to", ["new", "there"])
def test_attack16_a2_what_was_saved_during_the_run_comes_back_where_it_was_moved_from(
    to: str, tmp_path: Path
) -> None:
    """And what it was moved over."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _append(way, "n", "a")
    _append(way, "there", "a")
    _save(way, "n")
    _save(way, "there", "mine too")
    way.move("n", to)
    _append(way, to, "more")
    undone = way.history.undo()
    back = {"n", *({"there"} & {to})}
    assert {*undone.restored} == {*undone.changed_during} == back
    assert (folder / "n").read_text() == "mine\n"
    assert not (folder / "new").exists()
    assert (folder / "there").read_text() == "mine too"


def test_attack16_a2_an_edit_of_what_was_moved_stays_at_its_new_name(
    tmp_path: Path,
) -> None:
    """The old content comes back beside it."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _save(way, "n", "old")
    way.move("n", "m")
    _save(way, "m")
    _append(way, "m", "more")
    undone = way.history.undo()
    assert ({*undone.restored}, undone.changed_during) == ({"n", "m"}, ("m",))
    assert (folder / "n").read_text() == "old"
    assert (folder / "m").read_text() == "mine\n"


def test_attack16_a2_a_change_that_failed_is_nobodys_edit(tmp_path: Path) -> None:
    """It was reported, not made: the next one meets what the run itself had left."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _save(way, "n", "old")
    way.history.change("a1", "n", "write", "0" * 64, whole=True)
    _append(way, "n", " x")
    way.history.change("a1", "n", "write", "1" * 64, whole=True)
    _append(way, "n", " y")
    undone = way.history.undo()
    assert (undone.restored, undone.changed_during) == (("n",), ())
    assert (folder / "n").read_text() == "old"


def test_attack16_a2_a_new_file_with_an_edit_in_it_is_not_the_runs(
    tmp_path: Path,
) -> None:
    """What it holds of a person's is not deleted without a question."""
    way, _, _, _ = _way(tmp_path, free=True)
    _append(way, "n", "a")
    assert way.history.is_new("n")
    _save(way, "n")
    _append(way, "n", "b")
    assert not way.history.is_new("n")
    assert way.history.digest("n") == hashlib.sha256(b"mine\n").hexdigest()


def test_attack16_a2_an_edit_whose_stored_version_was_pruned_is_lost_not_passed(
    tmp_path: Path,
) -> None:
    """The file stays: what was before the edit is not put over it."""
    way, folder, _, _ = _way(tmp_path, free=True)
    _save(way, "n", "old")
    _append(way, "n", " x")
    _save(way, "n")
    _append(way, "n", " y")
    mine = hashlib.sha256(b"mine\n").hexdigest()
    (tmp_path / "state/versions/s1" / mine).unlink()
    undone = way.history.undo()
    assert (undone.lost, undone.changed_during) == (("n",), ())
    assert (folder / "n").read_text() == "mine\n y"


def test_versions_in_memory_stay_below_the_budget(tmp_path: Path) -> None:
    """Also where one is stored twice; the newest stays."""
    store = VersionStore(None, "s1", 10)
    digests = [store.put([data], len(data), "a.txt") for data in (b"12345", b"67890")]
    assert [store.get(digest) for digest in digests] == [b"12345", b"67890"]
    again = store.put([b"12345"], 5, "a.txt")
    assert store.get(again) == b"12345"
    third = store.put([b"abc"], 3, "a.txt")
    assert (store.get(digests[1]), store.get(third)) == (None, b"abc")
    assert store.get(again) == b"12345"


def test_N1_what_undo_could_not_restore_is_restored_later(tmp_path: Path) -> None:
    """Something in its way, or a full disk: the run can be undone again."""
    way, folder, events, _ = _way(tmp_path, free=True)
    (folder / "n").write_bytes(b"old")
    way.delete("n")
    (folder / "n").mkdir()
    (folder / "n/mine").write_bytes(b"mine")
    for _ in range(2):
        assert way.history.undo(lambda path: True).refused == ("n",)
    later = FileHistory(folder, way.history.store)
    later.replay(events)  # another process
    (folder / "n/mine").unlink()
    (folder / "n").rmdir()
    assert later.undo().restored == ("n",)
    assert (folder / "n").read_bytes() == b"old"


def test_N1_undo_brings_back_names_that_differ_in_case_only(tmp_path: Path) -> None:
    """No new file may get such a name; an old one has it."""
    way, folder, _, _ = _way(tmp_path, free=True)
    for name in ("n", "N"):
        (folder / name).write_bytes(name.encode())
    if (folder / "n").read_bytes() == b"N":
        pytest.skip("here they are one file")
    way.write("n", b"new", Q)
    way.delete("N")
    assert set(way.history.undo().restored) == {"n", "N"}
    assert [(folder / name).read_bytes() for name in ("n", "N")] == [b"n", b"N"]


def test_N1_undo_replaces_a_write_protected_file(tmp_path: Path) -> None:
    """It was made so after the change, or a script had changed it so."""
    way, folder, _, _ = _way(tmp_path, free=True)
    (folder / "n").write_bytes(b"old")
    way.write("n", b"new", Q)
    (folder / "n").chmod(0o400)
    assert way.history.undo().restored == ("n",)
    assert (folder / "n").read_bytes() == b"old"
