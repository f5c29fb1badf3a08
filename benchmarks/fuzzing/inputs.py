"""Inputs that come near to what is really read: seeds, dictionaries, mutators.

A text is cut, repeated, spliced and salted with words of its format; a tree is changed
node by node. The same mutators serve coverage-guided and random fuzzing.
"""

from __future__ import annotations

import datetime
import decimal
import json
import os
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

LONGEST = 12_000


def as_text(data: bytes) -> str:
    """Any bytes as text, half characters among it."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """The bytes of which `as_text` makes the text, or nearly."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- texts ---------------------------------------------------------------------


def mutate_text(data: bytes, dice: random.Random, words: Sequence[str]) -> bytes:
    """The text with one to five changes."""
    text = as_text(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 5))):
        text = _changed(text, dice, words)
    return as_bytes(text[:LONGEST])


def _place(text: str, dice: random.Random) -> int:
    """Any place; half of the time one beside a mark of the format."""
    if text and dice.random() < 0.5:
        start = dice.randrange(len(text))
        for at in range(start, min(start + 60, len(text))):
            if text[at] in "{}[],:\"'<>\n|=&?/ ":
                return at + dice.randrange(2)
    return dice.randrange(len(text) + 1)


def _changed(text: str, dice: random.Random, words: Sequence[str]) -> str:
    here = _place(text, dice)
    width = dice.choice((1, 1, 2, 4, 10, 40, 200))
    way = dice.randrange(14)
    if way <= 3:
        return text[:here] + dice.choice(words) + text[here:]
    if way <= 5:
        return text[:here] + text[here + width :]
    if way == 6:
        return text[:here] + dice.choice(words) + text[here + width :]
    if way == 7:
        there = _place(text, dice)
        return text[:there] + text[here : here + width] + text[there:]
    if way == 8:
        times = dice.choice((2, 3, 10, 100, 1000))
        return text[:here] + text[here : here + width] * times + text[here + width :]
    if way == 9:
        return text[:here] if dice.random() < 0.7 else text[here:]
    if way == 10:
        code = dice.choice((dice.randrange(128), dice.randrange(0x110000)))
        return text[:here] + chr(code) + text[here + 1 :]
    if way == 11:
        tree = json.dumps(random_tree(dice, words), ensure_ascii=dice.random() < 0.5)
        return text[:here] + tree + text[here:]
    if way == 12:
        # Much of the same: a reader that looks ahead in vain takes the square of it.
        unit = dice.choice(words) + (dice.choice(words) if dice.random() < 0.6 else "")
        times = dice.choice((2, 50, max(1, 8_000 // max(1, len(unit)))))
        return text[:here] + unit * times + text[here:]
    part = text[here : here + width]
    other = dice.choice((part.upper(), part.lower(), part[::-1], part.swapcase()))
    return text[:here] + other + text[here + width :]


# --- trees ---------------------------------------------------------------------


def random_tree(dice: random.Random, words: Sequence[str], depth: int = 0) -> Any:
    """A small JSON value made of the words."""
    way = dice.randrange(10 if depth < 4 else 6)
    if way <= 2:
        return dice.choice(words)
    if way == 3:
        return dice.choice(
            (None, True, False, 0, 1, -1, 2.0, 1.5, 1e300, 10**30, 2**63, "", "é")
        )
    if way == 4:
        return dice.choice((*range(5), 100, "2024-01-01", "x" * 300, "{{ item }}"))
    if way == 5:
        return {"$py": dice.choice(tuple(ODD))}
    count = dice.choice((0, 1, 1, 2, 3))
    if way <= 7:
        return [random_tree(dice, words, depth + 1) for _ in range(count)]
    return {
        dice.choice(words): random_tree(dice, words, depth + 1) for _ in range(count)
    }


def mutate_tree(
    data: bytes, dice: random.Random, words: Sequence[str], seeds: Sequence[bytes]
) -> bytes:
    """The tree with one to four nodes changed; another seed where it is none."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        tree = json.loads(dice.choice(seeds))
    for _ in range(dice.choice((1, 1, 2, 4))):
        tree = _changed_tree(tree, dice, words)
    try:
        made = json.dumps(tree)
    except RecursionError:
        made = ""
    if not made or len(made) > LONGEST:
        return dice.choice(seeds)
    return made.encode()


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Every container's key or index, in any order."""
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack and len(found) < 2_000:
        node = stack.pop()
        entries: Iterator[tuple[Any, Any]]
        if isinstance(node, dict):
            entries = iter(node.items())
        elif isinstance(node, list):
            entries = iter(enumerate(node))
        else:
            continue
        for key, item in entries:
            found.append((node, key))
            stack.append(item)
    return found


def _changed_tree(tree: Any, dice: random.Random, words: Sequence[str]) -> Any:
    nodes = _nodes(tree)
    if not nodes:
        return random_tree(dice, words)
    node, key = dice.choice(nodes)
    way = dice.randrange(9)
    if way <= 1:
        node[key] = random_tree(dice, words, 2)
    elif way == 2:
        other, where = dice.choice(nodes)
        node[key] = json.loads(json.dumps(other[where]))
    elif way == 3:
        del node[key]
    elif way == 4 and isinstance(node, dict):
        node[dice.choice(words)] = node.pop(key)
    elif way == 5 and isinstance(node, dict):
        node[dice.choice(words)] = random_tree(dice, words, 2)
    elif way == 5:
        node.insert(key, random_tree(dice, words, 2))
    elif way == 6:
        node[key] = [node[key]] if dice.random() < 0.5 else {"type": node[key]}
    elif way == 7 and isinstance(node[key], str):
        changed = mutate_text(node[key].encode("utf-8", "replace"), dice, words)
        node[key] = as_text(changed)[:2_000]
    elif way == 8:
        for _ in range(dice.choice((1, 30, 120))):
            node[key] = [node[key]] if dice.random() < 0.9 else {"a": node[key]}
    return tree


# --- what JSON cannot say -------------------------------------------------------


class Text(str):
    """A text of a class of its own."""

    __slots__ = ()


class _Opaque:
    """An object of a plugin."""

    secret = "never read"


class _OwnMapping(Mapping[str, Any]):
    """A plugin's own mapping, whose values are made when asked for."""

    def __getitem__(self, key: str) -> Any:
        if key == "missing":
            raise KeyError(key)
        return {"key": key}

    def __iter__(self) -> Iterator[str]:
        return iter(("a", "b"))

    def __len__(self) -> int:
        return 2


class _Raising(Mapping[str, Any]):
    """A mapping of a plugin whose connection is gone."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("gone")

    def __iter__(self) -> Iterator[str]:
        raise OSError("gone")

    def __len__(self) -> int:
        raise OSError("gone")


def _holds_itself() -> Any:
    made: dict[str, Any] = {"a": 1}
    made["self"] = [made]
    return made


def _deep(levels: int) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


ODD: Mapping[str, Any] = {
    "nan": float("nan"),
    "inf": float("-inf"),
    "minus_zero": -0.0,
    "huge": 10**400,
    "date": datetime.date(2024, 1, 2),
    "datetime": datetime.datetime(2024, 1, 2, tzinfo=datetime.timezone.utc),  # noqa: UP017
    "decimal": decimal.Decimal("NaN"),
    "uuid": uuid.UUID(int=5),
    "bytes": b"\xff\x00",
    "tuple": (1, ("a", None)),
    "set": {1, 2},
    "complex": 1j,
    "object": _Opaque(),
    "class": _Opaque,
    "text": Text("text"),
    "half": "\ud800",
    "int_keys": {1: 2, None: 3, (): 4, "1": 5},
    "mapping": _OwnMapping(),
    "itself": _holds_itself(),
    "deep": _deep(150),
    "deeper": _deep(5_000),
    "ellipsis": ...,
    "path": Path("a/b"),
    "long": "x" * 30_000,
    "many": list(range(5_000)),
    "half_key": {"\udfff": 1},
}
RAISING = _Raising()


def alive(tree: Any) -> Any:
    """The tree with the objects that its `{"$py": name}` stand for."""
    if isinstance(tree, dict):
        if "$py" in tree and len(tree) == 1 and isinstance(tree["$py"], str):
            return ODD.get(tree["$py"], tree["$py"])
        return {key: alive(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [alive(item) for item in tree]
    return tree


def read_tree(data: bytes) -> Any:
    """The tree that the bytes are; None where they are none."""
    try:
        return alive(json.loads(data))
    except (ValueError, RecursionError):
        return None


# --- seeds from files -----------------------------------------------------------

_CHECKOUT = Path(__file__).resolve().parents[2]


@cache
def shared_texts(pattern: str, most: int = 60, longest: int = 8_000) -> list[bytes]:
    """Foreign test material, where it lies beside the checkout."""
    given = os.environ.get("NEURAXIS_SHARED_DATA")
    folder = Path(given) if given else _CHECKOUT.parent / "shared" / "data"
    found = [path.read_bytes() for path in sorted(folder.glob(pattern))]
    return [data for data in found if len(data) <= longest][:most]


@cache
def shared_lines(pattern: str, key: str, most: int = 200) -> list[bytes]:
    """One field of each row of `.jsonl` files."""
    found: list[bytes] = []
    for data in shared_texts(pattern, longest=10**7):
        for line in data.decode().splitlines()[:most]:
            value = json.loads(line).get(key)
            if isinstance(value, str) and len(value) < 4_000:
                found.append(as_bytes(value))
    return found


def own_files(pattern: str) -> list[bytes]:
    """Files of the checkout itself."""
    return [path.read_bytes() for path in sorted(_CHECKOUT.glob(pattern))]
