"""A data class and a pattern made later are what the standard library makes at once."""

import copy
import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

import neuraxis
from neuraxis import later

OPTIONS = [
    {"slots": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "frozen": True},
    {"slots": True, "frozen": True, "kw_only": True},
    {"slots": True, "kw_only": True, "unsafe_hash": True},
    {"slots": True, "kw_only": True, "eq": False},
    {"slots": True, "frozen": True, "kw_only": True, "eq": False},
    {"slots": True, "repr": False},
]


def _class(make: Callable[[type[Any]], type[Any]]) -> type[Any]:
    class Thing:
        """A thing."""

        name: str
        parts: "list[int]" = field(default_factory=list)
        hidden: int = field(default=7, compare=False, repr=False)
        later: object = field(init=False, repr=False, compare=False)
        size: float = 1.5

        @property
        def twice(self) -> float:
            """The size, twice."""
            return 2 * self.size

    return make(Thing)


def _explicit(make: Callable[[type[Any]], type[Any]]) -> type[Any]:
    class Thing:
        """A thing that says itself how it is written and compared."""

        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

        def __eq__(self, other: object) -> bool:
            return True

    return make(Thing)


def _tried(act: Callable[[], Any]) -> Any:
    """What comes of it, or what is raised."""
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error), str(error).replace(".<locals>", "").replace("_class.", "")


def _written(value: object) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


def _made(cls: Any, **more: Any) -> Any:
    return cls(name="a", **more)


PROBES: list[Callable[[Any], Any]] = [
    lambda cls: _written(_made(cls)),
    lambda cls: _written(_made(cls, parts=[1], hidden=3, size=2)),
    lambda cls: _made(cls) == _made(cls),
    lambda cls: _made(cls) == _made(cls, hidden=1),
    lambda cls: _made(cls) == _made(cls, size=2),
    lambda cls: _made(cls) == object(),
    lambda cls: _made(cls) != _made(cls, parts=[1]),
    lambda cls: hash(_made(cls, parts=())) is not None,
    lambda cls: len({_made(cls, parts=()), _made(cls, parts=())}),
    lambda cls: _made(cls).parts is not _made(cls).parts,
    lambda cls: _made(cls).twice,
    lambda cls: _made(cls).hidden,
    lambda cls: _made(cls).later,
    lambda cls: cls(),
    lambda cls: cls("a").name,
    lambda cls: cls("a", [1]).parts,
    lambda cls: cls("a", size=3).size,
    lambda cls: cls("a", [1], 2, 3, 4),
    lambda cls: cls("a", name="b"),
    lambda cls: _made(cls, unknown=1),
    lambda cls: _made(cls, later=1),
    lambda cls: setattr(_made(cls), "name", "b"),
    lambda cls: setattr(_made(cls), "size", 4),
    lambda cls: delattr(_made(cls), "name"),
    lambda cls: hasattr(_made(cls), "__dict__"),
    lambda cls: _written(dataclasses.replace(_made(cls), size=9)),
    lambda cls: dataclasses.asdict(_with_all(cls)),
    lambda cls: dataclasses.is_dataclass(cls),
    lambda cls: cls.__match_args__,
    lambda cls: str(inspect.signature(cls)),
    lambda cls: [(f.name, f.type, f.init, f.kw_only) for f in dataclasses.fields(cls)],
    lambda cls: cls.__dataclass_params__.frozen,
    lambda cls: (cls.__name__, cls.__doc__, cls.__module__, cls.__slots__),
]


def _with_all(cls: Any) -> Any:
    """One with every field set, also the one that `__init__` leaves."""
    one = _made(cls, parts=[1])
    object.__setattr__(one, "later", 1)
    return one


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_class_is_what_the_standard_library_makes(options: dict[str, Any]) -> None:
    """Looked at in each way first, in all ways one after the other, and much used."""
    theirs: Any = _class(dataclasses.dataclass(**options))
    expected = [_tried(lambda probe=probe: probe(theirs)) for probe in PROBES]
    for probe, right in zip(PROBES, expected, strict=True):
        fresh: Any = _class(later.dataclass(**options))
        assert _tried(lambda probe=probe, fresh=fresh: probe(fresh)) == right
    ours: Any = _class(later.dataclass(**options))
    for _ in range(3):
        assert [_tried(lambda probe=probe: probe(ours)) for probe in PROBES] == expected


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_what_a_class_writes_itself_is_kept(options: dict[str, Any]) -> None:
    """Its `__repr__` and `__eq__`; the hash follows the same rules."""
    theirs: Any = _explicit(dataclasses.dataclass(**options))
    ours: Any = _explicit(later.dataclass(**options))
    for cls in (theirs, ours):
        assert repr(cls(name="a")) == "<a>"
        assert cls(name="a") == cls(name="b")
    assert (ours.__hash__ is None) == (theirs.__hash__ is None)


