"""Which sentences around a call leave open whether it is made."""

from __future__ import annotations

import pytest

from call_in_text import read
from neuraxis.dialects import DIALECTS
from neuraxis.dialects.call_context import is_reported, is_step, leads_elsewhere


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "The web page tells its readers to paste this into their assistant:\n\n"
        "```json\nCALL\n```\n\nI have not followed it.",
        "CALL\n\nThis is an injection. I have not followed it.",
        "<think>I called it.</think>First I looked in the list:\n\nCALL",
        "CALL\n\nThe tracker confirmed it.",
        "CALL\n\n`name` is the function.",
        "1. Choose the tool.\n2. Put it into a block:\n\n```json\nCALL\n```\n\n"
        "3. Wait for the answer.",
    ],
)
def test_a_call_that_is_retold_quoted_or_explained_is_told(
    name: str, text: str
) -> None:
    """Neither run nor dropped: the model says which of the two it meant."""
    reply = read(name, text)
    assert not reply.calls
    assert "leave open" in reply.errors[0].message
    assert "begin its lines with >" in reply.errors[0].message


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "text",
    [
        "I looked at the list. Now the query:\n\nCALL\n\nOne moment.",
        "<think>On Monday I wrote:</think>\nCALL",
        "1. The first:\nCALL\n2. The second:\nCALL",
        "CALL\n\nI have called the tool with the query that you gave.",
        "Let me fetch example.com:\n\nCALL",
        "I will look into www.example.org/list for you:\n\nCALL",
        "I read example.csv. There is no such name.\n\nCALL",
    ],
)
def test_a_call_of_now_is_made(name: str, text: str) -> None:
    """Whatever the sentences before the one that leads into it tell."""
    reply = read(name, text)
    assert reply.calls
    assert not reply.errors


@pytest.mark.parametrize(
    "line",
    [
        # in the past
        "I wrote:",
        "On Monday I wrote:",
        "You do it like so:",
        "In Python, you can call it with:",
        "Use this code:",
        "Copy the following into your prompt:",
        "Please run this on your side:",
        "First I closed the ticket:",
        "The ticket was closed by this message, which you sent yesterday:",
        "My previous reply contained this call, and it failed in the end:",
        "To learn more, she wrote:",
        "Last week the assistant answered your question with",
        "Here is the message that you sent yesterday:",
        "During the outage the gateway kept retrying one message:",
        "This is the call that failed yesterday:",
        "Next, the message you sent:",
        # said by others
        "The transcript of your colleague shows one call:",
        "The web page you linked tells its readers to paste the following:",
        "The README says to run:",
        "The mail asks me to run:",
        "Maria wants us to send:",
        'The mail from "support" says you must run:',
        "The page I opened tells any model to run:",
        "The author of the issue wants the agent to execute:",
        "My colleague suggests sending:",
        "The lawyer of the customer demands that I send:",
        "The manual gives this as the usual form:",
        # of calls in general
        "A call looks like this:",
        "Every message to a plugin has this shape:",
        "The general form is:",
        "A function call has two fields:",
        "## How a call is written",
        "Function calls have the form:",
        "Usually, a lookup takes these arguments:",
        "The schema expects something like this:",
        "This is how your assistant would request it:",
        # of what could be
        "Tomorrow, when the sensor is back, I am going to call:",
        "This is what I would send.",
        "Should the price drop, I'd place:",
        "When the manager agrees, I will submit:",
        "Understood. As soon as the money has arrived, I will make this call:",
        # refused
        "I refuse to execute this:",
    ],
)
def test_a_lead_in_of_another_time_voice_or_kind(line: str) -> None:
    """The sentence that leads into the call decides."""
    assert leads_elsewhere(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "tools call:",
        "1. Factorial of 5:",
        "Export the orders to a file:",
        "Address the first task:",
        "Here are the function calls to address the tasks you described:",
        "The function call to solve this question is:",
        "The function call would look like this:",
        "This closes the ticket:",
        "The last call failed, so I try again:",
        "I wrote the file; next I run it:",
        "I checked the list. The number is known, let me close it:",
        "The last call failed because the number was missing. Trying again with it:",
        "I need the list that was written this morning:",
        "The user confirmed that the draft is fine.",
        "Please allow me to look:",
        "As you said:",
        "To send the letter that was drafted this morning:",
        "Checking the sensor in the south, which reported 30 degrees an hour ago:",
        # the past of another clause, or of none
        "Understood:",
        "Got it, searching now:",
        "Sure! Fetching the orders you placed:",
        "The file was found, reading it:",
        "I found the user, fetching the orders:",
        "Retrying with the ID it gave me:",
        "Next, read the config you mentioned:",
        "Step 2: find the customer who placed the order",
        "Thought: I found the right tool",
        "I found it",
        "Find the orders made in March:",
        "Now we embed the text:",
        "Ich sehe mir an, was der Server geantwortet hat:",
        # what the user asks for, and what that needs
        "The user wants to know the weather:",
        "The user asked me to look it up:",
        "You asked for the weather:",
        "Your question requires a lookup:",
        "The API expects the city as text:",
    ],
)
def test_a_lead_in_of_the_call_itself(line: str) -> None:
    """Labels, plans, and what the model does now."""
    assert not leads_elsewhere(line)


@pytest.mark.parametrize(
    ("rest", "is_told"),
    [
        ("It was made at 10:32, and the parcel left at noon.", True),
        ("That call failed, because the account is locked.", True),
        ("- `tool` is the name of the tool.", True),
        ("I did not run it.", True),
        ("Please ignore the block above.", True),
        ("That's what the page wanted me to send.", True),
        ("I don't have that information myself, so I look it up.", False),
        ("I do not know what the current price is.", False),
        ("The tool returns the temperature in Celsius.", False),
        ("The name is taken from your message.", False),
        ("This assumed the metric system.", False),
        ("This will return the name of the scientist who is credited.", False),
        ("The theory of relativity was invented by Albert Einstein.", False),
        ("Note: I assumed that the year is not required.", False),
        ("I have booked your tickets as requested.", False),
        ("The `unit` is optional.", False),
    ],
)
def test_words_behind_a_call(rest: str, is_told: bool) -> None:
    """A report, a denial or an explanation of its form; hopes and notes are none."""
    assert is_reported(rest) is is_told


def test_a_step_between_steps() -> None:
    """The numbers go on behind the call."""
    assert is_step("**Step 2.** Write it:", "**Step 3.** Read the output.")
    assert not is_step("2. Write it:", "4. Read the output.")
    assert not is_step("Write it:", "1. Read the output.")
