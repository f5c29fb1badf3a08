"""What an escape attempt is: a small script, and how one sees that it got through."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MODULES = ("ctypes", "shutil", "socket", "struct", "subprocess", "sys", "time")
# A line in one write: unbuffered, `print` makes several, and those of processes that
# run side by side become one number ("11" and "19" were once seen as 1119).
_NAMES = """\
def line(*what): os.write(1, (" ".join(map(str, what)) + "\\n").encode())
def fired(*what): line("FIRED", *what)
def reached(n): line("REACHED", n)
"""
_LIBC = """\
libc = ctypes.CDLL(None, use_errno=True)
def syscall(n, *a): return libc.syscall(ctypes.c_long(n), *a)
"""


def whole(script: str, told: dict[str, Any]) -> str:
    """The script with the names it uses; only those, since importing takes time."""
    low = any(word in script for word in ("libc.", "syscall(", "ctypes."))
    used = [name for name in _MODULES if f"{name}." in script]
    imports = ", ".join(dict.fromkeys(["os", *used, *(["ctypes"] if low else [])]))
    return f"import {imports}\nW = {told!r}\n{_NAMES}{_LIBC if low else ''}{script}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to get out.

    `sees` names the oracle, checked outside the sandbox by `runner`:
    `output`: a planted secret, or FIRED, in what it wrote; `target`: its folder outside
    changed; `listener`: its token arrived at a server; `connect`: a server it started
    can be reached; `victim`: a foreign process died or changed; `survivor`: a process
    with its mark in the command line lives on, or the call lasted; `amount`: it said
    that it reached more than `most`; `stopped`: it did, and nothing had stopped it for
    that (only the watchdog can, which a busy machine delays);
    `born`: more than `most` bytes stand in `n`, one for each process or thread that it
    made, none of which ends by itself: as many lived at once, however slowly they came;
    `workspace`: it made what others obey.
    """

    name: str
    group: str
    script: str
    sees: str = "output"
    high: bool = True
    """False: a leak of little worth (that a file exists, how large it is)."""
    most: float = 0


def attempts(
    group: str, *rows: tuple[str, str, str] | tuple[str, str]
) -> list[Attempt]:
    """Attempts of one group, from (name, script) or (name, script, oracle)."""
    return [
        Attempt(
            name=row[0],
            group=group,
            script=row[1],
            sees=row[2] if len(row) > 2 else "output",
        )
        for row in rows
    ]
