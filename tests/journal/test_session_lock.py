"""What `test_journals` does not say of claims: files, folders, and who lets go."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from neuraxis.journal.session_lock import Claims

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="locks are those of POSIX"
)

_OTHER = """
import sys
from pathlib import Path
from neuraxis.journal.session_lock import Claims
claims = Claims(Path(sys.argv[1]))
print(*[int(claims.take(name)) for name in sys.argv[2:]], flush=True)
sys.stdin.read()
"""


def _other(path: Path, *names: str) -> tuple[subprocess.Popen[str], str]:
    """Another process, and which of the sessions it may go on with."""
    process = subprocess.Popen(
        [sys.executable, "-c", _OTHER, str(path), *names],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def _seen_by_another(path: Path, *names: str) -> str:
    process, seen = _other(path, *names)
    process.communicate()
    return seen


def test_a_claim_is_for_one_session(tmp_path: Path) -> None:
    """The other sessions of the file are free."""
    claims = Claims(tmp_path / "lock")
    assert claims.take("mine")
    assert claims.take("mine")
    assert _seen_by_another(tmp_path / "lock", "mine", "theirs", "") == "0 1 1"
    claims.close()


def test_a_session_of_another_process_is_refused_until_it_ends(tmp_path: Path) -> None:
    """However it ends; the file is left, empty and its owner's."""
    path = tmp_path / "lock"
    process, seen = _other(path, "theirs")
    claims = Claims(path)
    assert seen == "1"
    assert not claims.take("theirs")
    assert claims.take("mine")
    process.kill()
    process.communicate()
    assert claims.take("theirs")
    claims.close()
    assert all(file.read_bytes() == b"" for file in path.iterdir())
    assert path.stat().st_mode & 0o077 == 0


def test_a_refused_claim_is_none(tmp_path: Path) -> None:
    """Closing after it takes nothing from whoever has the session."""
    path = tmp_path / "lock"
    process, _ = _other(path, "theirs")
    claims = Claims(path)
    assert not claims.take("theirs")
    claims.close()
    assert _seen_by_another(path, "theirs") == "0"
    process.communicate()


def test_claims_may_be_taken_again_behind_their_end(tmp_path: Path) -> None:
    """Closed is not broken; closed twice is closed; never used has nothing to close."""
    path = tmp_path / "lock"
    claims = Claims(path)
    claims.close()
    assert not path.exists()
    assert claims.take("mine")
    claims.close()
    claims.close()
    assert _seen_by_another(path, "mine") == "1"
    assert claims.take("mine")
    assert _seen_by_another(path, "mine") == "0"
    claims.close()


@pytest.mark.parametrize("name", ["", "é", "\ud800", "x" * 10_000, "a/b\0c"])
def test_any_name_can_be_claimed(name: str, tmp_path: Path) -> None:
    """It names a byte, not a file."""
    first, second = Claims(tmp_path / "lock"), Claims(tmp_path / "lock")
    assert first.take(name)
    assert not second.take(name)
    first.close()
    assert second.take(name)
    second.close()
    assert [item.name for item in tmp_path.iterdir()] == ["lock"]


def test_where_no_file_can_be_made_nothing_is_refused(tmp_path: Path) -> None:
    """What is wrong with the folder, the journal tells itself."""
    (tmp_path / "file").touch()
    claims = Claims(tmp_path / "file" / "lock")
    assert claims.take("mine")
    claims.close()
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_file_has_its_claims_under_any_of_its_names(tmp_path: Path) -> None:
    """A link to it is no second file: closing by the one keeps those of the other."""
    (tmp_path / "lock").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    first, second = Claims(tmp_path / "lock"), Claims(tmp_path / "link")
    assert first.take("mine")
    assert second.take("other")
    second.close()
    assert _seen_by_another(tmp_path / "link", "mine", "other") == "0 1"
    first.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_none_of_the_claims(tmp_path: Path) -> None:
    """What it claims itself it gives back, too."""
    path = tmp_path / "lock"
    code = """
import os, sys
from pathlib import Path
from neuraxis.journal.session_lock import Claims
claims = Claims(Path(sys.argv[1]))
assert claims.take("mine")
ready, go_on = os.pipe()
child = os.fork()
if child:
    claims.close()
    os.write(go_on, b"x")
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os.read(ready, 1)
again = Claims(Path(sys.argv[1]))
assert again.take("mine")
again.close()
print("given back", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "given back\n"
    assert _seen_by_another(path, "mine") == "1"
    process.communicate()
    assert process.returncode == 0


def test_a_folder_that_is_gone_leaves_no_open_descriptor(tmp_path: Path) -> None:
    """The lock's file is closed, too, where it cannot be deleted."""
    folder = tmp_path / "journal.db.sessions"
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        claims = Claims(folder)
        assert claims.take("one")
        shutil.rmtree(folder)
        claims.close()
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before
