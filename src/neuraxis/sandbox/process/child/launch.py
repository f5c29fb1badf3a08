"""Set up isolation in the child process from a JSON plan.

Run as a program of its own (`python -I -S launch.py PLAN`), so that nothing happens
between fork and exec in a process that has threads. Stays within the standard library
and imports nothing of this package. Either it becomes the command (`exec`), or, where
there is no process namespace to hold the tree, it stays as its supervisor: it outlives
every descendant, and kills them all when the command ends or the runtime goes away.

Plan keys, each optional but `argv`, `env`, `status`:
`lifeline` (descriptor whose end of file means: kill), `supervise`, `processes` (how
many tasks the tree may have; `rlimits` holds the next best limit where nothing can
count them by themselves), `base` and `mounts` (bind mounts in a private mount
namespace, for root), `uid`, `read_all` (keep the one right to read files whatever their
mode), `rlimits`, `landlock`, `seccomp` (hex), `cwd`.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from contextlib import suppress
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 4, 8, 24
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_CHILD_SUBREAPER = 22, 38, 36
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_READ_SEARCH = 2
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
FAILED = 125

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, action: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{action}: {os.strerror(number)}")
    return result


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(option, *padded), f"prctl {option}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        os.fsencode(kind),
        ctypes.c_ulong(flags),
        os.fsencode(data),
    )
    _check(result, f"mount {source}")


def mounts(base: str, binds: list[list[str]]) -> None:
    """Bind-mount folders that only root can reach below `base`, for this tree."""
    _check(_libc.unshare(CLONE_NEWNS), "unshare of the mount namespace")
    _mount("none", "/", "none", MS_REC | MS_PRIVATE)
    _mount("tmpfs", base, "tmpfs", 0, "mode=0755,size=64k")
    for source, name in binds:
        target = os.path.join(base, name)
        os.mkdir(target)
        _mount(source, target, "none", MS_BIND | MS_REC)


def become(uid: int, read_all: bool) -> None:
    """Give up root; retain at most the right to read hidden files."""
    if sys.platform != "linux":  # macOS has no other identity to give up.
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        return
    if read_all:
        _prctl(PR_SET_KEEPCAPS, 1)
    _drop_bound(read_all)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    _drop(read_all)


def _drop_bound(read_all: bool) -> None:
    for capability in range(64):
        if read_all and capability == CAP_DAC_READ_SEARCH:
            continue
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break


def _drop(read_all: bool) -> None:
    capability = 1 << CAP_DAC_READ_SEARCH if read_all else 0
    header = struct.pack("Ii", 0x20080522, 0)
    data = struct.pack("6I", capability, capability, capability, 0, 0, 0)
    number = SYS_CAPSET[os.uname().machine]
    _check(_libc.syscall(number, header, data), "capset")
    if read_all:
        _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)


def count_apart() -> None:
    """Enter a new user namespace, where the kernel counts tasks separately.

    Without it, RLIMIT_NPROC counts whatever the user runs, other scripts included. The
    namespace gives no right that is kept: its user is the same, and nothing else.
    """
    uid, gid = os.geteuid(), os.getegid()
    # Becoming another user made root the owner of our files in /proc.
    _prctl(PR_SET_DUMPABLE, 1)
    _check(_libc.unshare(CLONE_NEWUSER), "unshare of the user namespace")
    maps = {
        "setgroups": "deny",
        "uid_map": f"{uid} {uid} 1",
        "gid_map": f"{gid} {gid} 1",
    }
    for name, text in maps.items():
        _write(f"/proc/self/{name}", text)
    _drop_bound(read_all=False)
    _drop(read_all=False)


def _write(path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def _can_count_apart(plan: dict[str, Any]) -> bool:
    """Check in a child process whether the namespace is allowed and usable."""
    # The check needs one right of root in there; no isolation means no right.
    if "landlock" not in plan or plan.get("read_all"):
        return False
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    try:
        if "uid" in plan:
            become(plan["uid"], read_all=False)
        count_apart()
        os._exit(0)
    except OSError:
        os._exit(FAILED)


def bound_tasks(plan: dict[str, Any]) -> str:
    """Limit the tasks of this tree alone through the kernel, where possible.

    The plan is changed to the method that works here: a user namespace; else a control
    group, which only root can create; else the limit on all of the user's tasks stays.

    Returns:
        The folder of the control group, to be removed; empty for none.
    """
    max_tasks: int = plan["processes"]
    if _can_count_apart(plan):
        plan["apart"] = True
        plan["rlimits"]["NPROC"] = [max_tasks, max_tasks]
    elif folder := _control_group(max_tasks):
        plan["group"] = folder
        plan["rlimits"].pop("NPROC", None)
        return folder
    return ""


def _control_group(max_tasks: int) -> str:
    """Create a control group with that task limit; return empty if impossible."""
    if os.geteuid() != 0:
        return ""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
        with open("/proc/self/mounts", encoding="utf-8") as file:
            places = [line.split()[1:4] for line in file]
    except OSError:
        return ""
    for _, controllers, path in groups:
        for place, kind, options in places:
            if controllers:
                fits = kind == "cgroup" and "pids" in controllers.split(",")
                fits = fits and "pids" in options.split(",")
            else:
                fits = kind == "cgroup2"
            folder = f"{place}/{path.strip('/')}/neuraxis-{os.getpid()}"
            if fits and _limited_group(folder, max_tasks):
                return folder
    return ""


def _limited_group(folder: str, max_tasks: int) -> bool:
    try:
        # left by an earlier process with our number
        with suppress(FileExistsError):
            os.mkdir(folder, 0o755)
        _write(f"{folder}/pids.max", str(max_tasks))
    except OSError:
        with suppress(OSError):
            os.rmdir(folder)
        return False
    return True


def limit(values: dict[str, list[int]]) -> None:
    """Set resource limits, never above the current ones."""
    for name, (soft, hard) in values.items():
        kind: int = getattr(resource, f"RLIMIT_{name}", -1)
        if kind < 0:
            continue
        hard_limit = resource.getrlimit(kind)[1]
        if hard_limit != resource.RLIM_INFINITY:
            soft, hard = min(soft, hard_limit), min(hard, hard_limit)
        resource.setrlimit(kind, (soft, hard))


def open_rules(plan: dict[str, Any]) -> int:
    """Create a Landlock rule set and open its folders before confinement."""
    handled = struct.pack(
        {1: "Q", 2: "QQ", 3: "QQQ"}[len(plan["handled"])], *plan["handled"]
    )
    rules = _check(
        _libc.syscall(LANDLOCK_CREATE, handled, ctypes.c_size_t(len(handled)), 0),
        "landlock_create_ruleset",
    )
    for path, rights in plan["rules"]:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        rule = struct.pack("=Qi", rights, place)
        added = _libc.syscall(LANDLOCK_ADD, rules, 1, rule, 0)
        os.close(place)
        _check(added, f"landlock_add_rule for {path}")
    return rules


def filter_calls(program: bytes) -> None:
    """Install the seccomp filter."""
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    holder = ctypes.create_string_buffer(head, len(head))
    _check(
        _libc.prctl(PR_SET_SECCOMP, 2, ctypes.c_void_p(ctypes.addressof(holder)), 0, 0),
        "seccomp",
    )


def confine(plan: dict[str, Any]) -> None:
    """Take every step of the plan, then become the command."""
    rules = open_rules(plan["landlock"]) if "landlock" in plan else -1
    if "mounts" in plan:
        mounts(plan["base"], plan["mounts"])
    if "cwd" in plan:
        os.chdir(plan["cwd"])
    if "group" in plan:
        _write(f"{plan['group']}/cgroup.procs", "0")
    if "uid" in plan:
        become(plan["uid"], bool(plan.get("read_all")))
    if plan.get("apart"):
        count_apart()
    limit(plan.get("rlimits", {}))
    if sys.platform == "linux":
        _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if rules >= 0:
        _check(_libc.syscall(LANDLOCK_RESTRICT, rules, 0), "landlock_restrict_self")
        os.close(rules)
    if "seccomp" in plan:
        filter_calls(bytes.fromhex(plan["seccomp"]))
    os.execve(plan["argv"][0], plan["argv"], plan["env"])


def _descendants() -> list[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    text = file.read()
            except OSError:
                continue
            parent = int(text[text.rfind(b")") + 2 :].split()[1])
            children.setdefault(parent, []).append(int(name))
    descendants: list[int] = []
    pending = [os.getpid()]
    while pending:
        direct = children.get(pending.pop(), [])
        descendants += direct
        pending += direct
    return descendants


def sweep(group: int) -> None:
    """Kill and reap all descendants; orphans are reparented to this process."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, sign)
            for pid in _descendants():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, sign)
        time.sleep(0.002)


