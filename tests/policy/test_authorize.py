"""What the default decides, and the ways out that it names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Context, Effects, Policy, Rule, Session, command
from neuraxis.events import CallStarted, Event
from neuraxis.messages import Result
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import DEFAULT

KINDS = (
    Effects(kind="none"),
    Effects(kind="read", declared=True),
    Effects(kind="read", declared=True, open_world=True),
    Effects(kind="once", declared=True, open_world=True),
    Effects(kind="once", declared=True, destructive=True),
    Effects(kind="idempotent"),
    Effects(kind="once", needs_approval=True),
)


def _events(policy: Policy, first: Effects, second: Effects, link: str) -> list[Any]:
    """What became of a chain of two commands with these effects, and its origins."""

    @command(effects=first, blocking=False)
    def look(place: str) -> dict[str, str]:
        """Looks."""
        return {"text": f"at {place}", "id": "n1"}

    @command(effects=second, blocking=False)
    def use(text: str) -> str:
        """Uses a text."""
        return f"used {text}"

    block = (
        '<!-- RESPONSE_START -->\n[{"tool": "look", "place": "home"}, '
        f'{{"tool": "use", "text": "{link}"}}, '
        '{"tool": "use", "text": "{{ previous_result }}"}]\n<!-- RESPONSE_END -->'
    )
    seen: list[Event] = []
    model = ScriptedModel([block, "done"])
    with Session(model=model, plugins=[look, use], policy=policy) as session:
        answer = asyncio.run(session.drive("look at home", seen.append))
        origins = session.origins
        return [
            [(call.status, call.value, call.error) for call in answer.calls],
            [event.origins for event in seen if isinstance(event, CallStarted)],
            (origins.results, origins.vouched),
            (origins.read, origins.private),
        ]


@pytest.mark.parametrize("link", ["{{ previous_result.text }}", "of {{ results[0] }}"])
@pytest.mark.parametrize("second", KINDS, ids=str)
@pytest.mark.parametrize("first", KINDS, ids=str)
def test_a_rule_that_never_matches_changes_nothing(
    first: Effects, second: Effects, link: str
) -> None:
    """Neither what is decided nor what is known of origins."""
    other = Policy(rules=[Rule(verdict="deny", target="never.*")])
    plain = _events(DEFAULT, first, second, link)
    assert plain == _events(other, first, second, link)


def test_a_refusal_names_the_missing_declaration(tmp_path: Path) -> None:
    """Without one, a new file under the user's own words is refused as well."""
    (tmp_path / "in.bin").write_bytes(b"\x00\xff")
    calls = '[{"tool": "save", "data": "asset://a1/content", "path": "totals.png"}]'

    def answer(**declared: Any) -> Result:
        @command(effects="idempotent", names_file={"path": "write"}, **declared)
        def save(data: bytes, path: str, context: Context) -> int:
            """Save bytes to a file."""
            return (context.workspace / path).write_bytes(data)

        folder = tmp_path / str(len(declared))
        with Session(
            ScriptedModel([calls, "ok"]), plugins=[save], workspace=folder
        ) as session:
            given = {"attach": [tmp_path / "in.bin"]}
            return session.run_sync("Save it as totals.png", **given).calls[0]

    (error,) = [result.error for result in [answer()] if result.error]
    assert "save declares none of its parameters" in error.message
    assert "trusted_only" in error.message
    assert 'Policy(yes_to=["save.save"]) in a program' in error.message
    assert "Write a new document" not in error.message  # the call does just that
    assert answer(trusted_only=["path"]).status == "done"
