"""A command that declares `needs_approval` is asked about before each call."""

from pathlib import Path
from typing import Any

import pytest

from neuraxis import Policy, Rule, Session, command
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.lock_file import changes, entry
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.policy.rules import EVERYTHING
from neuraxis.specs import Effects
from neuraxis.testing import ScriptedModel

CALL = '[{"tool": "cancel", "id": "dentist"}]'


@command(effects={"kind": "once", "needs_approval": True})
def cancel(id: str) -> str:
    """Cancels an appointment."""
    return f"cancelled {id}"


def outcome(**given: Any) -> tuple[str, str]:
    """Status and error of the call in a session that was shown nothing."""
    with Session(ScriptedModel([CALL, "ok"]), plugins=[cancel], **given) as session:
        (result,) = session.run_sync("What is in my calendar on Friday?").calls
        error = result.error
        return (error.code, error.message) if error else (result.status, "")


def test_each_call_is_asked_about() -> None:
    """Also the first of a session, which no page can have chosen."""
    status, error = outcome()
    assert status == "denied"
    assert "each call of this command needs approval" in error
    assert outcome(approve=lambda question: True)[0] == "done"
    assert outcome(approve=lambda question: False)[0] == "denied"


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        (Policy(yes_to=["cancel.cancel"]), "done"),
        (EVERYTHING, "denied"),
        (Policy(default="deny"), "denied"),
        (Policy(rules=[Rule(verdict="allow", target="cancel.*")]), "denied"),
        (Policy(default="mild"), "denied"),
    ],
)
def test_it_is_one_more_rule_that_asks(policy: Policy, status: str) -> None:
    """The strictest rule decides; an approval beforehand is one."""
    assert outcome(policy=policy)[0] == status


def test_it_does_not_loosen_a_policy_that_denies() -> None:
    """Only where a rule allows the call is a person asked."""
    yes: Any = lambda question: True  # noqa: E731
    status, error = outcome(policy=Policy(default="deny"), approve=yes)
    assert status == "denied"
    assert "the policy's default is deny" in error
    policy = Policy(default="deny", rules=[Rule(verdict="allow", target="cancel.*")])
    assert outcome(policy=policy, approve=yes)[0] == "done"
    assert outcome(policy=policy, approve=lambda question: False)[0] == "denied"


def test_the_model_is_told_how_it_is_approved() -> None:
    """As by the three rules."""
    for policy in (None, Policy(default="ask")):
        assert 'Policy(yes_to=["cancel.cancel"])' in outcome(policy=policy)[1]


def test_a_rule_that_denies_is_stricter() -> None:
    """A person's yes is not asked for."""
    rule = Rule(verdict="deny", target="cancel.*", reason="not here")
    status, error = outcome(policy=Policy(rules=[rule]), approve=lambda question: True)
    assert status == "denied"
    assert "not here" in error


def test_a_manifest_says_it_too() -> None:
    """It says nothing of who writes the answers."""
    effects = plugin_from(cancel).spec.commands[0].effects
    again, _ = parse_manifest(to_yaml(plugin_from(cancel).spec))
    assert again.commands[0].effects == effects
    assert effects == Effects(kind="once", needs_approval=True)
    assert not effects.declared
    assert "needs_approval: true" in to_yaml(plugin_from(cancel).spec)


def test_a_lock_file_of_before_still_fits(tmp_path: Path) -> None:
    """Only a command that declares it has it in the file."""

    @command(effects="once")
    def plain(id: str) -> str:
        """Does something."""
        return id

    def told(spec: Any) -> Any:
        (item,) = entry(spec)["said"]["commands"].values()
        return item["effects"]

    assert "needs_approval" not in told(plugin_from(plain).spec)
    assert told(plugin_from(cancel).spec)["needs_approval"] is True
    before = {**told(plugin_from(cancel).spec)}
    assert before != told(plugin_from(plain).spec)
    assert changes(entry(plugin_from(cancel).spec), plugin_from(cancel).spec) == []
