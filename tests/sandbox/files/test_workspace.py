"""The guarded way to files: tricks, kinds of files, quotas, atomic writes."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from neuraxis.sandbox.files import operations, walk
from neuraxis.sandbox.files import workspace as files
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.files.workspace import Quota


def write_text(folder: Path, path: str, text: str, **limits: Any) -> str:
    return files.write_bytes(folder, path, text.encode(), **limits)


TRICKS: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "file_tricks.yaml").read_text(encoding="utf-8")
)
REFUSED: list[str] = TRICKS["refuse"]["both"]
needs_links = pytest.mark.skipif(
    not walk.HAS_DIR_FDS, reason="this system has no descriptors of folders"
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the workspace with a secret in it."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret", encoding="utf-8")
    return folder


@pytest.fixture
def workspace(tmp_path: Path, outside: Path) -> Path:
    """The workspace that file_tricks.yaml describes."""
    root = tmp_path / "workspace"
    (root / "data").mkdir(parents=True)
    (root / "a.txt").write_text("a", encoding="utf-8")
    (root / "data" / "b.txt").write_text("b", encoding="utf-8")
    (root / "script.py").write_text("print(1)\n", encoding="utf-8")
    (root / "binary.bin").write_bytes(b"\xff\xfe\x00\x81")
    (root / "readonly.txt").write_text("r", encoding="utf-8")
    (root / "readonly.txt").chmod(0o444)
    (root / "out").symlink_to(outside)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "dangling.txt").symlink_to(outside / "new.txt")
    (root / "inner.txt").symlink_to(root / "a.txt")
    (root / "data" / "up").symlink_to("..")
    os.mkfifo(root / "pipe")
    os.link(outside / "secret.txt", root / "hard.txt")
    return root


def _tree(folder: Path) -> dict[str, str]:
    """All there is, links as what they say."""
    return {
        str(path.relative_to(folder)): (
            f"-> {path.readlink()}"
            if path.is_symlink()
            else path.read_bytes().hex()
            if path.is_file()
            else "folder or pipe"
        )
        for path in sorted(folder.rglob("*"))
    }


def test_the_list_is_long_enough() -> None:
    """At least 60 tricks and 20 ordinary names, none twice."""
    allowed = TRICKS["allow"]["write"] + TRICKS["allow"]["read"]
    assert len(REFUSED) >= 60
    assert len(allowed) >= 20
    assert len(REFUSED) == len(set(REFUSED))


@pytest.mark.parametrize("path", REFUSED + TRICKS["refuse"]["write"])
def test_C14_refused_write_changes_nothing(
    path: str, workspace: Path, tmp_path: Path
) -> None:
    """Nothing is made or changed, in the workspace or outside."""
    before = _tree(tmp_path)
    with pytest.raises(FileRefused) as caught:
        write_text(workspace, path, "overwritten")
    assert before == _tree(tmp_path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("path", REFUSED + TRICKS["refuse"]["read"])
def test_C14_refused_read_gives_nothing(path: str, workspace: Path) -> None:
    """Neither a secret outside nor a protected name is read; a pipe does not block."""
    with pytest.raises(FileRefused) as caught:
        files.read_text(workspace, path)
    assert "secret" not in str(caught.value).replace("secrets", "")


@pytest.mark.parametrize("path", REFUSED)
def test_C15_refused_path_is_not_run(path: str, workspace: Path) -> None:
    """Scripts are held to the same rules (checklist 13)."""
    with pytest.raises(FileRefused):
        files.runnable(workspace, path)


@pytest.mark.parametrize("path", TRICKS["allow"]["write"])
def test_ordinary_name_is_written_and_read(path: str, workspace: Path) -> None:
    """What a person would name a file works, and reads back."""
    text = "grüß dich\n\u4f60\u597d"
    written = write_text(workspace, path, text)
    assert text == files.read_text(workspace, path)
    assert text == (workspace / written).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TRICKS["allow"]["read"])
def test_ordinary_name_is_read(path: str, workspace: Path) -> None:
    """Files that are there are read."""
    assert files.read_text(workspace, path)


def test_absolute_path_in_the_workspace_gets_its_relative_form(
    workspace: Path,
) -> None:
    """It is refused, and the sentence says what to write."""
    for path in (f"{workspace}/data/b.txt", "/workspace/data/b.txt"):
        with pytest.raises(FileRefused, match=r"Here: 'data/b\.txt'"):
            files.read_text(workspace, path)


@pytest.mark.parametrize(
    "path",
    ["x" * 201, "ä" * 101, "x/" * 40 + "x", "a" * 1025, "/".join(["d"] * 300)],
    ids=["name", "bytes", "depth", "length", "levels"],
)
def test_length_and_depth_are_bounded(path: str, workspace: Path) -> None:
    """Nothing depends on the limits of the file system."""
    with pytest.raises(FileRefused):
        write_text(workspace, path, "x")


def test_overwriting_keeps_other_names_of_the_file(
    workspace: Path, outside: Path
) -> None:
    """A hard link's other name keeps its content: the file is replaced, not opened."""
    write_text(workspace, "hard.txt", "new")
    assert "new" == files.read_text(workspace, "hard.txt")
    assert "secret" == (outside / "secret.txt").read_text(encoding="utf-8")


