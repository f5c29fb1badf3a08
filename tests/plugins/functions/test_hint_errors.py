"""Type hints that can mean nothing: told at registration, with what to write."""

import dataclasses
import datetime
import enum
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import msgspec
import pytest

from neuraxis import Session
from neuraxis.errors import ConfigError, ManifestError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import command, plugin_from


class Colour(enum.Enum):
    """Two."""

    RED = "red"
    BLUE = "blue"


class Box:
    """A class without fields."""


@dataclasses.dataclass
class Order:
    """A class with a field whose hint means nothing."""

    amount: Any
    lines: Any


Order.__dataclass_fields__["lines"].type = list[any]  # type: ignore[type-arg,valid-type]

_list: Any = list
_dict: Any = dict
_set: Any = set
_tuple: Any = tuple
_literal: Any = Literal
_mapping: Any = Mapping
_sequence: Any = Sequence

NOTHING = [
    (any, "expected a type, got the function any; write Any (from typing import Any)"),
    (callable, "write Callable (from collections.abc import Callable)"),
    (print, "got the function print; write the class of what is meant"),
    (lambda: 0, "got the function <lambda>"),
    ((int, str), "got the tuple (int, str); write int | str, or tuple[int, str]"),
    ([int], "got the list [int]; write list[int]"),
    ([], "write list[Any]"),
    ({}, "got the dict {}; write dict[str, Any]"),
    ({str: int}, "write dict[str, int]"),
    (_list[int, str], "list[int, str] has 2 types; write list[int | str] for items"),
    (_sequence[int, str], "Sequence[int, str] has 2 types; write Sequence[int | str]"),
    (_set[int, str], "set[int, str] has 2 types; write set[int | str]"),
    (_dict[str], "dict[str] has 1 type; write dict[str, Any]"),
    (
        _dict[str, int, float],
        "dict[str, int, float] has 3 types; write dict[str, int |",
    ),
    (_mapping[str], "Mapping[str] has 1 type; write Mapping[str, Any]"),
    (
        _tuple[..., int],
        "tuple[..., int] has 2 types; ... is allowed only as the second of two",
    ),
    (5, "got the value 5; write its type, int; a default follows it: NAME: int"),
    (True, "got the value True; write its type, bool"),
    (..., "got ...; write Any"),
    (Box(), "got an object of the class Box; write the class itself: Box"),
    (Colour.RED, "got one member of Colour; write Colour, or Literal[Colour.RED]"),
    (datetime, "got the module datetime; write one of its classes: datetime.datetime"),
    (Union, "got Union alone; write, say, int | str"),
    (Optional, "got Optional alone; write, say, int | None"),
    (Literal, 'got Literal alone; write, say, Literal["a", "b"]'),
    (_literal[Box], "expected texts, numbers, true, false, None or members of an Enum"),
    (list[any], "got the function any in list[any]; write Any"),  # type: ignore[valid-type]
    (_list[[int]], "got the list [int] in list[[int]]; write list[int]"),
    (_list[5], "got the value 5 in list[5]"),
    (dict[str, any], "got the function any in dict[str, any]"),  # type: ignore[valid-type]
    (_dict[5, int], "got the value 5 in dict[5, int]"),
    (Order, "Order.lines: expected a type, got the function any"),
    ("any", "got the function any"),
    ("any | None", "any is a function; write Any (from typing import Any) instead"),
    ("Nowhere", "Nowhere: name 'Nowhere' is not defined. Define or import the name"),
    ("string", "name 'string' is not defined. Write str, Python's name of it"),
    ("Strr", "name 'Strr' is not defined. Did you mean str?"),
    ("Boool", "Did you mean bool? If not, define or import the name in the function's"),
    ("Local", "name 'Local' is not defined. Define or import the name in the function"),
    ("list[Local]", "not inside another function, nor only under"),
    ("Iterable[int]", "Write above: from typing import Iterable"),
    ("dict[str]", "dict[str] has 1 type"),
    ("(int, str)", "write int | str, or tuple["),
    ("Optional[int, str]", "Write, say, int | str | None"),
    ("int str", "'int str': expected a type, such as str, int | None or list[str]"),
    ("", "'': expected a type, such as str"),
    ("datetime.dat", "has no attribute 'dat'"),
]


@pytest.mark.parametrize(("hint", "words"), NOTHING, ids=[w for _, w in NOTHING])
@pytest.mark.parametrize("name", ["city", "return"])
def test_a_hint_that_means_nothing(name: str, hint: Any, words: str) -> None:
    """Where, which parameter, what was written, what to write: before any call."""

    @command(effects="read")
    def find(city) -> None: ...  # type: ignore[no-untyped-def]

    find.__annotations__ = {name: hint}
    with pytest.raises(ConfigError) as caught:
        Session(model=ScriptedModel([]), plugins=[find])
    text = str(caught.value)
    place = "what it gives back (->)" if name == "return" else "parameter 'city'"
    assert "test_hint_errors.py:" in text
    assert "error: find: " + place in text
    assert words in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Callable, "a function"),
        (Callable[[int], int] | None, "a function"),
        ("dict[str, Callable[..., int]]", "a function"),
        (list[complex], "a complex number"),
        (Annotated[complex, []], "a complex number"),
    ],
)
def test_what_no_call_can_contain(hint: Any, words: str) -> None:
    """It is refused as a parameter; a result of that class becomes an asset."""

    def find(city) -> None: ...  # type: ignore[no-untyped-def]

    find.__annotations__ = {"city": hint}
    with pytest.raises(ConfigError, match=f"'city': a model cannot write {words};"):
        plugin_from(find)
    find.__annotations__ = {"city": str, "return": hint}
    plugin_from(find)


