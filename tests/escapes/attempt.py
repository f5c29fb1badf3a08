"""What an escape attempt is: a small script, and how one sees that it got through."""

from __future__ import annotations

from dataclasses import dataclass

PREAMBLE = """\
import json, os, socket, subprocess, sys, time, ctypes, struct, shutil, stat
W = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "w.json")))
def fired(*what): print("FIRED", *what, flush=True)
def reached(n): print("REACHED", n, flush=True)
libc = ctypes.CDLL(None, use_errno=True)
def syscall(n, *a): return libc.syscall(ctypes.c_long(n), *a)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try to get out.

    `sees` names the oracle, checked outside the sandbox by `runner`:
    `output`: a planted secret, or FIRED, in what it wrote; `target`: its folder outside
    changed; `listener`: its token arrived at a server; `connect`: a server it started
    can be reached; `victim`: a foreign process died or changed; `survivor`: something
    of it lives on, or the call lasted; `amount`: it reached more than `most`;
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
