"""SIGKILL at random moments: nothing announced is lost, nothing is done twice.

    python benchmarks/kills.py --times 300

Each round runs sessions on one journal (one process, 8 processes or 8 threads), kills
them at a random moment, opens the journal and goes on with each session, whose model
writes the same `once` call again. Printed: lost announcements, effects done twice,
unknown calls that were told, journals that open.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from neuraxis import Context, Policy, Rule, Session, command
from neuraxis.events import NOT_STORED, Event, to_json
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

LAYOUTS = ((1, 1), (8, 1), (1, 8))
"""Processes, and threads in each."""
PROMISED = (
    "model_finished", "call_started", "approval_asked", "approval_answered",
)  # fmt: skip
CALL = '[{"tool": "pay", "amount": 1}]'


def options(folder: Path, replies: list[str]) -> dict[str, Any]:
    """A session that pays, with a question before it."""

    @command(effects="once")
    def pay(amount: int, context: Context) -> str:
        """Pay."""
        with (folder / "effects").open("a") as file:
            file.write(f"{context.session_id}\n")
        time.sleep(0.01)
        return "paid"

    return {
        "model": ScriptedModel(replies),
        "plugins": [pay],
        "workspace": folder / "w",
        "settings": Settings(),
        "policy": Policy(rules=[Rule(verdict="ask", target="pay.*", reason="money")]),
    }


def child(folder: Path, number: int, threads: int) -> None:
    """Run one session in each thread, and say what was announced."""
    journal = open_journal(folder / "journal.db")

    def work(name: str) -> None:
        def watch(event: Event) -> None:
            if event.__class__ not in NOT_STORED:
                line = f"{name} {json.dumps(to_json(event)['type'])}\n"
                os.write(1, line.encode())

        given = options(folder, [CALL, "done"])
        with Session(
            id=name, journal=journal, approve=lambda asked: True, **given
        ) as session:
            session.run_sync("pay", watch)

    names = [f"s{number}-{thread}" for thread in range(threads)]
    workers = [threading.Thread(target=work, args=(name,)) for name in names]
    for worker in workers:
        worker.start()
    os.write(1, b"begun\n")
    for worker in workers:
        worker.join()


def one(folder: Path, layout: tuple[int, int], rng: random.Random) -> Counter[str]:
    """One round of killing and looking."""
    processes, threads = layout
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "--child", str(folder), str(number),
             str(threads)], stdout=subprocess.PIPE, text=True,
        )
        for number in range(processes)
    ]  # fmt: skip
    first = [process.stdout.readline() for process in running if process.stdout]
    time.sleep(rng.random() * 0.6)
    said = list(first)
    for process in running:
        process.send_signal(signal.SIGKILL)
    for process in running:
        said += process.communicate()[0].splitlines()
    announced: Counter[tuple[str, str]] = Counter()
    for line in said:
        name, _, kind = line.strip().partition(" ")
        if kind and json.loads(kind) in PROMISED:
            announced[name, json.loads(kind)] += 1
    return _look(folder, announced)


def _look(folder: Path, announced: Counter[tuple[str, str]]) -> Counter[str]:
    """What the journal holds, and what a second process does."""
    found: Counter[str] = Counter()
    journal = open_journal(folder / "journal.db")
    found["opens"] += 1
    stored: Counter[tuple[str, str]] = Counter()
    for info in journal.sessions():
        for entry in journal.read(info.session):
            stored[info.session, str(to_json(entry.event)["type"])] += 1  # type: ignore[arg-type]
    found["announced"] += announced.total()
    found["lost"] += (announced - stored).total()
    effects = _effects(folder)
    found["lost"] += sum(not stored[name, "call_started"] for name in effects)
    for info in journal.sessions():
        given = options(folder, [CALL, "ok"])
        with Session.open(info.session, journal=journal, **given) as session:
            found["unknown"] += len(session.unknown_calls)
            session.run_sync("go on")
    found["twice"] += sum(count > 1 for count in _effects(folder).values())
    journal.close()
    return found


def _effects(folder: Path) -> Counter[str]:
    file = folder / "effects"
    return Counter(file.read_text().split() if file.exists() else [])


def kills(times: int, seed: int = 1) -> Counter[str]:
    """So many rounds; what was found in all of them."""
    rng, found = random.Random(seed), Counter[str]()
    for turn in range(times):
        with tempfile.TemporaryDirectory() as folder:
            found += one(Path(folder), LAYOUTS[turn % len(LAYOUTS)], rng)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--times", type=int, default=300)
        parser.add_argument("--seed", type=int, default=1)
        given = parser.parse_args()
        found = kills(given.times, given.seed)
        names = ("opens", "announced", "lost", "twice", "unknown")
        print(f"kills {given.times}", *[f"{name} {found[name]}" for name in names])
