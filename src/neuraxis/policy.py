"""Allow, ask or deny a checked call.

A call, its command's effects and where its values came from flow in; a decision with
its reason flows out. The strictest rule that matches wins; without a matching rule
the policy's default holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from neuraxis.specs import CommandSpec, EffectKind, Json

Verdict = Literal["allow", "ask", "deny"]
_STRICTNESS: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of a policy. `target` is a pattern of `plugin.command` (`files.*`)."""

    verdict: Verdict
    target: str = "*"
    effects: frozenset[EffectKind] = frozenset()
    """Matches these effects only; empty: all."""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the policy says of one call."""

    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules; the strictest that matches decides, else `default`."""

    rules: Sequence[Rule] = ()
    default: Verdict = "allow"

    def decide(self, plugin: str, spec: CommandSpec, arguments: Json) -> Decision:
        """The verdict on running `plugin.spec.name` with these resolved arguments."""
        target = f"{plugin}.{spec.name}"
        found: Decision | None = None
        for rule in self.rules:
            if rule.effects and spec.effects.kind not in rule.effects:
                continue
            if not fnmatchcase(target, rule.target):
                continue
            if found is None or _STRICTNESS[rule.verdict] > _STRICTNESS[found.verdict]:
                reason = rule.reason or f"a rule for {rule.target} says so"
                found = Decision(verdict=rule.verdict, reason=reason)
        return found or Decision(verdict=self.default, reason="no rule allows it")


EVERYTHING = Policy()
"""Allows every call."""