def _woken(_signal: int, _frame: object) -> None:
    """Do nothing: a handler exists so that `set_wakeup_fd` reports the signal."""


def supervise(child: int, lifeline: int) -> int:
    """Wait for the child or the runtime's end; kill all processes."""
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    read, write = os.pipe()
    signal.signal(signal.SIGCHLD, _woken)
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    # Open copies here would keep the pipes open after the script has closed them.
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    poll = select.poll()  # `select.select` takes no descriptor above 1023
    for fd in (lifeline, read):
        poll.register(fd, select.POLLIN)
    code = -1
    while code < 0:
        pid, status = 0, 0
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == child:
                    pid, status = ended
                    break
        except ChildProcessError:
            code = FAILED
        if pid:
            code = os.waitstatus_to_exitcode(status)
            code = 128 - code if code < 0 else code
            break
        ready = [fd for fd, _ in poll.poll()]
        if lifeline in ready:
            code = 128 + signal.SIGKILL
        elif ready:
            os.read(read, 512)
    sweep(child)
    return code


def main() -> int:
    """Carry out the plan given as the only argument."""
    plan: dict[str, Any] = json.loads(sys.argv[1])
    status: int = plan["status"]
    lifeline: int = plan.get("lifeline", -1)
    for fd in (status, lifeline):
        if fd >= 0:
            os.set_inheritable(fd, False)
    try:
        if plan.get("supervise"):
            group = ""
            if sys.platform == "linux":
                _prctl(PR_SET_CHILD_SUBREAPER, 1)
                group = bound_tasks(plan)
            child = os.fork()
            if child:
                os.close(status)
                code = supervise(child, lifeline)
                if group:
                    with suppress(OSError):
                        os.rmdir(group)
                return code
            os.setsid()
        confine(plan)
    except (OSError, KeyError, ValueError) as error:
        os.write(status, str(error).encode())
    return FAILED


if __name__ == "__main__":
    os._exit(main())
