"""Attempts to escape, in every sandbox of this machine, as root and as a user.

The attempts act on what `world` made for them. The control runs them in a bare
subprocess, so that one sees that they bite.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

import neuraxis
from escapes import runner
from escapes.ordinary import ORDINARY
from escapes.world import KEY
from neuraxis.sandbox.process import interpreter
from neuraxis.sandbox.process.backends import landlock

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="attempts are for Linux"),
    pytest.mark.timeout(600),
]
Batches = dict[tuple[str, str], "Future[dict[str, Any]]"]
USER = 65533
MODES = ("bubblewrap", "landlock")
WHO = ("root", "user")
BY_NAME = {attempt.name: attempt for attempt in runner.ALL}


def _python_for(uid: int, source: Path) -> str:
    """An interpreter that another user can run and that can read this package."""
    here = Path(__file__).resolve()
    if not landlock.reachable((source, here.parent), uid):
        pytest.skip("another user cannot read this checkout")
    if landlock.reachable(interpreter.roots(), uid):
        return sys.executable
    other = "/usr/bin/python3"
    told = subprocess.run(
        [other, "-c", "import sys; print(sys.implementation.cache_tag)"],
        capture_output=True,
        text=True,
        check=False,
    )
    own = sys.implementation.cache_tag
    if told.stdout.strip() != own:  # what is compiled for the one fits no other
        pytest.skip(f"another user can run no {own} here")
    return other


@contextmanager
def _compiled_for_all() -> Iterator[Path]:
    """A folder with what the sandbox needs beside the source, which all may read."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        package = Path(msgspec.__file__).parent
        shutil.copytree(
            package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__")
        )
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755)
        yield folder


_ORDER = {"root": (*MODES, "plain"), "user": ("plain", *MODES)}
_ONE_CONTROL = threading.Lock()
"""The controls write the same names in /tmp."""


@pytest.fixture(scope="module")
def batches(request: pytest.FixtureRequest) -> Iterator[Batches]:
    """What the chosen tests need, under way: root's batches beside the user's."""
    wanted: set[tuple[str, str]] = set()
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == request.path:
            params = item.callspec.params
            wanted.add((str(params.get("mode", "plain")), str(params["who"])))
    with ExitStack() as stack:
        found: Batches = {}
        for who, modes in _ORDER.items():
            lane = ThreadPoolExecutor(1)
            stack.callback(lane.shutdown, cancel_futures=True)
            for mode in modes:
                if (mode, who) in wanted:
                    found[mode, who] = lane.submit(_run, mode, who)
        yield found


def _run(mode: str, who: str) -> dict[str, Any]:
    with _ONE_CONTROL if mode == "plain" else nullcontext():
        return _batch(mode, who)


def _batch(mode: str, who: str) -> dict[str, Any]:
    source = Path(neuraxis.__file__).resolve().parent.parent
    tests = Path(__file__).resolve().parent.parent
    root = os.geteuid() == 0
    given: dict[str, Any] = {}
    python = sys.executable
    if who == "root" and not root:
        pytest.skip("this is not run by root")
    if who == "user" and root:
        python = _python_for(USER, source)
        given = {"user": USER, "group": USER, "extra_groups": []}
    with ExitStack() as stack:
        paths = [source, tests]
        if python != sys.executable:
            paths.append(stack.enter_context(_compiled_for_all()))
        done = subprocess.run(
            [python, "-m", "escapes.runner", mode, "", KEY],
            cwd="/",
            env={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "PYTHONPATH": ":".join(map(str, paths)),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            **given,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    refusals = {
        result["reason"]
        for result in found["attempts"].values()
        if result["sandbox"] == "none: refused"
    }
    if refusals:
        pytest.skip(f"{mode} does not work here: {refusals.pop()}")
    return found


def _through(found: dict[str, Any], *, high: bool) -> dict[str, str]:
    return {
        name: result["seen"]
        for name, result in found["attempts"].items()
        if result["seen"] and BY_NAME[name].high == high
    }


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("mode", MODES)
class TestHeld:
    """One batch of all attempts for each sandbox and user."""

    def test_nothing_of_worth_gets_through(
        self, batches: Batches, mode: str, who: str
    ) -> None:
        """No secret, no write, no packet, no foreign process, no limit (S1, 3-7)."""
        found = batches[mode, who].result()
        assert len(found["attempts"]) == len(BY_NAME)
        assert _through(found, high=True) == {}

    def test_only_small_facts_leak(self, batches: Batches, mode: str, who: str) -> None:
        """That a file exists can be seen under Landlock, and nothing under bwrap."""
        allowed = {"info_stat", "info_exists"} if mode == "landlock" else set[str]()
        assert set(_through(batches[mode, who].result(), high=False)) <= allowed

    def test_it_is_the_sandbox_that_was_asked_for(
        self, batches: Batches, mode: str, who: str
    ) -> None:
        """The outcome names what held the script, in every run."""
        found = batches[mode, who].result()
        names = {result["sandbox"] for result in found["attempts"].values()}
        assert names == {mode}

    def test_ordinary_scripts_work(self, batches: Batches, mode: str, who: str) -> None:
        """What people write runs, all of it."""
        found = batches[mode, who].result()["ordinary"]
        expected = {script.name: script.expected for script in ORDINARY}
        assert expected == {name: found[name]["output"] for name in expected}, found


@pytest.mark.parametrize("who", WHO)
def test_the_attempts_bite_without_a_sandbox(batches: Batches, who: str) -> None:
    """The control: at least four of five get through where nothing holds them."""
    found = batches["plain", who].result()["attempts"]
    through = [name for name, result in found.items() if result["seen"]]
    assert len(through) >= 0.8 * len(found), sorted(set(found) - set(through))
