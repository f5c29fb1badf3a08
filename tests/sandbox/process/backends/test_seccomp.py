"""The system call filter, by a small interpreter of its programs: no kernel needed."""

from __future__ import annotations

import struct

import pytest

from neuraxis.sandbox.process.backends import seccomp
from neuraxis.sandbox.process.job import CannotStart

ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, ERRNO = "allow", "kill", "errno"


def judge(
    program: bytes, arch: int, number: int, arguments: tuple[int, ...] = ()
) -> tuple[str, int]:
    """What the kernel would do with the call."""
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("<IIQ6Q", number, arch, 0, *(a & (1 << 64) - 1 for a in padded))
    steps = [
        struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)
    ]
    value, at = 0, 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, k)
        elif code == 0x54:
            value &= k
        elif code in (0x15, 0x45, 0x35):
            hit = {0x15: value == k, 0x45: bool(value & k), 0x35: value >= k}[code]
            at += yes if hit else no
        elif code == 0x06:
            kind = {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(k, ERRNO)
            return kind, k & 0xFFFF if kind == ERRNO else 0
        else:
            raise AssertionError(f"unknown step {code:#x}")


CALLS = {  # name: (x86_64, aarch64)
    "read": (0, 63),
    "execve": (59, 221),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "clone3": (435, 435),
    "ptrace": (101, 117),
    "unshare": (272, 97),
    "mount": (165, 40),
    "setsid": (112, 157),
    "kill": (62, 129),
    "fchmod": (91, 52),
    "openat": (257, 56),
    "prlimit64": (302, 261),
    "bpf": (321, 280),
    "ioctl": (16, 29),
    "personality": (135, 92),
    "truncate": (76, 45),
    "fchmodat2": (452, 452),
}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
class TestProgram:
    """The same decisions on both machines."""

    def _judge(
        self, machine: str, name: str, *arguments: int, **options: bool
    ) -> tuple[str, int]:
        given = {"private": True, **options}
        program = seccomp.program(machine, **given)
        number = CALLS[name][0 if machine == "x86_64" else 1]
        return judge(program, ARCH[machine], number, arguments)

    def test_ordinary_calls_pass(self, machine: str) -> None:
        """What every program does is not looked at."""
        for name in ("read", "execve"):
            assert self._judge(machine, name) == (ALLOW, 0)
        assert self._judge(machine, "clone", 0x3D0F00) == (ALLOW, 0)
        assert self._judge(machine, "openat", 0, 0, 0o101, 0o644) == (ALLOW, 0)
        assert self._judge(machine, "ioctl", 0, 0x5401) == (ALLOW, 0)

    def test_rare_calls_are_refused(self, machine: str) -> None:
        """Kernel interfaces that no script needs."""
        for name in ("ptrace", "unshare", "mount", "bpf"):
            for private in (True, False):
                assert self._judge(machine, name, private=private) == (ERRNO, 1)

    def test_other_architectures_end_the_process(self, machine: str) -> None:
        """int 0x80, x32 and numbers unknown when the list was made."""
        program = seccomp.program(machine, private=True)
        for arch in (0x40000003, 0x40000028, 0):
            assert judge(program, arch, 1) == (KILL, 0)
        assert judge(program, ARCH[machine], 0x40000029) == (KILL, 0)
        assert judge(program, ARCH[machine], 470) == (ERRNO, 38)

    def test_namespaces_are_refused(self, machine: str) -> None:
        """By clone's flags; clone3 is said not to exist."""
        for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x2000000):
            assert self._judge(machine, "clone", flag | 17) == (ERRNO, 1)
        assert self._judge(machine, "clone3") == (ERRNO, 38)

    def test_sockets(self, machine: str) -> None:
        """Own network: three families. None: not one, and only connected pairs."""
        for family in (1, 2, 10):
            assert self._judge(machine, "socket", family, 1) == (ALLOW, 0)
            assert self._judge(machine, "socket", family, private=False) == (ERRNO, 97)
        for family in (16, 17, 38, 40):
            assert self._judge(machine, "socket", family, 3) == (ERRNO, 97)
        assert self._judge(machine, "socket", 1, sockets=False) == (ERRNO, 97)
        assert self._judge(machine, "socket", 2, sockets=False) == (ALLOW, 0)
        online = {"private": False, "network": True}
        assert self._judge(machine, "socket", 2, 1, **online) == (ALLOW, 0)
        assert self._judge(machine, "socket", 1, 1, **online) == (ERRNO, 97)
        assert self._judge(machine, "socketpair", 1, 1, private=False) == (ALLOW, 0)
        assert self._judge(machine, "socketpair", 1, 0x80801, private=False) == (
            ALLOW,
            0,
        )
        for kind in (2, 5, 0x80802):
            assert self._judge(machine, "socketpair", 1, kind, private=False) == (
                ERRNO,
                1,
            )
        assert self._judge(machine, "socketpair", 2, 1) == (ERRNO, 97)

    def test_files_that_run_as_another(self, machine: str) -> None:
        """By mode bits, where a call makes or changes a file."""
        assert self._judge(machine, "fchmod", 3, 0o755) == (ALLOW, 0)
        for mode in (0o4755, 0o2755):
            assert self._judge(machine, "fchmod", 3, mode) == (ERRNO, 1)
            assert self._judge(machine, "openat", 0, 0, 0o101, mode) == (ERRNO, 1)
            assert self._judge(machine, "openat", 0, 0, 0, mode) == (ALLOW, 0)

    def test_without_namespaces(self, machine: str) -> None:
        """Modes and times are faked; groups and others' settings are refused."""
        shared = {"private": False}
        assert self._judge(machine, "fchmod", 3, 0o755, **shared) == (ERRNO, 0)
        assert self._judge(machine, "fchmodat2", **shared) == (ERRNO, 0)
        assert self._judge(machine, "setsid", **shared) == (ERRNO, 1)
        assert self._judge(machine, "setsid") == (ALLOW, 0)
        assert self._judge(machine, "prlimit64", 0, **shared) == (ALLOW, 0)
        assert self._judge(machine, "prlimit64", 77, **shared) == (ERRNO, 1)
        assert self._judge(machine, "kill", 77, 9, **shared) == (ALLOW, 0)
        older = {"private": False, "signals": False, "truncate": False}
        assert self._judge(machine, "kill", 77, 9, **older) == (ERRNO, 1)
        assert self._judge(machine, "truncate", **older) == (ERRNO, 1)

    def test_terminal_input_and_personality(self, machine: str) -> None:
        """A character cannot be pushed into a terminal; layouts stay random."""
        assert self._judge(machine, "ioctl", 0, 0x5412) == (ERRNO, 1)
        assert self._judge(machine, "personality", 0xFFFFFFFF) == (ALLOW, 0)
        assert self._judge(machine, "personality", 0x40000) == (ERRNO, 1)


def test_an_unknown_machine_is_refused() -> None:
    """No filter, no run."""
    with pytest.raises(CannotStart, match="riscv64"):
        seccomp.program("riscv64", private=True)
