"""Worst cases of regular expressions, derived from their own parse trees.

Every part of a pattern gives the texts that it matches; a prefix that leads to a part,
the part many times, and an end that does not fit make an attack. Nothing is written
by hand for a single pattern.
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from re import _constants as codes  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

ENDS = ("", "\0", "!", "\n", "a")
_CATEGORIES = {
    "CATEGORY_DIGIT": "1",
    "CATEGORY_NOT_DIGIT": "a",
    "CATEGORY_SPACE": " ",
    "CATEGORY_NOT_SPACE": "a",
    "CATEGORY_WORD": "a",
    "CATEGORY_NOT_WORD": " ",
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_LONG = 8
"""Repetitions from which a part counts as one that goes on."""
_VARIANTS = 3


class TooSlow(Exception):
    """A match took longer than it may."""


def _in_set(items: list[Any]) -> list[str]:
    negated = items[0][0] is codes.NEGATE
    wanted: list[str] = []
    for op, value in items:
        if op is codes.LITERAL:
            wanted.append(chr(value))
        elif op is codes.RANGE:
            wanted.append(chr(value[0]))
        elif op is codes.CATEGORY:
            wanted.append(_CATEGORIES[str(value)])
    if not negated:
        return list(dict.fromkeys(wanted))
    pool = "a 1<\"'=/-.:{[(\\`\nZ\t,;"
    shape = "[" + "".join(re.escape(sign) for sign in wanted) + "]"
    ranges = [v for op, v in items if op is codes.RANGE]
    kinds = [str(v) for op, v in items if op is codes.CATEGORY]
    out = []
    for sign in pool:
        if wanted and re.match(shape, sign):
            continue
        if any(low <= ord(sign) <= high for low, high in ranges):
            continue
        if "CATEGORY_SPACE" in kinds and sign.isspace():
            continue
        if "CATEGORY_WORD" in kinds and (sign.isalnum() or sign == "_"):
            continue
        if "CATEGORY_DIGIT" in kinds and sign.isdigit():
            continue
        out.append(sign)
    return out or ["\u2603"]


def examples(tree: Any, groups: dict[int, str] | None = None) -> list[str]:
    """Texts that a sequence of parts matches, a few of them."""
    groups = {} if groups is None else groups
    texts = [""]
    for node in tree:
        options = _options(node, groups)[: _VARIANTS * 2] or [""]
        texts = [head + tail for tail in options for head in texts][: _VARIANTS * 2]
    return list(dict.fromkeys(texts))


def _options(node: Any, groups: dict[int, str]) -> list[str]:
    op, value = node
    if op is codes.LITERAL:
        return [chr(value)]
    if op is codes.NOT_LITERAL:
        return _in_set([(codes.NEGATE, None), (codes.LITERAL, value)])
    if op is codes.ANY:
        return ["a", " ", "<"]
    if op is codes.IN:
        return _in_set(value)
    if op is codes.BRANCH:
        return [text for branch in value[1] for text in examples(branch, groups)[:2]]
    if op is codes.SUBPATTERN:
        found = examples(value[3], groups)
        if value[0] is not None:
            groups[value[0]] = found[0]
        return found
    if op is codes.ATOMIC_GROUP:
        return examples(value, groups)
    if op in _REPEATS:
        least, most, inner = value
        found = examples(inner, groups)
        shortest = [text * least for text in found]
        return [*shortest[:2], *(found if least == 0 and most else [])]
    if op is codes.GROUPREF:
        return [groups.get(value, "")]
    if op is codes.ASSERT and value[0] > 0:
        return ["", *examples(value[1], groups)[:1]]
    if op is codes.ASSERT:
        return [*examples(value[1], groups)[:1], ""]
    return [""]  # anchors, and what must not follow


def _children(node: Any) -> list[Any]:
    op, value = node
    if op is codes.BRANCH:
        return list(value[1])
    if op is codes.SUBPATTERN:
        return [value[3]]
    if op is codes.ATOMIC_GROUP:
        return [value]
    if op in _REPEATS:
        return [value[2]]
    if op in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return []


def _sequences(tree: Any, before: list[str]) -> Iterator[tuple[list[str], Any]]:
    """Every sequence in the tree with what leads to it."""
    yield before, tree
    for place, node in enumerate(tree):
        lead = examples(tree[:place])[:2]
        here = [head + tail for head in before for tail in lead][:2]
        for child in _children(node):
            yield from _sequences(child, here)


def parts(pattern: re.Pattern[Any]) -> tuple[list[str], list[str]]:
    """What leads to repeats of a pattern, and what may be repeated."""
    source: Any = pattern.pattern
    tree = _parser.parse(source, pattern.flags & ~re.DEBUG)
    prefixes: dict[str, None] = {"": None}
    repeated: dict[str, None] = {}
    units: dict[str, None] = {}
    for before, sequence in _sequences(tree, [""]):
        for start in range(len(sequence)):
            for end in range(start + 1, min(len(sequence), start + 5) + 1):
                for text in examples(sequence[start:end])[:_VARIANTS]:
                    units[text] = None
            op, value = sequence[start]
            if op in _REPEATS and value[1] >= _LONG:
                for text in examples(value[2]):
                    repeated[text] = None
                for head in before:
                    for lead in examples(sequence[:start])[:2]:
                        prefixes[head + lead] = None
                        # the beginning again and again: each is tried to the end
                        for text in examples(value[2])[:2]:
                            units[head + lead + text] = None
    for whole in examples(tree):
        units[whole] = None
        units[whole[:-1]] = None
    # a long literal before the first repeat gives more units than are tried
    units = repeated | units
    units.pop("", None)
    return list(prefixes)[:40], list(units)[:80]


def attacks(pattern: re.Pattern[Any], size: int) -> Iterator[tuple[str, str, str]]:
    """Prefix, repeated part and end of each attack."""
    prefixes, units = parts(pattern)
    for unit in units:
        for place, prefix in enumerate(prefixes):
            if len(unit) < size:
                # one end for most: it only has to break the match
                yield prefix, unit, ENDS[1] if place else ENDS[place]


def text_of(attack: tuple[str, str, str], size: int) -> str:
    """The attack as a text of about `size` characters."""
    prefix, unit, end = attack
    return prefix + unit * (size // len(unit)) + end


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Stop a match that takes more processor time; the engine looks for signals."""

    def stop(number: int, frame: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def seconds(
    use: Callable[[str], object], attack: tuple[str, str, str], size: int, most: float
) -> float:
    """How long a use of a pattern takes on an attack; infinite beyond `most`."""
    text = text_of(attack, size)
    began = time.thread_time()
    try:
        with limit(most):
            use(text)
    except TooSlow:
        return float("inf")
    return time.thread_time() - began


def worst(
    pattern: re.Pattern[Any], use: Callable[[str], object], size: int = 1_000_000
) -> tuple[float, tuple[str, str, str]]:
    """The longest time for `size` characters, and the attack that takes it.

    A small text of every attack tells which are worth the whole size.
    """
    small = min(1_500, size)
    measured: list[tuple[float, tuple[str, str, str]]] = []
    for attack in attacks(pattern, small):
        taken = seconds(use, attack, small, 0.1)
        if taken > 0.1:  # the whole would take hours
            return taken, attack
        measured.append((taken, attack))
    if not measured:
        return 0.0, ("", "", "")
    middle = min(64_000, size)
    slowest, attack = max(
        (seconds(use, attack, middle, 0.5), attack)
        for _, attack in sorted(measured, reverse=True)[:3]
    )
    return (seconds(use, attack, size, 1.5) if slowest < 0.5 else slowest), attack
