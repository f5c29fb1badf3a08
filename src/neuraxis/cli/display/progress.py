"""Show the progress of a run on the terminal.

Progress goes to standard error, the answer to standard output, so that a pipe gets the
answer alone. On a terminal the running step has a spinner and its time; elsewhere each
finished step is one plain line.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast

from neuraxis.call_errors.checking import for_person
from neuraxis.cli.display.markdown import complete_blocks, print_markdown
from neuraxis.cli.display.text import console, folded, inert, one_line, seconds, short
from neuraxis.events import (
    ApprovalAnswered,
    ApprovalAsked,
    AssetStored,
    BudgetReached,
    CallFinished,
    CallProgress,
    CallStarted,
    Event,
    Inside,
    ModelChunk,
    ModelFinished,
    ModelStarted,
    PlanChecked,
    SessionFinished,
    innermost,
    to_json,
)
from neuraxis.prose import Prose
from neuraxis.specs import Json

if TYPE_CHECKING:
    from rich.status import Status

_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "yellow")}
_BESIDE = ("success", "sandbox")
"""Result fields that are not repeated: shown by the step's mark or `doctor`."""
_LINES = 12
"""Maximum lines shown of a command's output; the journal has all."""


class Live:
    """Live progress display: a callable for events, with `close` at the end.

    Args:
        aloud: show the model's prose on standard output while it streams, block by
            block.
        results: show each command's result.
    """

    def __init__(self, *, aloud: bool = False, results: bool = True) -> None:
        self._aloud = aloud
        self._results = results
        self._words = Prose()
        self.printed = ""
        """The text of the last reply that was printed to standard output."""
        self._prose = ""
        """The text of it that may be printed so far."""
        self._console = console()
        self._status: Status | None = None
        self._running: dict[str, tuple[str, float]] = {}
        self._written = 0
        self._number: dict[str, int] = {}
        self._kept: dict[str, str] = {}
        """Kinds of the stored results whose steps have not ended yet, by call."""
        self.reply = ""
        """The model's last reply, with its references."""
        self._questions: set[tuple[str, str]] = set()
        """Unanswered questions, by session and call."""
        self._later: list[tuple[str, str]] = []
        """Lines that arrived while a question was open."""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case ModelStarted() if event.again:
                self._words(event)
                self._written = 0
                self._spin(f"{event.model} is thinking")
            case ModelStarted():
                self._end_prose()
                self._written = 0
                self._words(event)
                self.printed = self._prose = ""
                self._spin(f"{event.model} is thinking")
            case ModelChunk():
                self._chunk(event)
            case ModelFinished():
                self.reply = event.text
                for note in event.notes:
                    self._print(f"  {note}", "dim")
            case PlanChecked():
                self._plan(event)
            case CallStarted():
                self._running[event.id] = (self._line(event), time.perf_counter())
                self._spin(self._running_text())
            case CallProgress():
                self._spin(f"{self._running_text()}  {event.message}")
            case CallFinished():
                self._finished(event)
            case AssetStored():
                self._kept[event.id] = event.kind
            case BudgetReached():
                text = f"limit reached: {event.what} (at most {event.limit:g})"
                self._print(text, "yellow")
            case Inside():
                self._inside(event.session, innermost(event.event))
            case ApprovalAsked() | ApprovalAnswered() | SessionFinished():
                self._inside("", to_json(event))
            case _:
                pass

    def _chunk(self, event: ModelChunk) -> None:
        if event.note:
            self._spin(event.note)
        if not (event.text or event.reasoning):
            return
        self._written += len(event.text) + len(event.reasoning)
        tail = inert(" ".join((event.text or event.reasoning).split()))[-40:]
        tail_text = "" if self._speak(event) else f" {tail}"
        self._spin(f"the model is writing ({self._written} characters){tail_text}")

    def _speak(self, event: ModelChunk) -> bool:
        """Show complete blocks of prose, but no calls."""
        self._words(event)
        if not self._aloud or not self._words.said:
            return False
        self._prose = inert(self._words.said)
        if not self._prose.startswith(self.printed):
            self.printed = ""  # the reply broke off and was repeated in other words
        end = len(self.printed) + complete_blocks(self._prose[len(self.printed) :])
        if end > len(self.printed):
            self._show_prose(end)
        return True

    def _show_prose(self, end: int) -> None:
        new, self.printed = self._prose[len(self.printed) : end], self._prose[:end]
        self._stop()
        if new.strip():
            print_markdown(new, after=bool(self.printed[: -len(new)].strip()))

    def _plan(self, event: PlanChecked) -> None:
        self._end_prose()
        for problem in event.problems:
            message = for_person(str(problem.get("message", "")))
            self._print(f"  ✗ {message}", "red")
        if event.problems:
            return
        many = len(event.steps)
        self.number(str(step["id"]) for step in event.steps)
        if many > 1:
            self._print(f"plan: {many} steps, valid", "bold")

    def number(self, calls: Iterable[str]) -> None:
        """Number the steps of a plan by their ids."""
        self._number = {call_id: place for place, call_id in enumerate(calls, 1)}

    def _line(self, event: CallStarted) -> str:
        given: Json = event.arguments if event.shown is None else event.shown
        if isinstance(given, dict):
            arguments = cast("dict[str, Json]", given)
            text = " ".join(
                f"{one_line(key)}={short(arguments[key])}" for key in arguments
            )
        else:
            text = short(given)
        return f"{self._place(event)} {one_line(event.tool)} {text}".rstrip()

    def _place(self, event: CallStarted | CallFinished) -> str:
        """Return `2.`, or `2.14` for an item of the second step.

        An earlier call that is approved now has its id: `a1:`.
        """
        if not event.part_of:
            place = self._number.get(event.id) if self._number else 1
            return f"{event.id}:" if place is None else f"{place}."
        item = event.id.removeprefix(event.part_of)
        return f"{self._number.get(event.part_of, 1)}{one_line(item)}"

    def _running_text(self) -> str:
        return "  ".join(text for text, _ in self._running.values()) or "working"

    def _finished(self, event: CallFinished) -> None:
        default = (f"{self._place(event)} {one_line(event.tool)}", 0.0)
        ran_early = event.status == "skipped" and event.id in self._running
        text, _ = self._running.pop(event.id, default)
        mark, style = _MARKS[event.status]
        took = "" if event.status == "skipped" else f"  {seconds(event.seconds)}"
        if ran_early:
            took = "  discarded, since an earlier step failed"
        self._print(f"  {mark} {text}{took}", style)
        if event.status == "failed" and event.error:
            self._block(for_person(str(event.error.get("message", ""))), "red")
        elif event.status == "done" and event.asset is None and self._results:
            self._block(said(event.value), "")
        kind = self._kept.pop(event.id, "")
        if event.asset is not None and self._results:
            self._print(f"      kept as asset {event.asset} ({kind})", "dim")
        for warning in event.warnings:
            self._block(f"note: {warning}", "yellow")
        if self._running:
            self._spin(self._running_text())

    def _asks(self, session: str, call: str) -> None:
        """Stop the spinner for a question, until it is answered."""
        self._end_prose()
        self._questions.add((session, call))

    def _answered(self, session: str, call: str = "") -> None:
        """Resume the display after the answer to a question."""
        answered = (session, call)[: bool(session or call) + bool(call)]
        self._questions = {
            question
            for question in self._questions
            if question[: len(answered)] != answered
        }
        if not self._questions:
            later, self._later = self._later, []
            for text, style in later:
                self._print(text, style)

    def _inside(self, session: str, event: Mapping[str, Json]) -> None:
        """Show a nested agent's question or step; `session` is its own."""
        tool, call = one_line(str(event.get("tool"))), str(event.get("id"))
        match event.get("type"):
            case "approval_asked":
                self._asks(session, call)
            case "approval_answered":
                self._answered(session, call)
            case "session_finished":
                self._answered(session)
                if not session and event["outcome"] != "answered":
                    self._end_prose()  # The error is shown next.
            case "call_started":
                self._spin(f"{self._running_text()}  {tool}")
            case "call_finished":
                mark, _ = _MARKS[str(event["status"])]
                self._print(f"      {mark} {tool}", "dim")
            case _:
                pass

    def _block(self, text: str, style: str) -> None:
        lines = inert(text).rstrip().splitlines()
        most = 200 if style == "" else 2_000  # advice stands at the end of an error
        for line in lines[:_LINES]:
            self._print(f"      {line[:most]}", style or "dim")
        if len(lines) > _LINES:
            self._print(f"      … {len(lines) - _LINES} more lines", "dim")

    def _print(self, text: str, style: str) -> None:
        if self._questions:
            self._later.append((text, style))
            return
        from rich.text import Text

        self._stop()
        text = inert(text)
        if self._console.is_terminal:  # in a file lines are not folded
            text = "\n".join(folded(text, self._console.width))
        self._console.print(Text(text, style=style), soft_wrap=True)

    def _spin(self, text: str) -> None:
        if self._questions or not self._console.is_terminal:
            return
        from rich.text import Text

        text = one_line(text)
        width = max(20, self._console.width - 6)
        line = Text(text if len(text) <= width else text[: width - 1] + "…")
        if self._status is None:
            self._status = self._console.status(line)
            self._status.start()
            self._console.show_cursor(True)  # after Ctrl-Z the shell needs it
        else:
            self._status.update(line)

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _end_prose(self) -> None:
        """Show the rest of the prose."""
        self._stop()
        if len(self._prose.rstrip()) > len(self.printed):
            self._show_prose(len(self._prose.rstrip()))

    def close(self) -> None:
        """Remove the spinner."""
        self._stop()


def said(value: Json) -> str:
    """Return the readable form of a result: its text, else its JSON."""
    if isinstance(value, dict) and value:
        fields = cast("dict[str, Json]", value)
        other_fields = {key: item for key, item in fields.items() if key not in _BESIDE}
        if len(other_fields) == 1:
            (only,) = other_fields.values()
            return only if isinstance(only, str) else short(only, 200)
        return short(other_fields, 200) if other_fields else ""
    return value if isinstance(value, str) else short(value, 200)
