"""Policy rules: allow, ask or deny a checked call.

The strictest matching rule decides; where none matches, the policy's `default` does:
the three rules of `three_rules`, or the milder ones of them that ask for what destroys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, cast, get_args

import msgspec
from msgspec import Struct, field

from neuraxis.errors import ConfigError
from neuraxis.formatting import listed, quote
from neuraxis.policy.decision import NO_FACTS, Decision, Facts, Verdict
from neuraxis.policy.provenance.words import leaves
from neuraxis.policy.three_rules import by_rules
from neuraxis.specs import CommandSpec, EffectKind, Json

Default = Verdict | Literal["by_origin", "mild"]
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule of a policy; a call must meet all its conditions.

    Args:
        verdict: `allow`, `ask` or `deny`.
        target: a pattern for `plugin.command` (`files.*`).
        effects: the effects that match; empty: all.
        arguments: a pattern for each argument (`{"to": "*@example.org"}`); a list or
            mapping matches if one of its values does.
        origin: a pattern for the source of a value (`web_search.*`); `outside`: any
            source that others write to. Empty: any source.
        reason: the reason that is given with the verdict.
    """

    verdict: Verdict
    target: str = "*"
    effects: frozenset[EffectKind] = frozenset()
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
    origin: str = ""
    reason: str = ""


class Policy(Struct, frozen=True, kw_only=True):
    """Rules for calls: the strictest that matches decides, else `default`."""

    rules: Sequence[Rule] = ()
    """The rules, in any order."""
    default: Default = "by_origin"
    """If no rule matches: `allow`, `ask`, `deny`; `by_origin`: the three rules of
    docs/security.md decide; `mild`: the same, but they ask only about destruction."""
    undeclared: Literal["inside", "outside"] = "inside"
    """Origin of an answer whose command does not declare who writes it."""
    yes_to: Sequence[str] = ()
    """Patterns of `plugin.command` that need no approval."""
    allow_hosts: Sequence[str] = ()
    """Private addresses that requests may reach, as `host` or `host:port`."""
    lock: str | Path | None = None
    """Lock file of the plugins; None: `neuraxis.lock.json` in this folder, if any."""

    @property
    def is_plain(self) -> bool:
        """Whether only the three rules decide."""
        return not self.rules and self.default == "by_origin"

    def decide(
        self, plugin: str, spec: CommandSpec, arguments: Json, facts: Facts = NO_FACTS
    ) -> Decision:
        """Return the verdict on a call with these resolved arguments."""
        target = f"{plugin}.{spec.name}"
        given = target, spec, arguments, facts
        found = [rule for rule in self.rules if _matches(rule, *given)]
        if found:
            rule = max(found, key=lambda rule: _STRICTNESS.index(rule.verdict))
            reason = rule.reason or f"a rule for {rule.target} says so"
            return Decision(verdict=rule.verdict, reason=reason)
        if self.default in ("by_origin", "mild"):
            mild = self.default == "mild"
            return by_rules(target, spec, arguments, facts, mild=mild)
        return Decision(verdict=self.default, reason="no rule allows it")

    def may_ask(self, plugin: str, spec: CommandSpec) -> bool:
        """Whether a rule may ask for approval of this command's calls."""
        return self.default == "ask" or any(
            rule.verdict == "ask" and _is_for(rule, f"{plugin}.{spec.name}", spec)
            for rule in self.rules
        )


def check_targets(policy: Policy, commands: Sequence[str]) -> None:
    """Refuse rules that name a plugin here and none of its commands.

    Args:
        policy: with any rules.
        commands: each `plugin.command`.

    Raises:
        ConfigError: a rule would never hold.
    """
    for rule in policy.rules:
        plugin = rule.target.partition(".")[0].casefold()
        near = [one for one in commands if one.partition(".")[0].casefold() == plugin]
        if near and not any(fnmatchcase(one, rule.target) for one in commands):
            raise ConfigError(
                f"policy.rules: target {quote(rule.target)} fits no command, so that "
                f"the rule would never hold; expected plugin.command: {listed(near, 5)}"
            )


def _is_for(rule: Rule, target: str, spec: CommandSpec) -> bool:
    """Whether the rule names the command, whatever its arguments are."""
    return (not rule.effects or spec.effects.kind in rule.effects) and fnmatchcase(
        target, rule.target
    )


def _matches(
    rule: Rule, target: str, spec: CommandSpec, arguments: Json, facts: Facts
) -> bool:
    if not _is_for(rule, target, spec):
        return False
    if rule.origin and not any(
        origin.open_world
        if rule.origin in ("outside", "open_world")
        else fnmatchcase(origin.source, rule.origin)
        for item in facts.traced
        for origin in item.label
    ):
        return False
    given = cast("dict[str, Json]", arguments) if isinstance(arguments, dict) else {}
    return all(
        any(fnmatchcase(str(leaf), pattern) for _, leaf in leaves(given.get(name)))
        for name, pattern in rule.arguments.items()
    )


# --- from settings -------------------------------------------------------------

EVERYTHING = Policy(default="allow")
"""Allows every call."""

DEFAULT = Policy()
"""What a session and the command line take where nothing else is said."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand below `policy.` in the settings."""

    rules: tuple[Rule, ...] = ()
    default: Default = "by_origin"
    undeclared: Literal["inside", "outside"] = "inside"
    yes_to: tuple[str, ...] | str = ()


_WORDS: dict[str, tuple[str, ...]] = {
    "policy": _Section.__struct_fields__,
    "rules": Rule.__struct_fields__,
    "verdict": get_args(Verdict),
    "effects": get_args(EffectKind),
    "default": ("by_origin", "mild", *get_args(Verdict)),
    "undeclared": ("inside", "outside"),
}
"""The words that a field of the settings takes, or the fields of a table."""


def policy_from(section: Mapping[str, Json]) -> Policy:
    """The policy of the settings below `policy.`.

    Raises:
        ConfigError: a word in it is not known.
    """
    try:
        read = msgspec.convert(section, _Section)
    except msgspec.ValidationError as error:
        raise ConfigError(_fault(str(error))) from None
    yes_to = read.yes_to.split(",") if isinstance(read.yes_to, str) else read.yes_to
    return Policy(
        rules=read.rules,
        default=read.default,
        undeclared=read.undeclared,
        yes_to=tuple(yes_to),
    )


def _fault(found: str) -> str:
    """Say where the settings are wrong, and which words they take there."""
    what, _, place = found.partition(" - at ")
    where = place.strip("`").removeprefix("$")
    name = where.rpartition(".")[2].partition("[")[0] or "policy"
    words = ", ".join(_WORDS.get(name, ()))
    if words and what.startswith(("Invalid enum value", "Object contains unknown")):
        what = f"expected one of {words}, got {what.split(maxsplit=3)[3]}"
    return f"policy{where}: {what}. See docs/security.md, Rules of your own"