def test_a_link_to_the_workspace_is_a_workspace(tmp_path: Path) -> None:
    """The root is the person's choice; only what lies below is checked."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    write_text(tmp_path / "link", "x.txt", "x")
    assert "x" == (real / "x.txt").read_text(encoding="utf-8")


def test_the_workspace_is_made_by_the_first_write(tmp_path: Path) -> None:
    """Reading from a workspace that is not there is told, writing makes it."""
    root = tmp_path / "new" / "workspace"
    assert () == files.list_files(root).files
    with pytest.raises(FileRefused, match="no such file or folder"):
        files.read_text(root, "a.txt")
    write_text(root, "a.txt", "a")
    assert ("a.txt",) == files.list_files(root).files


def test_a_workspace_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """A wrong setting is a sentence, without the path of this computer."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    for call in (
        lambda: write_text(tmp_path / "file", "a.txt", "a"),
        lambda: files.read_text(tmp_path / "file", "a.txt"),
        lambda: files.list_files(tmp_path / "file"),
    ):
        with pytest.raises(FileRefused) as caught:
            call()
        assert str(tmp_path) not in str(caught.value)


def test_a_failed_write_leaves_nothing_behind(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves the old file whole and no temporary one."""

    def full(*args: object, **more: object) -> None:
        raise OSError(28, "No space left on device")

    before = sorted(os.listdir(workspace))
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(FileRefused, match="No space left"):
        write_text(workspace, "a.txt", "new")
    assert before == sorted(os.listdir(workspace))
    assert "a" == files.read_text(workspace, "a.txt")


@pytest.mark.parametrize(
    ("quota", "message"),
    [
        (Quota(file_bytes=3), "at most 3 a file"),
        (Quota(total_bytes=20), "at most 20 bytes in all"),
        (Quota(files=3), "at most 3 files"),
    ],
)
def test_quotas(quota: Quota, message: str, workspace: Path) -> None:
    """A file, all files and their number are bounded."""
    with pytest.raises(FileRefused, match=message):
        write_text(workspace, "new.txt", "four", quota=quota)
    assert not (workspace / "new.txt").exists()


def test_reading_is_bounded(workspace: Path) -> None:
    """A large file is refused by its size, before it is read."""
    with (workspace / "large.txt").open("wb") as stream:
        stream.truncate(100 * 1024 * 1024)
    with pytest.raises(FileRefused, match="at most 10485760 are read"):
        files.read_text(workspace, "large.txt")
    with pytest.raises(FileRefused, match="at most 3 are read"):
        files.read_bytes(workspace, "script.py", limit=3)


def test_text_is_kept_byte_for_byte(workspace: Path) -> None:
    """Line ends and braces are data; a byte order mark is dropped when reading."""
    text = "a\r\nb\n{{ x }} {% y %}\r{# z #}"
    write_text(workspace, "x.txt", text)
    assert text == files.read_text(workspace, "x.txt")
    files.write_bytes(workspace, "bom.txt", b"\xef\xbb\xbfhi")
    assert "hi" == files.read_text(workspace, "bom.txt")


@pytest.mark.parametrize("name", ["a.txt", "a.pyc", "script.sh", "py", "pipe"])
def test_C15_only_python_files_are_run(name: str, workspace: Path) -> None:
    """The name decides before the file is looked at."""
    with pytest.raises(FileRefused, match=r"\.py"):
        files.runnable(workspace, name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.mkdir(), "folder"),
        (lambda path: os.mkfifo(path), "no regular file"),
        (lambda path: path.write_bytes(b"\xff\xfe\x81"), "UTF-8"),
        (lambda path: path.write_bytes(b"a\0b"), "NUL"),
        (lambda path: path.write_bytes(b"#" * 2_000_000), "at most"),
        (lambda path: path.symlink_to("script.py"), "link"),
        (lambda path: None, "no such file"),
    ],
    ids=["folder", "pipe", "not UTF-8", "NUL", "large", "link", "missing"],
)
def test_C15_only_sound_scripts_are_run(
    make: Callable[[Path], object], message: str, workspace: Path
) -> None:
    """Checklist 13: directory, pipe, foreign encoding, size, link."""
    make(workspace / "odd.py")
    with pytest.raises(FileRefused, match=message):
        files.runnable(workspace, "odd.py")


def test_C15_script_is_given_as_its_relative_path(workspace: Path) -> None:
    """What goes to the sandbox is the normal form."""
    assert "script.py" == files.runnable(workspace, "./script.py")


def test_list_shows_ordinary_files_only(workspace: Path) -> None:
    """No link, pipe, protected name or temporary file."""
    for name in (".env", ".gitignore", "neuraxis.toml", ".nx-1234"):
        (workspace / name).write_text("x", encoding="utf-8")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "config").write_text("x", encoding="utf-8")
    assert (
        ".gitignore",
        "a.txt",
        "binary.bin",
        "data/b.txt",
        "hard.txt",
        "readonly.txt",
        "script.py",
    ) == files.list_files(workspace).files


@pytest.mark.parametrize(
    ("folder", "pattern", "found"),
    [
        ("", "*.py", ["script.py"]),
        ("", "[ab].txt", ["a.txt", "data/b.txt"]),
        ("data", "", ["data/b.txt"]),
        ("data/", "*", ["data/b.txt"]),
        (".", "?.txt", ["a.txt", "data/b.txt"]),
        ("", "data/*", ["data/b.txt"]),
        ("", "**/*.txt", ["a.txt", "data/b.txt", "hard.txt", "readonly.txt"]),
        ("", "data/**", ["data/b.txt"]),
        ("", "../*", []),
        ("", "nothing", []),
    ],
)
def test_list_patterns(
    folder: str, pattern: str, found: list[str], workspace: Path
) -> None:
    """A name, a folder, and any number of folders."""
    assert tuple(found) == files.list_files(workspace, folder, pattern).files


@pytest.mark.parametrize("folder", ["..", "/", "out", "data/up", "missing", ".git"])
def test_list_refuses_other_folders(folder: str, workspace: Path) -> None:
    """Folders are held to the rules of files."""
    with pytest.raises(FileRefused):
        files.list_files(workspace, folder)


def test_list_is_bounded(workspace: Path) -> None:
    """More files than asked for are told as such; a hostile pattern ends."""
    for number in range(20):
        (workspace / f"n{number:02}.txt").write_text("x", encoding="utf-8")
    found = files.list_files(workspace, most=5)
    assert (5, True) == (len(found.files), found.more)
    assert () == files.list_files(workspace, "", "*a" * 90 + "b").files
    with pytest.raises(FileRefused, match="pattern"):
        files.list_files(workspace, "", "*a" * 101)


@needs_links
def test_a_folder_exchanged_for_a_link_leads_nowhere(
    workspace: Path, outside: Path
) -> None:
    """Checklist 12, race: while another process swaps a folder and a link, nothing
    is ever written outside."""
    stop = threading.Event()

    def swap() -> None:
        race = workspace / "race"
        turn = 0
        while not stop.is_set():
            turn += 1
            spare = workspace / f"spare{turn}"
            # The writer may make the folder in between: then a step does nothing.
            with contextlib.suppress(OSError):
                race.rename(spare)
            with contextlib.suppress(OSError):
                race.symlink_to(outside)
            with contextlib.suppress(OSError):
                race.unlink()

    thread = threading.Thread(target=swap)
    thread.start()
    before = sorted(os.listdir(outside))
    try:
        for number in range(300):
            with contextlib.suppress(FileRefused):
                write_text(workspace, f"race/f{number}.txt", "x")
    finally:
        stop.set()
        thread.join()
    assert before == sorted(os.listdir(outside))


def test_without_descriptors_the_rules_hold_too(
    workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fallback for systems without `dir_fd` refuses the same links and kinds."""
    monkeypatch.setattr(walk, "HAS_DIR_FDS", False)
    write_text(workspace, "new/x.txt", "x")
    assert "x" == files.read_text(workspace, "new/x.txt")
    assert "new/x.txt" in files.list_files(workspace).files
    for path in ("out/x.txt", "link.txt", "dangling.txt", "data/up/a.txt", "pipe"):
        with pytest.raises(FileRefused):
            write_text(workspace, path, "x")
        with pytest.raises(FileRefused):
            files.read_text(workspace, path)
    assert ["secret.txt"] == os.listdir(outside)


def test_folders_that_scripts_made_too_deep_are_left_out(workspace: Path) -> None:
    """Neither listing nor writing runs out of descriptors or of stack."""
    here = os.open(workspace, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    write_text(workspace, "x.txt", "x")
    assert "x.txt" in files.list_files(workspace).files


@needs_links
def test_a_replaced_file_is_no_more_open_than_it_was(workspace: Path) -> None:
    """What only its owner could read stays so; nothing new may be executed."""
    for mode, expected in ((0o600, 0o600), (0o640, 0o640), (0o755, 0o644)):
        target = workspace / "private.txt"
        target.write_text("old", encoding="utf-8")
        target.chmod(mode)
        write_text(workspace, "private.txt", "new")
        assert target.stat().st_mode & 0o777 & ~expected == 0
        assert target.read_text(encoding="utf-8") == "new"


@needs_links
def test_N1_a_replaced_file_is_open_to_the_same_people(workspace: Path) -> None:
    """Its group can still write it, whatever the umask; as root, it keeps its owner."""
    target = workspace / "shared.txt"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o664)
    if is_root := os.geteuid() == 0:
        os.chown(target, 12345, 12346)
    umask = os.umask(0o077)
    try:
        write_text(workspace, "shared.txt", "new")
    finally:
        os.umask(umask)
    status = target.stat()
    assert status.st_mode & 0o777 == 0o664
    assert not is_root or (status.st_uid, status.st_gid) == (12345, 12346)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Linux only")
def test_N1_a_replaced_file_keeps_its_labels(workspace: Path) -> None:
    target = workspace / "a.txt"
    try:
        os.setxattr(target, "user.tag", b"red")
    except OSError:
        pytest.skip("this disk has no extended attributes")
    write_text(workspace, "a.txt", "new")
    assert os.getxattr(target, "user.tag") == b"red"


@needs_links
def test_a_file_of_a_group_that_cannot_be_kept_is_closed_to_groups(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer's own group could otherwise read what only the old one could."""

    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    target = workspace / "shared.txt"
    target.write_text("old", encoding="utf-8")
    target.chmod(0o664)
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another group")
    os.chown(target, -1, 12346)
    monkeypatch.setattr(os, "fchown", refused)
    write_text(workspace, "shared.txt", "new")
    assert target.stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize(
    ("there", "given", "words"),
    [
        ("Notes.txt", "notes.txt", "only in upper and lower case; use"),
        ("cafe\u0301.txt", "caf\xe9.txt", "case or in the form of its accents; use"),
        ("Cafe\u0301.txt", "caf\xe9.txt", "case or in the form of its accents; use"),
    ],
)
def test_a_name_that_differs_in_its_accents_is_not_said_to_differ_in_case(
    tmp_path: Path, there: str, given: str, words: str
) -> None:
    """Both names look alike where one has another Unicode form."""
    (tmp_path / there).write_text("x", encoding="utf-8")
    with pytest.raises(FileRefused, match=words):
        write_text(tmp_path, given, "y")


def test_a_file_that_is_replaced_does_not_count_twice(tmp_path: Path) -> None:
    """At the limit it can be made smaller, and not larger."""
    workspace, quota = tmp_path / "w", Quota(total_bytes=5, files=1)
    files.write_bytes(workspace, "a.txt", b"12345", quota=quota)
    files.write_bytes(workspace, "a.txt", b"1234", quota=quota)
    files.write_bytes(workspace, "a.txt", b"54321", quota=quota)
    with pytest.raises(FileRefused, match="full"):
        files.write_bytes(workspace, "a.txt", b"123456", quota=quota)
    with pytest.raises(FileRefused, match="full"):
        files.write_bytes(workspace, "b.txt", b"", quota=quota)


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_folder_that_cannot_be_deleted_says_why(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that it holds files, unless it does."""
    (workspace / "empty").mkdir()
    (workspace / "full").mkdir()
    (workspace / "full" / "a.txt").write_text("a")
    with pytest.raises(FileRefused, match="it holds files"):
        operations.remove(workspace, "full")

    def refuse(*args: Any, **named: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "rmdir", refuse)
    with pytest.raises(FileRefused, match="could not be deleted: Permission denied"):
        operations.remove(workspace, "empty")


@needs_links
def test_N1_a_move_between_two_names_of_one_file_is_refused(workspace: Path) -> None:
    """The system would do nothing, and both names would stay."""
    os.link(workspace / "a.txt", workspace / "b.txt")
    with pytest.raises(FileRefused, match=r"hard link\); delete 'a.txt' instead"):
        operations.move(workspace, "a.txt", "b.txt", None)
    operations.remove(workspace, "a.txt", None)
    assert (workspace / "b.txt").read_text(encoding="utf-8") == "a"


def test_a_move_to_another_disk_names_the_way_out(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a folder in the workspace that is a mount."""

    def refused(*_: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(operations.exchange, "move", refused)
    with pytest.raises(FileRefused, match=r"'data/a' is on another disk. Copy it"):
        operations.move(workspace, "a.txt", "data/a", "")
    assert (workspace / "a.txt").exists()
