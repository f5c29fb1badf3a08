"""Requests in everyday words, for commands without examples; and why not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from neuraxis import Session, command
from neuraxis.models.offline import english, say
from neuraxis.models.offline.catalogue import Catalogue, build
from neuraxis.models.offline.planner import plan
from neuraxis.specs import CommandSpec, Effects, PluginSpec


@command(effects="once")
def send_mail(to: str, body: str, subject: str = "", cc: str = "") -> None:
    """Send an email."""


@command(effects="read")
def search_mail(text: str, sender: str = "") -> list[str]:
    """Search the mailbox.

    Args:
        text: what to look for.
        sender: only messages from this address.
    """
    return []


@command(effects="once")
def invite(person: str) -> None:
    """Invite somebody to the group.

    Args:
        person: name or email address.
    """


@command(effects="none")
def shorten(link: str) -> str:
    """Shorten a link."""
    return ""


@command(effects="once")
def print_document(document: str, copies: int = 1) -> None:
    """Print a document."""


@command(effects="once")
def cancel_event(event_id: str) -> None:
    """Cancel an event.

    Args:
        event_id: its number.
    """


@command(effects="once")
def reserve_seats(cinema: str, seats: int) -> None:
    """Reserve seats in a cinema."""


@command(effects="read")
def forecast(
    city: Annotated[str, "name of the city"], unit: Literal["C", "F"] = "C"
) -> str:
    """Weather forecast of a city."""
    return ""


@command(effects="read")
def leave_balance(employee: str) -> int:
    """Remaining vacation days of an employee."""
    return 0


@command(effects="read")
def balance(account: Literal["checking", "savings"] = "checking") -> float:
    """Current balance of an account in euros."""
    return 0.0


@command(
    effects="once",
    examples=[
        {"q": "Rent the bike Comet for 3 days", "a": {"bike": "Comet", "days": 3}}
    ],
)
def rent_bike(bike: str, days: int) -> None:
    """Rent a bike."""


OWN = [
    send_mail, search_mail, invite, shorten, print_document, cancel_event,
    reserve_seats, forecast, leave_balance, balance, rent_bike,
]  # fmt: skip


@pytest.fixture(scope="module")
def known() -> Catalogue:
    """All of them."""
    with Session("local:", plugins=list(OWN)) as made:
        return build(made.registry.specs, made.registry.tool_names)


def planned(request: str, known: Catalogue) -> list[tuple[str, dict[str, Any]]]:
    steps = plan(request, known).steps
    return [(step.tool.name, dict(step.arguments)) for step in steps]


ADDRESSES: dict[str, tuple[str, dict[str, Any]]] = {
    "Send an email to anna@example.com saying hello": (
        "send_mail", {"to": "anna@example.com", "body": "hello"},
    ),
    'Email bob@corp.example: "Meeting moved"': (
        "send_mail", {"to": "bob@corp.example", "body": "Meeting moved"},
    ),
    "Email ann@x.example saying 'hi', cc bob@y.example": (
        "send_mail", {"to": "ann@x.example", "body": "hi", "cc": "bob@y.example"},
    ),
    "Find mails from paul@studio.example about 'contract'": (
        "search_mail", {"text": "contract", "sender": "paul@studio.example"},
    ),
    "Invite carla@example.org": ("invite", {"person": "carla@example.org"}),
    "Invite Carla to the group": ("invite", {"person": "Carla"}),
    "Shorten https://example.org/a/b?c=d": (
        "shorten", {"link": "https://example.org/a/b?c=d"},
    ),
    "Print 2 copies of docs/report.pdf": (
        "print_document", {"document": "docs/report.pdf", "copies": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("request_", ADDRESSES)
def test_an_address_fills_the_parameter_that_is_for_one(
    known: Catalogue, request_: str
) -> None:
    """By its name or description; no example is needed."""
    assert planned(request_, known) == [ADDRESSES[request_]]


@pytest.mark.parametrize(
    "request_",
    [
        "Send an email to ann@x.example and bob@y.example saying 'hi'",
        "Send an email from ann@x.example saying 'hi'",
        "Send an email about ann@x.example saying 'hi'",
        "Send an email to Anna (anna@example.com) saying 'hi'",
        "Don't email ann@x.example 'hi'",
        "Print the page www.example.org",
        "Invite everyone except carla@example.org",
    ],
)
def test_an_address_fills_no_other_parameter(known: Catalogue, request_: str) -> None:
    """Not the recipient's if it is the sender's, not two at once."""
    assert planned(request_, known) == []


@pytest.mark.parametrize(
    "request_",
    [
        "Should I cancel the event E-104?",
        "Shall we cancel the event E-104?",
        "Should I rent the bike Comet for 3 days?",
        "Ok, should I please cancel event E-104?",
        "What should I do about event E-104?",
    ],
)
def test_who_asks_for_advice_gives_no_order(known: Catalogue, request_: str) -> None:
    """Also in the words of an example; the answer says so."""
    found = plan(request_, known)
    assert found.steps == ()
    assert "asks for advice" in say.declined(found, known)


@pytest.mark.parametrize(
    "when", ["tomorrow", "on Friday", "next week", "tomorrow evening"]
)
def test_a_day_is_no_part_of_a_name(known: Catalogue, when: str) -> None:
    """Neither of what is read nor of what is done."""
    assert planned(f"forecast for Rome {when}", known) == []
    assert planned(f"Reserve 2 seats in the Odeon {when}", known) == []


@pytest.mark.parametrize("noun", ["event", "appointment", "event number"])
def test_a_noun_before_an_id_is_no_part_of_it(known: Catalogue, noun: str) -> None:
    """The command's, another word for it, or the parameter's."""
    asked = f"Cancel the {noun} E-117"
    assert planned(asked, known) == [("cancel_event", {"event_id": "E-117"})]


def test_a_name_keeps_its_s_unless_it_owns_what_follows(known: Catalogue) -> None:
    """ "Joe's" is the name of a cinema; Meyer's vacation is Meyer's."""
    seats = planned("Reserve at Joe's for us 2 seats", known)
    assert seats == [("reserve_seats", {"cinema": "Joe's", "seats": 2})]
    days = planned("What are Meyer's vacation days?", known)
    assert days == [("leave_balance", {"employee": "Meyer"})]


def test_a_command_that_reads_may_be_asked_for_by_its_name(known: Catalogue) -> None:
    """And is meant rather than one that takes an adjective for a name."""
    assert planned("Could you tell me my current balance?", known) == [("balance", {})]


def declined(request: str, known: Catalogue) -> list[str]:
    found = plan(request, known)
    assert found.steps == ()
    return say.declined(found, known).split("\n")


def test_a_decline_offers_the_wording_that_would_fit(known: Catalogue) -> None:
    """Where one word is left over, and nothing is denied."""
    (why, *_) = declined("forecast for Rome tomorrow", known)
    assert "no parameter takes “tomorrow”. I did nothing." in why
    assert why.endswith("Without “tomorrow” I would call forecast(city='Rome').")
    assert "Without" not in declined("Never cancel event E-104", known)[0]
    (why, *_) = declined("Reserve seats in the Odeon", known)
    assert why.endswith("but `seats` is missing. I did nothing.")


def test_a_decline_shows_the_nearest_commands(known: Catalogue) -> None:
    """By an example where there is one, else by their parameters."""
    nearest = "- rent_bike: Rent the bike Comet for 3 days"
    lines = declined("Is there a bike for rent?", known)
    assert lines[1:-2] == ["Nearest:", nearest]
    lines = declined("search my mailbox for invoices", known)
    assert lines[1:3] == ["Nearest:", "- search_mail(text, sender)"]


def test_a_decline_shows_what_can_be_done_where_nothing_is_near(
    known: Catalogue,
) -> None:
    """Three commands, those with examples first."""
    lines = declined("Sing!", known)
    assert lines[1:-2] == [
        "What I can do, for example:",
        "- rent_bike: Rent the bike Comet for 3 days",
        "- send_mail(to, body, subject, cc)",
        "- search_mail(text, sender)",
    ]


def test_the_name_of_a_plugin_is_no_sign_of_one_of_its_commands() -> None:
    """An MCP server called Weather: a prompt was filled in with a city."""
    text: Any = {"type": "object", "properties": {"name": {"type": "string"}}}
    prompts = [
        ("get_prompt", "Fill in one prepared prompt of the server.", ["name"]),
        ("list_prompts", "List the prepared prompts of the server.", []),
    ]
    commands = [
        CommandSpec(
            name=name,
            description=told,
            parameters={**text, "required": required} if required else {},
            effects=Effects(kind="read"),
            tool_name=f"weather.{name}",
        )
        for name, told, required in prompts
    ]
    plugin = PluginSpec(name="weather", title="Weather", commands=tuple(commands))
    known = build((plugin,), {})
    assert plan("What is the weather in Lyon today?", known).steps == ()
    (step,) = plan("Get the prompt 'hello'", known).steps
    assert step.arguments == {"name": "hello"}


def test_an_article_asks_for_no_command(known: Catalogue) -> None:
    """An example that begins with one made every "the" nearly a request for it."""
    assert not english.CLOSED & {head for tool in known.tools for head in tool.heads}


def test_a_decline_is_one_answer_in_plain_words(known: Catalogue) -> None:
    """Its last sentence is no part of the list; several parameters are missing."""
    lines = declined("Rent it", known)
    assert "looks like rent_bike, but `bike` and `days` are missing" in lines[0]
    assert lines[-2] == ""
    assert "offline planner" not in "".join(lines)


@pytest.mark.parametrize("said", ["hello", "hello world", "bananas"])
def test_words_of_an_example_are_not_dropped(tmp_path: Path, said: str) -> None:
    """They were taken for what writing is called, and the file read was written."""
    (tmp_path / "old.md").write_text("mine", encoding="utf-8")
    with Session(
        "local:", plugins=["neuraxis:files", "neuraxis:python_file"], workspace=tmp_path
    ) as session:
        answer = session.run_sync(f"Read old.md and write {said} to new.md")
    assert f"“{said.split()[-1]}”" in answer.text
    assert not (tmp_path / "new.md").exists()
