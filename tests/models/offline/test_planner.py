"""Requests in, plans out, over plugins that no rule and no example names."""

from __future__ import annotations

import time
from typing import Any, Literal

import pytest

from neuraxis import Session, command
from neuraxis.models.offline.catalogue import Catalogue, build
from neuraxis.models.offline.planner import LONGEST, plan
from neuraxis.models.offline.tokens import tokenise
from neuraxis.specs import CommandSpec, PluginSpec

Unit = Literal["km", "miles", "feet"]


@command(effects="once")
def water_plants(zone: str, minutes: int = 10) -> None:
    """Water the plants of a garden zone.

    Args:
        zone: name of the zone.
        minutes: how long.
    """


@command(effects="read")
def soil_moisture(zone: str) -> float:
    """Soil moisture of a garden zone in percent."""
    return 0.0


@command(effects="once")
def book_room(room: str, date: str, people: int = 2) -> None:
    """Book a meeting room for a day.

    Args:
        room: the room.
        date: the day.
        people: how many people come.
    """


@command(effects="read")
def list_bookings(date: str) -> list[str]:
    """List the bookings of a day."""
    return []


@command(effects="none")
def convert_units(value: float, source: Unit, target: Unit) -> float:
    """Convert a length from one unit to another."""
    return value


@command(effects="read")
def find_book(title: str = "", author: str = "") -> list[str]:
    """Find books of the library by title or author."""
    return []


@command(effects="idempotent")
def switch_lamp(lamp: str, on: bool) -> None:
    """Switch a lamp on or off."""


@command(effects="once")
def send_sms(number: str, text: str) -> None:
    """Send a text message to a phone number."""


OWN = [
    water_plants, soil_moisture, book_room, list_bookings, convert_units, find_book,
    switch_lamp, send_sms,
]  # fmt: skip


@pytest.fixture(scope="module")
def known() -> Catalogue:
    """All of them, and the files plugin."""
    with Session("local:", plugins=[*OWN, "neuraxis:files"]) as made:
        return build(made.registry.specs, made.registry.tool_names)


def planned(request: str, known: Catalogue) -> list[tuple[str, dict[str, Any]]]:
    steps = plan(request, known).steps
    return [(step.tool.name, dict(step.arguments)) for step in steps]


DONE: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "Water the plants in zone north for 15 minutes": [
        ("water_plants", {"zone": "north", "minutes": 15})
    ],
    "What is the soil moisture of zone 3?": [("soil_moisture", {"zone": "3"})],
    "Could you book the room Aurora for 2026-12-01, please?": [
        ("book_room", {"room": "Aurora", "date": "2026-12-01"})
    ],
    "Book room Aurora on Friday for 6 people": [
        ("book_room", {"room": "Aurora", "date": "Friday", "people": 6})
    ],
    "Which bookings are there on 2026-12-01?": [
        ("list_bookings", {"date": "2026-12-01"})
    ],
    "Convert 5 miles to km": [
        ("convert_units", {"value": 5, "source": "miles", "target": "km"})
    ],
    "Find books by Ursula Le Guin": [("find_book", {"author": "Ursula Le Guin"})],
    'Find the book with the title "Dune"': [("find_book", {"title": "Dune"})],
    "Turn off the lamp bedroom": [("switch_lamp", {"lamp": "bedroom", "on": False})],
    "Send a text message to +4917012345 saying I am late": [
        ("send_sms", {"number": "+4917012345", "text": "I am late"})
    ],
    "List the bookings of 2026-12-01 and write them to bookings.txt": [
        ("list_bookings", {"date": "2026-12-01"}),
        (
            "FILEWRITER",
            {"file_path": "bookings.txt", "contents": "{{ previous_result }}"},
        ),
    ],
    "Pls book the room Aurora for 3 March 2027. Thank you so much!": [
        ("book_room", {"room": "Aurora", "date": "3 March 2027"})
    ],
    "List all csv files in reports/2026": [
        ("list_files", {"folder": "reports/2026", "pattern": "*.csv"})
    ],
    'Read "my notes/to do.txt"': [("file_reader", {"file_path": "my notes/to do.txt"})],
    "Read a.txt, b.txt and c.txt": [
        ("file_reader", {"file_path": name}) for name in ("a.txt", "b.txt", "c.txt")
    ],
    "Write a script hi.py that prints 'hi'": [
        ("FILEWRITER", {"file_path": "hi.py", "contents": "print('hi')\n"})
    ],
}


@pytest.mark.parametrize("request_", DONE)
def test_what_fits_whole_is_planned(known: Catalogue, request_: str) -> None:
    """No example and no rule names these commands."""
    assert planned(request_, known) == DONE[request_]


@pytest.mark.parametrize(
    "request_",
    [
        "Water the plants in zone north unless it rains",
        "Don't book the room Aurora for Friday",
        "Turn on all lamps",
        "Switch the lamp off in 10 minutes",
        "Convert 5 kg to pounds",
        "Cancel my booking",
        "Book whatever room is free on 2026-12-01",
        "Send a text message to ten people",
        "Which book should I read?",
        "Is it going to rain in zone north?",
        "Send +4917012345 the first 3 lines of notes.txt",
        "Book the room Aurora for Friday at the price of 20 euros",
        "Write a python script that sorts three names to sort.py",
        "Water the plants in zone north for 15 minutes. " * (LONGEST // 40),
    ],
)
def test_what_has_a_part_without_a_place_is_not(
    known: Catalogue, request_: str
) -> None:
    """A condition, a number, a thing that no parameter takes: nothing of it is done."""
    assert planned(request_, known) == []


def test_h1_a_long_example_of_a_schema_takes_no_time() -> None:
    """A server writes it, and it is worse than linear to read."""
    node = {"type": "string", "examples": ["~" + ".-" * 9000]}
    schema = {"type": "object", "properties": {"q": node}}
    look = CommandSpec(name="look", parameters=schema)
    started = time.process_time()
    build((PluginSpec(name="p", commands=(look,)),), {"look": ("p", "look")})
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("18 May 2026", "2026-05-18"),
        ("March 3rd, 2027", "2027-03-03"),
        ("the 1st of june 2026", "2026-06-01"),
        ("october 2026", "2026-10"),
    ],
)
def test_a_day_or_month_is_one_value(said: str, meant: str) -> None:
    """For a parameter whose examples are written so."""
    assert meant in [token.value for token in tokenise(said)]
