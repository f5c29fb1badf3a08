"""Policy rules: allow, ask or deny a checked call.

The strictest matching rule decides; where none matches, the policy's `default` does:
the three rules of `three_rules`, or the milder ones of them that ask for what destroys.
"""

from __future__ import annotations

import logging
import os
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, cast

import msgspec
from msgspec import Struct, structs

from neuraxis import call_errors
from neuraxis.errors import ConfigError
from neuraxis.formatting import Named, did_you_mean, listed, nearest, quote
from neuraxis.planning.plan import Step
from neuraxis.policy.decision import ALLOWED, Decision, Facts, Verdict
from neuraxis.policy.provenance.labels import Origin
from neuraxis.policy.provenance.words import leaves
from neuraxis.policy.three_rules import by_rules
from neuraxis.schema.schema import Schema
from neuraxis.settings import items_of
from neuraxis.specs import CommandSpec, EffectKind, Json

Default = Literal["by_origin", "mild", "allow", "ask", "deny"]
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")
_LOG = logging.getLogger("neuraxis.policy")
_OPEN = ("additionalProperties", "patternProperties", "$ref", "anyOf", "oneOf", "allOf")
"""Where a schema may take more arguments than its `properties` name."""


class Rule(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, metaclass=Named
):
    """One rule of a policy; a call must meet all its conditions.

    Args:
        verdict: `allow`, `ask` or `deny`.
        target: a pattern for `plugin.command` (`files.*`).
        effects: the effects that match; empty: all.
        arguments: a pattern for each argument (`{"to": "*@example.org"}`), for the
            whole text. A list or mapping is asked about or denied if one of its values
            or keys matches, in any case and form, also as a default that was left out
            or a path with `./`; it is allowed if all of them do.
        origin: a pattern for the source of a value (`web_search.*`); `outside`: any
            source that others write to. Empty: any source.
        reason: the reason that is given with the verdict.
    """

    verdict: Verdict
    target: str = "*"
    effects: frozenset[EffectKind] = frozenset()
    arguments: Mapping[str, str] = {}
    origin: str = ""
    reason: str = ""


_DECLARED = Rule(verdict="ask", reason="each call of this command needs approval")
"""The rule for a command that declares `needs_approval`."""


class Policy(Struct, frozen=True, kw_only=True, metaclass=Named):
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

    def decide(
        self,
        plugin: str,
        spec: CommandSpec,
        arguments: Json,
        facts: Facts | None = None,
    ) -> Decision:
        """Return the verdict on a call.

        Args:
            plugin: the plugin's name.
            spec: the command.
            arguments: its arguments, without references.
            facts: what the runtime knows of the values and files; leave it out, and
                the verdict is that of the rules.
        """
        target = f"{plugin}.{spec.name}"
        found: list[Rule] = []
        if self.rules:
            traced = facts.traced if facts else ()
            origins = [one for item in traced for one in item.label]
            given = target, spec, arguments, origins
            found = [rule for rule in self.rules if _matches(rule, *given)]
        if spec.effects.needs_approval and (found or self.default != "deny"):
            found.append(_DECLARED)
        if not found and self.default in ("by_origin", "mild"):
            return by_rules(facts, mild=self.default == "mild") if facts else ALLOWED
        reason = f"the policy's default is {self.default}"
        found = found or [Rule(verdict=cast("Verdict", self.default), reason=reason)]
        rule = max(found, key=lambda rule: _STRICTNESS.index(rule.verdict))
        reason = rule.reason or f"a rule for {rule.target} says so"
        return Decision(
            verdict=rule.verdict,
            reason=reason,
            way_out=call_errors.yes_way_out(target),
            frees_files=rule.verdict == "allow",
        )

    def may_ask(self, step: Step) -> bool:
        """Whether a rule may ask about a step before it runs."""
        spec = step.command.spec
        asks = [rule for rule in self.rules if rule.verdict == "ask"]
        return (
            self.default == "ask"
            or spec.effects.needs_approval
            or any(is_for(rule, step.tool, spec) for rule in asks)
        )


def is_for(rule: Rule, target: str, spec: CommandSpec) -> bool:
    """Whether the rule names the command, whatever its arguments are."""
    return (not rule.effects or spec.effects.kind in rule.effects) and fnmatchcase(
        target, rule.target
    )


def _matches(
    rule: Rule, target: str, spec: CommandSpec, arguments: Json, origins: list[Origin]
) -> bool:
    if not is_for(rule, target, spec):
        return False
    found = [
        origin
        for origin in origins
        if (rule.origin == "outside" and origin.open_world)
        or fnmatchcase(origin.source, rule.origin)
    ]
    if rule.origin and not found:
        return False
    given = cast("dict[str, Json]", arguments) if isinstance(arguments, dict) else {}
    if rule.verdict != "allow":
        given = spec.defaults | given
    return all(
        _fits(pattern, given.get(name), rule.verdict)
        for name, pattern in rule.arguments.items()
    )


