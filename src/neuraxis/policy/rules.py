"""Policy rules: allow, ask or deny a checked call.

The strictest matching rule decides; where none matches, the policy's `default` does:
the three rules of `three_rules`, or the milder ones of them that ask for what destroys.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, cast, get_args

import msgspec
from msgspec import Struct, field

from neuraxis.errors import ConfigError
from neuraxis.formatting import Named
from neuraxis.policy.decision import NO_FACTS, Decision, Facts, Verdict
from neuraxis.policy.provenance.words import leaves
from neuraxis.policy.three_rules import by_rules
from neuraxis.settings import items_of
from neuraxis.specs import CommandSpec, EffectKind, Json

Default = Verdict | Literal["by_origin", "mild"]
_STRICTNESS: tuple[Verdict, ...] = ("allow", "ask", "deny")


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
    arguments: Mapping[str, str] = field(default_factory=dict[str, str])
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

    @property
    def is_plain(self) -> bool:
        """Whether only the three rules decide."""
        return not self.rules and self.default == "by_origin"

    def decide(
        self, plugin: str, spec: CommandSpec, arguments: Json, facts: Facts = NO_FACTS
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
        given = target, spec, arguments, facts
        found = [rule for rule in self.rules if _matches(rule, *given)]
        if spec.effects.needs_approval:
            found.append(_DECLARED)
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
        if self.default == "ask" or spec.effects.needs_approval:
            return True
        asking = (rule for rule in self.rules if rule.verdict == "ask")
        return any(is_for(rule, f"{plugin}.{spec.name}", spec) for rule in asking)


def is_for(rule: Rule, target: str, spec: CommandSpec) -> bool:
    """Whether the rule names the command, whatever its arguments are."""
    return (not rule.effects or spec.effects.kind in rule.effects) and fnmatchcase(
        target, rule.target
    )


def _matches(
    rule: Rule, target: str, spec: CommandSpec, arguments: Json, facts: Facts
) -> bool:
    if not is_for(rule, target, spec):
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
    if rule.verdict != "allow":
        given = _defaults(spec) | given
    return all(
        _fits(pattern, given.get(name), rule.verdict)
        for name, pattern in rule.arguments.items()
    )


def _fits(pattern: str, value: Json, verdict: Verdict) -> bool:
    """Whether a pattern fits a value: all of it, to allow."""
    found = [leaf for _, leaf in leaves(value, ("",))]
    texts = [str(leaf) for leaf in found]
    if verdict == "allow":
        return bool(texts) and all(
            text.isprintable() and fnmatchcase(text, pattern) for text in texts
        )
    texts += [str(int(leaf)) for leaf in found if _is_whole(leaf)]
    plain = [_plain(text) for text in texts]
    plain += [os.path.normpath(text) for text in plain if "/" in text]
    return any(fnmatchcase(text, _plain(pattern)) for text in plain)


def _is_whole(value: Json) -> bool:
    return isinstance(value, float) and value.is_integer()


def _defaults(spec: CommandSpec) -> dict[str, Json]:
    """Return the values that a command takes for what is left out."""
    known: Mapping[str, Any] = spec.parameters.get("properties") or {}
    return {
        name: node["default"]
        for name, node in known.items()
        if node is not True and "default" in node
    }


def _plain(text: str) -> str:
    """Return a text as a lenient program may read it."""
    form = unicodedata.normalize("NFKC", text).casefold().replace("。", ".")
    shown = (char for char in form if unicodedata.category(char) not in ("Cc", "Cf"))
    return "".join(shown).strip()


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
    yes_to: list[str] | str = ""
    allow_hosts: list[str] | str = ""


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
    return Policy(
        rules=read.rules,
        default=read.default,
        undeclared=read.undeclared,
        yes_to=tuple(items_of(read.yes_to)),
        allow_hosts=tuple(items_of(read.allow_hosts)),
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
