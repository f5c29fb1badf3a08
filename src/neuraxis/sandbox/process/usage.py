"""Measure the memory, processes and disk that a script uses.

`usage` sums a tree, `disk` a folder; `exceeded` turns them into one sentence or "".
No process of the tree is trusted: entries that vanish while they are read are skipped,
symbolic links are never followed, and depth and count are bounded.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from neuraxis.formatting import in_seconds
from neuraxis.sandbox.files import walk
from neuraxis.sandbox.files.paths import FileRefused
from neuraxis.sandbox.process.job import MIB, Limits

_PROC = "/proc"
DEEPEST = 100
"""Maximum folder depth of a workspace."""


class Usage(Struct, frozen=True, kw_only=True):
    """Resource usage of a process tree at one moment."""

    pids: tuple[int, ...]
    tasks: int
    memory: int
    cpu_seconds: float


class Disk(Struct, frozen=True, kw_only=True):
    """Disk usage of a folder at one moment."""

    used: int
    files: int
    sockets: int
    hidden: int
    """Number of folders that could not be read."""
    deep: bool


class _Stat(Struct, frozen=True):
    parent: int
    state: str
    ticks: int
    threads: int
    pages: int


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The name is in brackets and may itself contain brackets.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 22:
        return None
    return _Stat(
        parent=int(fields[1]),
        state=fields[0].decode("ascii", "replace"),
        ticks=sum(map(int, fields[11:15])),
        threads=int(fields[17]),
        pages=int(fields[21]),
    )


def _all() -> dict[int, _Stat]:
    processes: dict[int, _Stat] = {}
    try:
        names = os.listdir(_PROC)
    except OSError:
        return _stats_from_ps() if os.name == "posix" else {}
    for name in names:
        if name.isdigit() and (entry := _stat(int(name))) is not None:
            processes[int(name)] = entry
    return processes


def _stats_from_ps() -> dict[int, _Stat]:
    """Return usage from `ps` (macOS); without times or threads."""
    stats: dict[int, _Stat] = {}
    try:
        text = subprocess.run(
            ["/bin/ps", "-A", "-o", "pid=,ppid=,state=,rss="],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        ).stdout.decode("ascii", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return stats
    kib_a_page = os.sysconf("SC_PAGESIZE") // 1024
    for line in text.splitlines():
        words = line.split()
        if len(words) == 4 and words[0].isdigit():
            pages = int(words[3]) // kib_a_page
            stats[int(words[0])] = _Stat(int(words[1]), words[2][0], 0, 1, pages)
    return stats


def _below(root: int, processes: dict[int, _Stat]) -> list[int]:
    children: dict[int, list[int]] = {}
    for pid, entry in processes.items():
        children.setdefault(entry.parent, []).append(pid)
    pids: dict[int, None] = {}
    pending = [root]
    while pending:
        pid = pending.pop()
        if pid in processes and pid not in pids:
            pids[pid] = None
            pending += children.get(pid, [])
    return list(pids)


def usage(root: int, *, beyond: int = 0) -> Usage:
    """Return the usage of the process tree at `root`.

    Args:
        root: the process at the top.
        beyond: memory above which shared pages are counted once (slow, and not needed
            below it).
    """
    processes = _all()
    pids = _below(root, processes)
    if not pids:
        return Usage(pids=(), tasks=0, memory=0, cpu_seconds=0)
    tree = [processes[pid] for pid in pids]
    memory = sum(entry.pages for entry in tree) * os.sysconf("SC_PAGESIZE")
    if memory > beyond > 0:
        memory = sum(
            _own_memory(pid, processes[pid].pages * os.sysconf("SC_PAGESIZE"))
            for pid in pids
        )
    return Usage(
        pids=tuple(pids),
        tasks=sum(entry.threads for entry in tree if entry.state != "Z"),
        memory=memory,
        cpu_seconds=sum(entry.ticks for entry in tree) / os.sysconf("SC_CLK_TCK"),
    )


def _own_memory(pid: int, fallback: int) -> int:
    """Return proportional memory, or resident memory where that is unavailable."""
    try:
        with open(f"{_PROC}/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return fallback
    return fallback


def tasks_of_user(uid: int) -> int:
    """Return the number of processes and threads of the user."""
    total = 0
    for pid, entry in _all().items():
        with suppress(OSError):
            if os.stat(f"{_PROC}/{pid}").st_uid == uid:
                total += entry.threads
    return total


def kill(root: int) -> None:
    """Kill the process tree at `root`; stops it first to prevent forks."""
    stopped: set[int] = set()
    for _ in range(20):
        pids = set(_below(root, _all())) | {root}
        if pids <= stopped:
            break
        _signal(pids - stopped, signal.SIGSTOP)
        stopped |= pids
    _signal(stopped, signal.SIGKILL)


def _signal(pids: Iterable[int], sign: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, sign)


def disk(folder: Path) -> Disk:
    """Return the disk usage of the folder; links count as themselves."""
    total = [0, 0, 0, 0, 0]
    if not walk.HAS_DIR_FDS:
        _scan_by_path(str(folder), total)
    else:
        try:
            top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return Disk(used=0, files=0, sockets=0, hidden=1, deep=False)
        _scan(top, 0, total)
    used, files, sockets, hidden, deep = total
    return Disk(used=used, files=files, sockets=sockets, hidden=hidden, deep=deep > 0)


def _scan(folder: int, depth: int, total: list[int]) -> None:
    """Add up an open folder and close it; paths may be long."""
    try:
        if depth > DEEPEST:
            total[4] += 1
            return
        for name in os.listdir(folder):
            try:
                entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except OSError:
                continue
            total[0] += entry.st_blocks * 512
            total[1] += 1
            total[2] += stat.S_ISSOCK(entry.st_mode)
            if stat.S_ISDIR(entry.st_mode):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                try:
                    subfolder = os.open(name, flags, dir_fd=folder)
                except PermissionError:
                    total[3] += 1
                except OSError:
                    continue
                else:
                    _scan(subfolder, depth + 1, total)
    except OSError:
        total[3] += 1
    finally:
        os.close(folder)


def _scan_by_path(top: str, total: list[int]) -> None:
    """Scan by path, for systems without folder descriptors (Windows)."""
    pending = [(top, 0)]
    while pending:
        path, depth = pending.pop()
        if depth > DEEPEST:
            total[4] += 1
            continue
        try:
            names = os.listdir(path)
        except OSError:
            total[3] += 1
            continue
        for name in names:
            inner = os.path.join(path, name)
            with suppress(OSError, FileRefused):
                entry = os.lstat(inner)
                total[0] += entry.st_size
                total[1] += 1
                if stat.S_ISDIR(entry.st_mode):
                    walk.check_plain(Path(inner), name)  # Refuses a junction.
                    pending.append((inner, depth + 1))


def removed_but_open(pids: Iterable[int], device: int) -> int:
    """Return the bytes of deleted files that are still open."""
    seen: dict[int, int] = {}
    for pid in pids:
        try:
            names = os.listdir(f"{_PROC}/{pid}/fd")
        except OSError:
            continue
        for name in names:
            with suppress(OSError):
                entry = os.stat(f"{_PROC}/{pid}/fd/{name}")
                if entry.st_dev == device and entry.st_nlink == 0:
                    seen[entry.st_ino] = entry.st_blocks * 512
    return sum(seen.values())


def temporary_files(pids: Iterable[int]) -> int:
    """Count files in a namespace's temporary folders, which limit size only."""
    own_device = os.stat("/").st_dev
    for pid in pids:
        top = f"{_PROC}/{pid}/root"
        total = 0
        try:
            if os.stat(top).st_dev == own_device:
                continue
            for place in ("/tmp", "/dev/shm"):
                status = os.statvfs(top + place)
                total += status.f_files - status.f_ffree
        except OSError:
            continue
        return total
    return 0