def test_kwargs_are_understood_too() -> None:
    """The type of any other name is that of a parameter."""

    def find(**rest: any) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(ConfigError, match=r"parameter '\*\*': .* the function any"):
        plugin_from(find)


class Row(TypedDict):
    """A class with fields."""

    name: str


@pytest.mark.parametrize(
    "hint",
    [
        Any,
        None,
        Box,
        list,
        typing.List,  # noqa: UP006
        list[int | str],
        dict[int, Any],
        dict[Colour, Row],
        dict[Literal["a", "b"], int],
        dict[Any, Any],
        tuple[()],
        tuple[int, ...],
        tuple[int, str],
        Literal["a", 1, None, Colour.RED],
        Row | None,
        typing.Never,
        typing.Iterator[int],
        type[int],
        typing.TypeVar("T"),
        typing.NewType("Name", str),
    ],
    ids=repr,
)
def test_a_hint_that_means_something(hint: Any) -> None:
    """None of these is taken for a mistake; a class of any kind comes by reference."""

    def find(city) -> None: ...  # type: ignore[no-untyped-def]

    find.__annotations__ = {"city": hint, "return": hint}
    spec = plugin_from(find).spec.commands[0]
    assert spec.parameter_names == ("city",)
    assert spec.response is not None


@pytest.mark.parametrize(
    "hint",
    ["x" * 9_000, "(" * 500 + ")" * 500, "int | " * 900, "(" + "int, " * 99 + ")"],
)
def test_a_hint_of_many_letters(hint: str) -> None:
    """Its beginning says which it is."""

    def work(x: Any) -> None:
        """Work."""

    work.__annotations__["x"] = hint
    with pytest.raises(ConfigError, match="parameter 'x': ") as caught:
        plugin_from(work)
    assert len(str(caught.value)) < 500


class Pair(msgspec.Struct, array_like=True):
    x: int
    y: int


def test_a_struct_without_field_names_is_refused() -> None:
    """A model writes the names of the fields."""

    def work(points: list[Pair]) -> None:
        """Work."""

    with pytest.raises(ConfigError, match="parameter 'points': Pair has array_like"):
        plugin_from(work)


class Shape(typing.Protocol):
    def area(self) -> float: ...


@typing.runtime_checkable
class Checked(Shape, typing.Protocol): ...


def test_a_protocol_that_cannot_be_checked_is_refused() -> None:
    """It said so only when a value came: `isinstance` raises a TypeError."""

    def measure(shape: Shape) -> list[Shape]:
        """Measure."""
        return [shape]

    def check(shape: Checked) -> list[Checked]:
        """Check."""
        return [shape]

    with pytest.raises(ManifestError, match="Shape is a Protocol") as caught:
        plugin_from(measure)
    assert len(caught.value.problems) == 2
    assert "@runtime_checkable (from typing import" in str(caught.value)
    assert plugin_from(check).commands["check"].parameters.json


class Shop:
    """What a run may be given."""


T = typing.TypeVar("T")


@dataclasses.dataclass
class RunContext(typing.Generic[T]):
    """As pydantic-ai has it, whose own hints cannot be resolved."""

    deps: T
    model: "AbstractModel"  # type: ignore[name-defined]  # noqa: F821


class RunContextWrapper(typing.Generic[T]):
    """As OpenAI Agents has it."""


class ToolContext(RunContextWrapper[T]):
    """Its subclass."""


class Own(RunContextWrapper[Shop]):
    """A subclass with a name of its own."""


class ToolRuntime(typing.Generic[T]):
    """As LangChain has it."""


RunContext.__module__ = "pydantic_ai.tools"
RunContextWrapper.__module__ = ToolContext.__module__ = "agents"
ToolRuntime.__module__ = "langchain.tools"


def test_a_programs_own_context_is_a_class_like_others() -> None:
    """Only other frameworks' classes of these names are refused."""

    @dataclasses.dataclass
    class RunContext:
        user: str

    def greet(c: RunContext) -> str:
        """Greet."""
        return c.user

    assert plugin_from([greet])


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (RunContext, "RunContext belongs to another framework; write ctx: Context ("),
        (
            RunContext[int],
            "write ctx: Context[int] (from neuraxis import Context). run(",
        ),
        (RunContextWrapper[Shop] | None, "write ctx: Context[Shop] (from"),
        (Annotated[ToolContext[Shop], []], "write ctx: Context[Shop] (from"),
        (ToolRuntime, "write ctx: Context (from"),
        (Own, "Own belongs to another framework; write ctx: Context (from"),
        ("RunContext[Shop]", "write ctx: Context[Shop] (from"),
        ("ToolRuntime[Nowhere]", "ToolRuntime[Nowhere] belongs to another framework; "),
        ("nowhere.RunContext[a.Shop] | None", "write ctx: Context[Shop] (from"),
        ("Optional[RunContextWrapper['Nowhere']]", "write ctx: Context[Nowhere] (from"),
    ],
)
def test_the_context_of_another_framework(hint: Any, words: str) -> None:
    """What to write instead, and where the program's own object comes from."""

    def find(ctx, city: str) -> None: ...  # type: ignore[no-untyped-def]

    find.__annotations__["ctx"] = hint
    with pytest.raises(ManifestError, match="error: find: parameter 'ctx': ") as caught:
        plugin_from(find)
    assert words in str(caught.value)
    assert "run(..., deps=...) fills ctx.deps" in str(caught.value)


def test_a_class_inside_a_function() -> None:
    """With the hints in quotes, nothing finds it: that is what is told."""

    class Local:
        pass

    def find(place: "Local", all_of_them: "list[Local]") -> None: ...

    with pytest.raises(ManifestError) as caught:
        plugin_from(find)
    text = str(caught.value)
    assert text.count("not inside another function") == 2
    assert "Did you mean" not in text
