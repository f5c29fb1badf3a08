"""Check that the targets of a policy fit commands of the session.

A deny rule whose target is misspelt would never hold, and nobody would notice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase

from neuraxis.errors import ConfigError
from neuraxis.formatting import did_you_mean, listed, nearest, quote
from neuraxis.policy.rules import Policy, Rule, is_for
from neuraxis.specs import CommandSpec

_LOG = logging.getLogger("neuraxis.policy")
_OPEN = ("additionalProperties", "patternProperties", "$ref", "anyOf", "oneOf", "allOf")
"""Where a schema may take more arguments than its `properties` name."""


def check_targets(policy: Policy, commands: Mapping[str, CommandSpec]) -> None:
    """Refuse rules and `yes_to` patterns that fit no command here.

    One that fits none is meant for a command here if it names its plugin, or nearly,
    or the command. Any other may be for another program, and is logged.

    Args:
        policy: any.
        commands: those of the session, by `plugin.command`.

    Raises:
        ConfigError: a rule would never hold.
    """
    plugins = {one.partition(".")[0] for one in commands}
    for rule in policy.rules:
        where = f"policy.rules: target {quote(rule.target)}"
        _check_pattern(where, rule.target, commands)
        is_here = rule.target.partition(".")[0] in plugins
        if is_here and (fault := _argument_fault(rule, commands)):
            raise ConfigError(f"{where}: {fault}")
    for pattern in policy.yes_to:
        _check_pattern(f"policy.yes_to: {quote(pattern)}", pattern, commands)


def _check_pattern(where: str, pattern: str, commands: Collection[str]) -> None:
    if any(fnmatchcase(one, pattern) for one in commands):
        return
    meant = _meant(pattern, commands)
    if meant:
        raise ConfigError(
            f"{where} fits no command, so that it would never hold; expected "
            f"plugin.command: {listed(meant, 5)}"
        )
    _LOG.info("%s fits no command of this session", where)


def _meant(pattern: str, commands: Collection[str]) -> list[str]:
    """Return the commands that a pattern may be for, likeliest first."""
    parts = [(one, *one.partition(".")[::2]) for one in commands]
    plugin, _, command = pattern.partition(".")
    found = [one for one, own, _ in parts if own.casefold() == plugin.casefold()]
    found = found or [one for one, _, own in parts if own == (command or plugin)]
    if not found and not {*"*?["}.intersection(plugin):
        close = nearest(plugin, [own for _, own, _ in parts], most=1)
        found = [one for one, own, _ in parts if own in close]
    return list(dict.fromkeys((*nearest(pattern, found), *found)))


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
