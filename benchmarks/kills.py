"""SIGKILL at random moments: nothing announced is lost, nothing is done twice.

    python benchmarks/kills.py --times 300

Each round runs sessions on one journal (one process, 8 processes or 8 threads), kills
them at a random moment, goes on with each session in new processes, which are killed
too, and at last lets them end. A person says yes to every question, and the model
writes its `once` call until it is told that this was done, or that nobody knows.
Printed: kills, announcements and how many of them are lost, effects done twice, effects
that were neither done nor told as unknown, unknown ones, journals that open.
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
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuraxis import Context, Options, Policy, Rule, Session, command
from neuraxis.errors import ConfigError
from neuraxis.events import NOT_STORED, Event, to_json
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

LAYOUTS = ((1, 1), (8, 1), (1, 8))
"""Processes, and threads in each."""
PROMISED = (
    "model_finished", "call_started", "approval_asked", "approval_answered",
)  # fmt: skip
NAMES = ("kills", "opens", "announced", "lost", "twice", "undone", "unknown")
CALL = '[{"tool": "pay", "amount": 1}]'


def options(folder: Path) -> dict[str, Any]:
    """A session that pays, with a question before it."""

    def reply(prompt: Any) -> str:
        last = prompt.messages[-1].content
        ended = '"status":"done"' in last or "outcome_unknown" in last
        return "done" if ended else CALL

    @command(effects="once")
    def pay(amount: int, context: Context) -> str:
        """Pay."""
        with (folder / "effects").open("a") as file:
            file.write(f"{context.session_id}\n")
        time.sleep(0.01)
        return "paid"

    return {
        "model": ScriptedModel(reply),
        "plugins": [pay],
        "workspace": folder / "w",
        "settings": Settings(),
        "approve": lambda asked: True,
        "policy": Policy(rules=[Rule(verdict="ask", target="pay.*", reason="money")]),
    }


def child(folder: Path, number: int, threads: int) -> None:
    """Run one session in each thread, or go on with it; say what was announced."""
    journal = open_journal(folder / "journal.db")

    def work(name: str) -> None:
        def watch(event: Event) -> None:
            if event.__class__ not in NOT_STORED:
                line = f"{name} {json.dumps(to_json(event)['type'])}\n"
                os.write(1, line.encode())

        given = options(folder) | {"options": Options(reopen=True)}
        with Session(id=name, journal=journal, **given) as session:
            if not session.history:
                session.run_sync("pay", watch)
                return
            if session.unknown_calls:
                line = f"{session.id}\n".encode()
                with (folder / "unknown").open("ab") as file:
                    file.write(line)
            with suppress(ConfigError):  # it had ended
                session.resume_sync(watch)

    names = [f"s{number}-{thread}" for thread in range(threads)]
    workers = [threading.Thread(target=work, args=(name,)) for name in names]
    for worker in workers:
        worker.start()
    os.write(1, b"begun\n")
    for worker in workers:
        worker.join()


def one(folder: Path, layout: tuple[int, int], rng: random.Random) -> Counter[str]:
    """One round: begun and killed, gone on with and killed, gone on with to the end."""
    found, announced = Counter[str](), Counter[tuple[str, str]]()
    for turn in ("begun", "resumed", "ended"):
        running = [
            subprocess.Popen(
                [sys.executable, __file__, "--child", str(folder), str(number),
                 str(layout[1])], stdout=subprocess.PIPE, text=True,
            )
            for number in range(layout[0])
        ]  # fmt: skip
        said = [process.stdout.readline() for process in running if process.stdout]
        if turn != "ended":
            time.sleep(rng.random() * 0.3)
            for process in running:
                process.send_signal(signal.SIGKILL)
            found["kills"] += len(running)
        for process in running:
            said += process.communicate()[0].splitlines()
            if turn == "ended" and process.returncode:
                raise RuntimeError(f"a process ended with {process.returncode}")
        for line in said:
            name, _, kind = line.strip().partition(" ")
            if kind and json.loads(kind) in PROMISED:
                announced[name, json.loads(kind)] += 1
    return found + _look(folder, announced)


def _look(folder: Path, announced: Counter[tuple[str, str]]) -> Counter[str]:
    """What the journal holds, beside what was announced and done."""
    found: Counter[str] = Counter()
    journal = open_journal(folder / "journal.db")
    found["opens"] += 1
    stored: Counter[tuple[str, str]] = Counter()
    sessions = [info.session for info in journal.sessions()]
    for name in sessions:
        for entry in journal.read(name):
            stored[name, str(to_json(entry.event)["type"])] += 1  # type: ignore[arg-type]
    journal.close()
    found["announced"] += announced.total()
    found["lost"] += (announced - stored).total()
    paid, unknown = _named(folder / "effects"), _named(folder / "unknown")
    found["twice"] += sum(count > 1 for count in paid.values())
    found["undone"] += sum(not paid[name] and not unknown[name] for name in sessions)
    found["unknown"] += len(unknown)
    return found


def _named(file: Path) -> Counter[str]:
    return Counter(file.read_text().split() if file.exists() else [])


def kills(times: int, seed: int = 1) -> Counter[str]:
    """Rounds until there were so many kills; what was found in all of them."""
    rng, found = random.Random(seed), Counter[str]()
    turn = 0
    while found["kills"] < times:
        with tempfile.TemporaryDirectory() as folder:
            found += one(Path(folder), LAYOUTS[turn % len(LAYOUTS)], rng)
        turn += 1
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
        print(*[f"{name} {found[name]}" for name in NAMES])