@pytest.mark.parametrize("options", OPTIONS[:5], ids=str)
def test_copies(options: dict[str, Any]) -> None:
    """Shallow and deep; of a frozen one too."""
    cls: Any = _class(later.dataclass(**options))
    one = cls(name="a", parts=[1])
    one_too, other = copy.copy(one), copy.deepcopy(one)
    assert one.__replace__(size=9) == dataclasses.replace(one, size=9) != one
    assert one_too == other == one
    assert one_too.parts is one.parts
    assert other.parts is not one.parts


def test_a_class_may_be_built_upon() -> None:
    """A user's own class, with an `__init__` of its own; a data class on top too."""
    cls: Any = _class(later.dataclass(slots=True))

    class Child(cls):
        def __init__(self, number: int) -> None:
            super().__init__(f"number {number}")

    assert [Child(number).name for number in range(50)][-1] == "number 49"
    assert Child(1) == Child(1)
    base: Any = _class(later.dataclass(slots=True, frozen=True, kw_only=True))
    made = dataclasses.make_dataclass(
        "Made", [("more", int, 1)], bases=(base,), frozen=True
    )
    assert made(name="a", more=2) == made(name="a", more=2) != made(name="a")
    assert [item.name for item in dataclasses.fields(made)][-1] == "more"


def test_one_that_holds_itself_can_be_written() -> None:
    """As the standard library does: `...` where it would go on forever."""
    cls: Any = _class(later.dataclass(slots=True))
    one = cls(name="a")
    one.parts.append(one)
    assert "parts=[...]" in repr(one)


def test_only_slots_and_no_bases() -> None:
    """The rest is the standard library's."""
    with pytest.raises(TypeError):
        _class(later.dataclass())
    with pytest.raises(TypeError):
        later.dataclass(slots=True)(type("Child", (Exception,), {}))


def test_a_pattern_does_what_a_compiled_one_does() -> None:
    """With its flags, by every method; the groups too."""
    ours, theirs = later.pattern(r"(?P<a>x+)y?", re.I), re.compile(r"(?P<a>x+)y?", re.I)
    text = "Xy xx ab xxy"
    assert ours.findall(text) == theirs.findall(text)
    assert ours.sub(r"<\g<a>>", text) == theirs.sub(r"<\g<a>>", text)
    assert ours.split(text) == theirs.split(text)
    assert [found.span() for found in ours.finditer(text)] == [
        found.span() for found in theirs.finditer(text)
    ]
    assert str(ours.search(text, 3)) == str(theirs.search(text, 3))
    assert str(ours.fullmatch(text)) == str(theirs.fullmatch(text))
    assert ours.match("ab") is None
    assert (ours.pattern, ours.flags, ours.groups) == (
        theirs.pattern, theirs.flags, theirs.groups
    )  # fmt: skip
    assert ours.groupindex == theirs.groupindex
    with pytest.raises(AttributeError):
        _ = ours.unknown  # type: ignore[attr-defined]


def _modules() -> list[Any]:
    names = [
        item.name
        for item in pkgutil.walk_packages(neuraxis.__path__, "neuraxis.")
        if not re.search(r"__main__|\.builtin\.|sandbox\.launch", item.name)
    ]
    return [importlib.import_module(name) for name in names]


def test_all_that_is_made_later_can_be_made() -> None:
    """What is wrong with a class or a pattern would show at its first use only."""
    patterns = classes = 0
    for module in _modules():
        for value in vars(module).values():
            for item in value.values() if isinstance(value, dict) else (value,):
                if type(item).__name__ == "_Pattern":
                    nothing = type(item.pattern)()
                    assert item.match(nothing) is None or item.pattern
                    patterns += 1
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and "__dataclass_fields__" in vars(value):
                assert len(dataclasses.fields(value)) == len(value.__slots__)
                classes += 1
    assert patterns > 50
    assert classes > 100