def _fits(pattern: str, value: Json, verdict: Verdict) -> bool:
    """Whether a pattern fits a value: all of it, to allow."""
    every = (leaf for _, leaf in leaves(value, ("",)))
    found = [leaf for leaf in every if not isinstance(leaf, dict | list | tuple)]
    texts = [str(leaf) for leaf in found]
    if verdict == "allow":
        fits = [text.isprintable() and fnmatchcase(text, pattern) for text in texts]
        return bool(fits) and all(fits)
    numbers = [leaf for leaf in found if isinstance(leaf, int | float)]
    texts += [str(int(leaf)) for leaf in numbers if leaf == leaf // 1]
    with suppress(ValueError):
        if float(pattern) in numbers:
            return True
    plain = [_plain(text) for text in texts]
    plain += [os.path.normpath(text) for text in plain if "/" in text]
    return any(fnmatchcase(text, _plain(pattern)) for text in plain)


def _plain(text: str) -> str:
    """Return a text as a lenient program may read it."""
    form = unicodedata.normalize("NFKC", text).casefold().replace("。", ".")
    kept = [char for char in form if unicodedata.category(char) not in ("Cc", "Cf")]
    return "".join(kept).strip()


# --- for which commands -------------------------------------------------------


def check_targets(policy: Policy, commands: Mapping[str, CommandSpec]) -> None:
    """Refuse patterns of a plugin here that fit none of its commands.

    A deny rule that is misspelt would never hold, and nobody would notice. One for
    another plugin, or for arguments of any plugin, may be for another program; the log
    has it. `commands`: those of the session, by `plugin.command`.

    Raises:
        ConfigError: a rule would never hold.
    """
    for rule in policy.rules:
        where = f"policy.rules: target {quote(rule.target)}"
        is_here = _check_pattern(where, rule.target, commands)
        if fault := _argument_fault(rule, commands):
            if is_here:
                raise ConfigError(f"{where}: {fault}")
            _LOG.warning("%s: %s", where, fault)
    for pattern in policy.yes_to:
        _check_pattern(f"policy.yes_to: {quote(pattern)}", pattern, commands)


def _check_pattern(where: str, pattern: str, commands: Collection[str]) -> bool:
    """Check one pattern; return whether it names a plugin here."""
    plugin, _, command = pattern.casefold().partition(".")
    parts = [(one, *one.casefold().partition(".")[::2]) for one in commands]
    here = [one for one, own, _ in parts if own == plugin]
    if any(fnmatchcase(one, pattern) for one in commands):
        return bool(here)
    if here:
        raise ConfigError(
            f"{where} matches no command, so it would never apply; expected "
            f"plugin.command: {listed(here, 5)}"
        )
    close, name = nearest(plugin, [own for _, own, _ in parts]), command or plugin
    near = [one for one, own, its in parts if own in close or its == name]
    message = f"{where} matches no command of this session.{did_you_mean(near[:1])}"
    _LOG.log(logging.WARNING if near else logging.INFO, message)
    return False


def _argument_fault(rule: Rule, commands: Mapping[str, CommandSpec]) -> str:
    """Say which argument none of the rule's commands has."""
    fitting = [spec for one, spec in commands.items() if is_for(rule, one, spec)]
    if not all(spec.parameter_names for spec in fitting) or any(
        spec.parameters.get(word) for spec in fitting for word in _OPEN
    ):
        return ""
    known = sorted({name for spec in fitting for name in spec.parameter_names})
    for name in rule.arguments if fitting else ():
        if name not in known:
            return (
                f"no command that it fits has an argument {name!r}, so that the rule "
                f"would never hold.{did_you_mean(nearest(name, known)[:1])} Arguments "
                f"are: {listed(known)}"
            )
    return ""


# --- from settings -------------------------------------------------------------

EVERYTHING = Policy(default="allow")
"""Allows every call of a command that does not declare `needs_approval`."""

DEFAULT = Policy()
"""What a session and the command line take where nothing else is said."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may stand below `policy.` in the settings."""

    rules: tuple[Rule, ...] = ()
    default: Default = "by_origin"
    undeclared: Literal["inside", "outside"] = "inside"
    yes_to: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()


_LISTS = ("yes_to", "allow_hosts")
"""Fields that may be written as one text with commas."""


def policy_from(section: Mapping[str, Json]) -> Policy:
    """The policy of the settings below `policy.`.

    Raises:
        ConfigError: a word in it is not known.
    """
    texts = {name: section[name] for name in _LISTS if name in section}
    lists = {n: items_of(one) for n, one in texts.items() if isinstance(one, str)}
    given = {**section, **lists}
    try:
        return Policy(**structs.asdict(msgspec.convert(given, _Section)))
    except msgspec.ValidationError:
        problems = Schema(msgspec.json.schema(_Section)).problems(given)
        message = call_errors.invalid_param("policy", problems).message
        raise ConfigError(
            f"{message} See docs/security.md, Rules of your own"
        ) from None
