"""A thousand commands: registered, shown to a model, and shown again in the next turn.

    python benchmarks/many_tools.py [--count 1000]

CPU time of this process, the least of several attempts; the loop of `FLOOR` takes
10 ms on a machine of its own, and says how much slower this one is just now.
Expected: a thousand registered in at most 50 ms; the prompt built again, and the bytes
of its request, in under 0.1 ms in every dialect; the same bytes each time.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any, TypedDict

from neuraxis import Session, command
from neuraxis.dialects import DIALECTS
from neuraxis.messages import Message
from neuraxis.models.http.settings import Options
from neuraxis.models.openai.request import constant_of, encoded, request_body
from neuraxis.models.scripted import ScriptedModel
from neuraxis.settings import Settings

FLOOR = 200_000
"""Turns of the loop beside which everything is measured."""


class Item(TypedDict):
    sku: str
    amount: int
    price: float
    gift: bool


def functions(count: int) -> list[Callable[..., Any]]:
    """As many functions as they stand in an ordinary module: all hints are texts."""

    def made(number: int) -> Callable[..., Any]:
        def work(customer: str, priority: int, items: list[Item]) -> dict[str, object]:
            return {"customer": customer, "count": len(items)}

        work.__name__ = work.__qualname__ = f"place_order_{number:05d}"
        work.__doc__ = """Place an order for a customer and return its number.

        Args:
            customer: Who orders.
            priority: 1 (low) to 5 (high).
            items: What is ordered.
        """
        return work

    return [made(number) for number in range(count)]


def loop() -> int:
    number = 0
    for index in range(FLOOR):
        number = (number * 31 + index) & 0xFFFF
    return number


def least(work: Callable[[], Any], attempts: int) -> float:
    """Milliseconds of the processor."""
    best = float("inf")
    for _ in range(attempts):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best * 1000


def session(count: int, dialect: str) -> tuple[Session, float]:
    """The session, and the milliseconds that registering its commands took."""
    plain = functions(count)
    gc.collect()
    started = time.process_time()
    marked = [command(function, effects="read", blocking=False) for function in plain]
    made = Session(
        model=ScriptedModel([]), plugins=marked, dialect=dialect, settings=Settings()
    )
    return made, (time.process_time() - started) * 1000


def row(dialect: str, count: int, slower: float) -> str:
    """All that is measured of one dialect."""
    registered = first = float("inf")
    for _ in range(5):
        made, took = session(count, dialect)
        registered = min(registered, took)
        first = min(first, least(made.prompt, 1))
    said = [Message(role="user", content="hello")]
    options = Options()
    known = constant_of(made.prompt())

    def anew() -> bytes:
        return encoded(request_body(made.prompt(said), "m", options))

    def request() -> bytes:
        prompt = made.prompt(said)
        assert known.is_of(prompt)
        return encoded(request_body(prompt, "m", options), known)

    before = anew()
    assert request() == before
    made.close()
    return (
        f"{dialect:<12} {registered:7.1f} ({registered / slower:4.1f}) "
        f"{first:8.1f} ({first / slower:4.0f}) "
        f"{least(lambda: made.prompt(said), 200):8.4f} {least(request, 200):12.4f} "
        f"{least(anew, 20):13.3f} {len(before):9,}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    count = parser.parse_args().count
    session(10, "intents")[0].prompt()  # imports
    floor = least(loop, 20)
    slower = max(1.0, floor / 10)
    print(f"floor {floor:.1f} ms: this machine is {slower:.1f} times slower just now\n")
    print(f"{count} commands, ms of CPU (in brackets: on a machine of its own)")
    print(
        f"{'dialect':<12} {'registered':>14} {'first prompt':>15} {'again':>8} "
        f"{'its request':>12} {'written anew':>13} {'bytes':>9}"
    )
    for dialect in DIALECTS:
        print(row(dialect, count, slower))


if __name__ == "__main__":
    main()