def exceeded(current: Usage, limits: Limits) -> str:
    """Return why the tree must be stopped, or ""."""
    if current.memory > limits.memory:
        return f"It used more than {_mib(limits.memory)} of memory and was stopped."
    if current.tasks > limits.processes + 4:  # The sandbox's own processes count too.
        return (
            f"It started more than {limits.processes} processes and threads "
            "and was stopped."
        )
    if current.cpu_seconds > limits.cpu_seconds:
        return (
            f"It used more than {in_seconds(limits.cpu_seconds)} of processor time "
            "and was stopped."
        )
    return ""


def outgrown(before: Disk, current: Disk, limits: Limits, removed: int = 0) -> str:
    """Return why the workspace must not grow further, or ""."""
    if current.used + removed - before.used > limits.disk:
        return (
            f"It wrote more than {_mib(limits.disk)} into the workspace "
            "and was stopped."
        )
    if current.files - before.files > limits.files:
        return (
            f"It made more than {limits.files:,} files in the workspace "
            "and was stopped."
        )
    if current.deep and not before.deep:
        return f"It nested more than {DEEPEST} folders and was stopped."
    if current.hidden > before.hidden:
        return "It made a folder of the workspace unreadable and was stopped."
    return ""


def _mib(size: int) -> str:
    return f"{size / MIB:g} MiB"
