"""Removal of folders that a script left: deep, closed, and full of odd names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from neuraxis.sandbox.files.removal import remove_tree
from neuraxis.sandbox.files.walk import walk_tree

pytestmark = pytest.mark.skipif(os.name != "posix", reason="folders by descriptor")

DEEP = 2_500
"""Folders, whose path would have more than 4,096 characters."""


@pytest.fixture
def place() -> Generator[Path]:
    """A folder that is removed whatever a test leaves in it: pytest's own cannot."""
    folder = Path(tempfile.mkdtemp(prefix="nx-removal-"))
    yield folder
    assert remove_tree(folder) == ""


def nested(top: Path, depth: int) -> None:
    """Make a chain of folders, with a file in each."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=at)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=at))
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_a_tree_deeper_than_the_recursion_limit_is_removed(place: Path) -> None:
    """Deeper, too, than a path can be long; what is beside it stays."""
    (place / "two").mkdir()
    (place / "one").mkdir()
    nested(place / "one", DEEP)
    assert remove_tree(place / "one") == ""
    assert os.listdir(place) == ["two"]


def test_a_link_is_removed_and_not_followed(place: Path, tmp_path: Path) -> None:
    """Neither one in the folder, nor one in its place."""
    (tmp_path / "kept.txt").write_text("mine")
    (place / "gone").mkdir()
    (place / "gone" / "link").symlink_to(tmp_path)
    assert remove_tree(place / "gone") == ""
    (place / "link").symlink_to(tmp_path)
    assert remove_tree(place / "link") != ""
    assert (place / "link").is_symlink()
    assert (tmp_path / "kept.txt").read_text() == "mine"


def test_what_cannot_be_removed_is_said(place: Path) -> None:
    """No exception: the caller logs it."""
    assert "No such file" in remove_tree(place / "missing")
    assert "No such file" in remove_tree(place / "no" / "way")
    (place / "file").write_text("x")
    assert "Not a directory" in remove_tree(place / "file")


_AS_AN_ORDINARY_USER = """
import os, sys, resource
from pathlib import Path
from neuraxis.sandbox.files.removal import remove_tree
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
top = Path(sys.argv[1]) / "top"
top.mkdir()
os.chdir(top)
for name in (b"n\\xff", b"new\\nline", b"-rf", b"x" * 255):
    os.mkdir(name)
    open(os.path.join(name, b"f\\xfe"), "w").close()
    os.mkdir(os.path.join(name, b"inner"))
os.mkfifo("pipe")
os.symlink("/etc", "link")
for n in range(100):  # deeper than descriptors are allowed
    os.mkdir("d"); os.chmod(".", 0o700); os.chdir("d")
open("closed", "w").close(); os.chmod("closed", 0)
os.mkdir("empty"); os.chmod("empty", 0)
for n in range(100):
    os.chdir(".."); os.chmod("d", 0 if n % 2 else 0o500)
os.chmod(top, 0)
print(repr(remove_tree(top)), os.listdir(sys.argv[1]))
"""


def test_names_and_permissions_of_a_script_do_not_hinder(place: Path) -> None:
    """Folders that nobody may enter, as a user without root's rights."""
    place.chmod(0o777)
    run = subprocess.run(
        [sys.executable, "-c", _AS_AN_ORDINARY_USER, place],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stdout == "'' []\n", run.stderr


def test_a_walk_goes_deeper_than_the_recursion_limit(place: Path) -> None:
    """`os.walk` fails there before Python 3.12."""
    nested(place, 1_200)
    found = list(walk_tree(place))
    assert len(found) > sys.getrecursionlimit()
    assert {tuple(names) for _, _, names in found[:-1]} == {("f",)}


def test_a_walk_is_that_of_the_standard_library(tmp_path: Path) -> None:
    """A folder can be passed over; a link to one is a name and not followed."""
    for name in ("a/b/c", "a/skip/d", "e"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "f").write_text("")
    expected = sorted((at, sorted(names)) for at, _, names in os.walk(tmp_path))
    assert sorted((at, sorted(names)) for at, _, names in walk_tree(tmp_path)) == (
        expected
    )
    (tmp_path / "link").symlink_to(tmp_path / "a")
    seen: list[str] = []
    for at, folders, names in walk_tree(tmp_path):
        folders[:] = [name for name in folders if name != "skip"]
        seen += [os.path.relpath(os.path.join(at, name), tmp_path) for name in names]
    assert sorted(seen) == ["a/b/c/f", "e/f", "link"]
    shutil.rmtree(tmp_path / "a")
