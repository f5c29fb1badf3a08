"""SIGKILL while a yes is awaited, given and used: the call is done at most once.

    python benchmarks/waiting_kills.py --times 100

Each round: a run asks and waits, a person approves with an edited argument, the run
goes on; each of these in a process of its own that is killed at a random moment, again
and again until the request has an end. Printed: calls done twice, done with another
argument, lost (neither done nor told as unknown), without an end, told as unknown.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from neuraxis import Options, Policy, Rule, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

MOST_STEPS = 100
"""Of a round; three in ten are not killed, and two of these end it."""

CALLS = '[{"tool": "note"}, {"tool": "pay", "amount": 9}]'


def step(folder: Path) -> bool:
    """Take the session as far as it goes; return whether its request has an end."""

    def do(what: str) -> str:
        with (folder / "done").open("a") as file:
            file.write(f"{what}\n")
        return what

    @command(effects="once")
    def note() -> str:
        """Note it."""
        return do("note")

    @command(effects="once")
    def pay(amount: int) -> str:
        """Pay."""
        return do(f"pay {amount}")

    def reply(prompt: Any) -> str:
        asked = any("RESULTS" in item.content for item in prompt.messages[1:])
        return "ok" if asked else CALLS

    with Session(
        ScriptedModel(reply),
        plugins=[note, pay],
        id="s",
        journal=folder / "j.db",
        workspace=folder,
        policy=Policy(rules=[Rule(verdict="ask", target="*.pay", reason="money")]),
        approve="later",
        options=Options(reopen=True),
        settings=Settings(),
    ) as session:
        for question in session.pending():
            session.approve(question.id, amount=5)
        if not session.history:
            return session.run_sync("pay").outcome == "answered"
        unknown = ",".join(call.command for call in session.unknown_calls)
        (folder / "unknown").open("a").write(unknown)
        try:
            return session.resume_sync().outcome == "answered"
        except Exception as error:  # noqa: BLE001 - nothing was cut off: it has ended
            return "no request" in str(error)


def one(folder: Path, rng: random.Random) -> Counter[str]:
    """One round of killing, until the request has an end."""
    found: Counter[str] = Counter(rounds=1)
    for _ in range(MOST_STEPS):
        child = os.fork()
        if not child:
            os._exit(0 if step(folder) else 3)
        if rng.random() < 0.7:
            time.sleep(rng.random() * 0.12)
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            found["kills"] += 1
        elif os.WEXITSTATUS(status) == 0:
            break
        elif os.WEXITSTATUS(status) != 3:
            raise RuntimeError(f"a step ended with {status}")
    else:
        found["endless"] += 1
    read = [folder / name for name in ("done", "unknown")]
    done, unknown = (path.read_text() if path.exists() else "" for path in read)
    times = Counter(line.split()[0] for line in done.splitlines())
    found["twice"] += sum(count > 1 for count in times.values())
    found["wrong"] += "pay 9" in done
    found["lost"] += not times["pay"] and not unknown
    found["unknown"] += bool(unknown)
    found["done"] += times["pay"]
    return found


def waiting_kills(times: int, seed: int = 1) -> Counter[str]:
    """Until there were so many kills; what was found in all of them."""
    rng, found = random.Random(seed), Counter[str]()
    while found["kills"] < times:
        with tempfile.TemporaryDirectory() as folder:
            found += one(Path(folder), rng)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    print(dict(waiting_kills(chosen.times, chosen.seed)))
