"""Python functions and classes as plugins."""

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import ipaddress
import pathlib
import sys
import types
import typing
import uuid
import zoneinfo
from collections.abc import AsyncIterator, Generator, Iterator, Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
    Union,
)

import pytest

from neuraxis import Session
from neuraxis.dialects.native.tool_schema import for_server
from neuraxis.errors import CommandError, ConfigError, ManifestError
from neuraxis.plugins.context import Context
from neuraxis.plugins.functions.command import command, plugin_from
from neuraxis.plugins.registry import Command
from neuraxis.schema.schema import Schema
from neuraxis.specs import Effects, Example, ExampleCall
from neuraxis.testing import call, check_plugin, prompt_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Access(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Gap(enum.Flag):
    ONE = 1
    FOUR = 4


class Shape(enum.Enum):
    ROUND = (1,)
    FLAT = (2,)


@dataclasses.dataclass
class Point:
    """A place on the plane.

    Attributes:
        x: how far to the right.
    """

    x: int
    y: float = 0.0


@dataclasses.dataclass
class Tree:
    name: str
    children: "list[Tree]" = dataclasses.field(default_factory=list["Tree"])


class Movie(TypedDict):
    title: str
    when: datetime.date
    stars: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: Point = Point(0)


class Opaque:
    pass


UserId = NewType("UserId", int)
T = TypeVar("T", bound=str)


def only(function: Any) -> Command:
    """The one command of a function's plugin."""
    plugin = plugin_from(function)
    assert len(plugin.commands) == 1
    return next(iter(plugin.commands.values()))


def schema_for(hint: Any) -> Any:
    """The schema of a parameter of this type, with its definitions."""

    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    schema = only(function).spec.parameters
    found = schema["properties"]["value"]
    if "x-type" not in found and "anyOf" not in found:  # tested on its own
        found = {key: found[key] for key in found if key != "x-asset-ref"}
    return {**found, "$defs": schema["$defs"]} if "$defs" in schema else found


def converted(hint: Any, value: Any) -> Any:
    """What the function is called with for a JSON value of the call."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": hint}
    made = only(function)
    assert made.run is not None
    arguments, _ = made.parameters.coerce({"value": value})
    assert made.parameters.problems(arguments) == ()
    return made.run(**arguments)


# --- the spec ----------------------------------------------------------------------


def test_a_function_is_a_plugin() -> None:
    """Name, docstring, hints and defaults are the spec."""

    @command(effects="read", tool_name="POP", time_limit=5, failure_field="ok")
    def population(city: str, year: int = 2025) -> dict[str, int]:
        """Inhabitants of a city.

        As its registry counts them.

        Args:
            city: its English name.
            year (int): the year
                asked for.

        Returns:
            A number for each source.

        Raises:
            KeyError: never.
        """
        return {city: year}

    plugin = plugin_from(population)
    spec = plugin.commands["population"].spec
    assert plugin.spec.name == "population"
    assert plugin.spec.generation == "python"
    assert plugin.spec.source.endswith(
        "test_a_function_is_a_plugin.<locals>.population"
    )
    assert spec.description == "Inhabitants of a city.\n\nAs its registry counts them."
    assert plugin.spec.description == spec.description
    assert spec.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "its English name."},
            "year": {
                "type": "integer",
                "description": "the year asked for.",
                "default": 2025,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }
    assert spec.response == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
        "description": "A number for each source.",
    }
    assert spec.effects == Effects(kind="read", destructive=False)
    assert (spec.tool_name, spec.time_limit, spec.failure_field) == ("POP", 5, "ok")
    assert population(city="Bern") == {"Bern": 2025}


def test_a_bare_function_needs_no_decorator() -> None:
    """Neither hints nor a docstring are needed."""

    def echo(value, more=None): ...  # type: ignore[no-untyped-def]

    spec = only(echo).spec
    anything = {"x-asset-ref": True}
    assert spec.parameters["properties"] == {"value": anything, "more": anything}
    assert spec.required == ("value",)
    assert (spec.response, spec.description, spec.effects) == (None, "", Effects())


def test_the_decorator_without_brackets() -> None:
    """`@command` alone marks a function, which stays what it is."""

    def plain() -> None: ...

    assert command(plain) is plain


def test_the_decorator_refuses_unknown_effects() -> None:
    """An author's mistake is told when the module is imported."""
    with pytest.raises(ConfigError, match="expected one of none, read"):
        command(effects="often")


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (Sequence, {"type": "array"}),
        (Mapping, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (
            Mapping[str, float],
            {"type": "object", "additionalProperties": {"type": "number"}},
        ),
        (Optional[int], {"type": ["integer", "null"]}),  # noqa: UP045
        (int | str, {"type": ["integer", "string"]}),
        (Union[int, Any], {}),  # noqa: UP007
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1], {"type": ["string", "integer"], "enum": ["a", 1]}),
        (Literal[Colour.RED], {"type": "string", "enum": ["red"]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Shape, {"type": "string", "enum": ["ROUND", "FLAT"]}),
        (Annotated[int, "years"], {"type": "integer", "description": "years"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
        (decimal.Decimal, {"type": "string", "format": "decimal"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (bytes, {"type": "string", "format": "byte"}),
        (UserId, {"type": "integer"}),
        (T, {"type": "string"}),
    ],
)
def test_hints(hint: Any, schema: Any) -> None:
    """Each kind of hint has its schema."""
    assert schema_for(hint) == schema


def test_B41_other_classes_are_opaque() -> None:
    """Only a reference can supply them."""
    name = f"{Opaque.__module__}.Opaque"
    opaque: dict[str, Any] = {"x-type": name, "not": {}, "x-asset-ref": True}
    assert schema_for(Opaque) == opaque
    assert schema_for(Opaque | None)["x-asset-ref"] is True
    assert schema_for(list[Opaque])["items"] == opaque


@dataclasses.dataclass
class Holding:
    """A class with a field that looks like a reference."""

    asset_id: str


@pytest.mark.parametrize(
    "hint",
    [
        list,
        list[int],
        set[str],
        tuple[int, str],
        dict,
        Mapping[str, float],
        Any,
        object,
        bytes,
        Point,
        Movie,
        Pair,
        list[Point],
        Point | None,
        list[Movie] | None,
        str | list[str],
        Opaque,
        list[Tree] | None,
    ],
)
def test_what_a_model_may_not_have_seen_takes_a_reference(hint: Any) -> None:
    """A list, a mapping, an object of an earlier answer may be stored."""

    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    assert only(function).parameters.takes_reference(("value",))


@pytest.mark.parametrize(
    "hint",
    [
        str,
        int,
        float,
        bool,
        str | None,
        Colour,
        Shape,
        Literal["a", 1],
        int | str,
        datetime.date,
        pathlib.Path,
        decimal.Decimal,
        Holding,
        list[Holding],
    ],
)
def test_scalars_take_no_reference(hint: Any) -> None:
    """They are shown; and a field `asset_id` of its own is data (B44)."""

    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": hint}
    assert not only(function).parameters.takes_reference(("value",))


def test_asset_refs_of_the_decorator() -> None:
    """Named parameters take references, `*` is all of them at once (B45)."""

    @command(asset_refs=["rows", "*"])
    def count(rows: str, other: int) -> int:
        return len(rows) + other

    @command(asset_refs=["rowz"])
    def wrong(rows: list[int]) -> None: ...

    schema = Schema(only(count).spec.parameters)
    assert schema.takes_reference(("rows",))
    assert not schema.takes_reference(("other",))
    assert schema.takes_reference(())
    with pytest.raises(
        ManifestError, match=r"no parameter 'rowz'. Did you mean rows\?"
    ):
        plugin_from(wrong)


def test_dataclasses() -> None:
    """Fields, texts and defaults; recursion by name."""
    schema = schema_for(Point)
    assert schema["$ref"] == "#/$defs/Point"
    assert schema["$defs"]["Point"] == {
        "type": "object",
        "description": "A place on the plane.",
        "properties": {
            "x": {"type": "integer", "description": "how far to the right."},
            "y": {"type": "number"},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    assert "description" not in schema_for(Tree)["$defs"]["Tree"]


def test_a_dataclass_as_answer_is_an_object() -> None:
    """The root of an answer's schema shows its fields without a reference."""

    def find() -> Point:
        """Find it."""
        return Point(1)

    response = only(find).spec.response
    assert response is not None
    assert response["type"] == "object"
    assert "$defs" not in response


def test_two_classes_of_one_name() -> None:
    """They do not meet under `$defs`."""

    @dataclasses.dataclass
    class Point:
        z: str

    here = Point

    def move(a: Any, b: Any) -> None: ...

    move.__annotations__ = {"a": globals()["Point"], "b": here}
    definitions = only(move).spec.parameters["$defs"]
    assert sorted(definitions) == ["Point", "Point_"]


def test_open_functions() -> None:
    """`**rest` takes any name, and the model is told so."""

    def call(first: int, **rest: int) -> Any:
        return first, rest

    def free(**rest: Any) -> Any:
        return rest

    made = only(call)
    assert made.spec.parameters["additionalProperties"] == {"type": "integer"}
    assert made.spec.parameter_names == ("first",)
    assert made.run is not None
    assert made.run(first=1, x=2) == (1, {"x": 2})
    assert "(integer)\n- any other name (integer)\n" in prompt_of(call)
    assert "Parameters:\n- any other name\n" in prompt_of(free)


def test_stars_are_refused() -> None:
    """A call gives names only; the message says what to write instead."""

    def many(*texts: str, **rest: Any) -> None: ...

    @functools.wraps(many)
    def logged(*values: Any, **named: Any) -> None: ...

    for function in (many, logged, command(effects="read")(many)):
        with pytest.raises(ManifestError, match=r"\*texts: .*; write a list, such as "):
            plugin_from(function)
    bound = command(effects="read", name="p")(functools.partial(many, "bound"))
    assert plugin_from(bound).commands


def test_a_docstring_of_a_parameter_that_is_not_there_is_a_warning() -> None:
    """With the nearest name; the command works."""

    def find(text: str, context: Context, limit: int = 5) -> str:
        """Find it.

        Args:
            txet: what.
            context: of the call.
            limit: how many.
        """
        return text

    class Finder:
        seek = staticmethod(command(effects="read")(find))

    for source in (find, [find], Finder()):
        (problem,) = plugin_from(source).problems
        assert problem.severity == "warning"
        assert problem.message == (
            "find: the docstring describes a parameter 'txet', which the function does "
            "not have. Did you mean text? Parameters are: text, limit"
        )
        assert any("'txet'" in told for told in check_plugin(source))

    @functools.wraps(find)
    def wrapped(*values: Any, **named: Any) -> str:
        return find(*values, **named)

    assert len(plugin_from(wrapped).problems) == 1
    bound = functools.partial(find, text="x")
    bound.__doc__ = "Find.\n\nArgs:\n    text: what.\n"
    assert plugin_from(command(effects="read", name="p")(bound)).problems == ()


def test_positional_only_parameters() -> None:
    """A call names them all the same."""

    def divide(a: float, b: float, /) -> float:
        return a / b

    made = only(divide)
    assert made.run is not None
    assert made.run(b=4, a=2) == 0.5


def test_context_is_not_shown() -> None:
    """The model neither sees it nor may give it."""

    def save(text: str, context: Context) -> None: ...
    def maybe(text: str, *, ctx: Context | None = None) -> None: ...

    for function, name in ((save, "context"), (maybe, "ctx")):
        made = only(function)
        assert made.context_name == name
        assert made.spec.parameter_names == ("text",)
        assert not made.parameters.valid({"text": "", name: {}})


def test_hints_in_quotes() -> None:
    """They are resolved in the module; what cannot be says so."""

    def good(when: "datetime.date", more: "list[Point]") -> "int":
        return 1

    def bad(when: "Nowhere") -> None: ...  # type: ignore # noqa: F821, PGH003

    assert only(good).spec.parameters["properties"]["when"]["format"] == "date"
    with pytest.raises(ManifestError, match="'when': Nowhere: name 'Nowhere' is not"):
        plugin_from(bad)


def test_examples_of_the_decorator() -> None:
    """The same forms as in a manifest, or the dataclass."""
    own = Example(question="q", calls=(ExampleCall(tool="X", arguments={}),))

    @command(examples=[{"q": "Where?", "a": {"city": "Bern"}}, own])
    def find(city: str) -> None: ...

    first, second = only(find).spec.examples
    assert first.calls == (ExampleCall(tool="find", arguments={"city": "Bern"}),)
    assert second is own
    with pytest.raises(ManifestError, match="expected an example"):
        plugin_from(command(examples=["x"])(lambda: None))


def test_defaults() -> None:
    """A default that JSON can say is shown; a None that is not allowed is not."""

    def call(
        a: Colour = Colour.RED,
        b: int | None = None,
        c: int = None,  # type: ignore[assignment] # noqa: RUF013
        d: list[int] = [],  # noqa: B006
        e: Any = object(),  # noqa: B008
        f: Path = pathlib.Path("x"),
    ) -> None: ...

    properties = only(call).spec.parameters["properties"]
    shown = {
        name: node["default"] for name, node in properties.items() if "default" in node
    }
    assert shown == {"a": "red", "b": None, "d": []}
    assert only(call).spec.required == ()


Path = pathlib.Path


# --- the call -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "given", "expected"),
    [
        (Point, {"x": 1, "y": 2}, Point(1, 2.0)),
        (list[Point], [{"x": 1}], [Point(1)]),
        (dict[str, Point], {"a": {"x": 1}}, {"a": Point(1)}),
        (dict[int, str], {"1": "a"}, {1: "a"}),
        (Point | None, None, None),
        (Point | None, {"x": 1}, Point(1)),
        (Point | Tree, {"name": "t"}, Tree("t")),
        (int | datetime.date, "2026-01-02", datetime.date(2026, 1, 2)),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
        (Pair, {"left": 1, "right": {"x": 2}}, Pair(1, Point(2))),
        (Colour, "blue", Colour.BLUE),
        (Shape, "FLAT", Shape.FLAT),
        (Literal[Colour.RED], "red", Colour.RED),
        (float, 3, 3.0),
        (int, 3.0, 3),
        (set[int], [1, 2], {1, 2}),
        (set[int], [1, 1], {1}),
        (collections.deque[float], [1], collections.deque([1.0])),
        (collections.deque, [1], collections.deque([1])),
        (Access, 3, Access.READ | Access.WRITE),
        (Access | None, 0, Access(0)),
        (list[Access], [4, 5], [Access.RUN, Access.RUN | Access.READ]),
        (frozenset[int], [1], frozenset({1})),
        (tuple[int, ...], [1, 2], (1, 2)),
        (tuple[int, Colour], [1, "red"], (1, Colour.RED)),
        (tuple, [1], (1,)),
        (datetime.datetime, "2026-01-02T03:04:05Z",
         datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)),
        (datetime.timedelta, 60, datetime.timedelta(minutes=1)),
        (datetime.timedelta, "PT5M", datetime.timedelta(minutes=5)),
        (decimal.Decimal, 12.5, decimal.Decimal("12.5")),
        (decimal.Decimal | None, 0.1, decimal.Decimal("0.1")),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10")),
        (uuid.UUID, "00000000-0000-0000-0000-0000000000ff", uuid.UUID(int=255)),
        (pathlib.Path, "a/b", pathlib.Path("a/b")),
        (ipaddress.IPv4Address, "192.0.2.1", ipaddress.IPv4Address("192.0.2.1")),
        (ipaddress.IPv6Address, "2001:db8::1", ipaddress.IPv6Address("2001:db8::1")),
        (ipaddress.IPv4Network, "192.0.2.0/24", ipaddress.IPv4Network("192.0.2.0/24")),
        (ipaddress.IPv6Network, "2001::/32", ipaddress.IPv6Network("2001::/32")),
        (ipaddress.IPv4Interface, "10.0.0.1/8", ipaddress.IPv4Interface("10.0.0.1/8")),
        (ipaddress.IPv6Interface, "2001::1/8", ipaddress.IPv6Interface("2001::1/8")),
        (zoneinfo.ZoneInfo, "Europe/Berlin", zoneinfo.ZoneInfo("Europe/Berlin")),
        (zoneinfo.ZoneInfo | None, "UTC", zoneinfo.ZoneInfo("UTC")),
        (dict[ipaddress.IPv4Address, int], {"192.0.2.1": 1},
         {ipaddress.IPv4Address("192.0.2.1"): 1}),
        (bytes, "aGk=", b"hi"),
        (UserId, 5, 5),
        (Annotated[Colour, "c"], "red", Colour.RED),
    ],
)  # fmt: skip
def test_arguments_are_converted(hint: Any, given: Any, expected: Any) -> None:
    """The function gets the type it asks for."""
    found = converted(hint, given)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("given", ["5 minutes", "PT5M", datetime.timedelta(1)])
def test_a_duration_is_told_in_seconds(given: Any) -> None:
    """In the prompt, in errors and to servers, whatever the author says of it."""

    @command(effects="none")
    def wait(how_long: datetime.timedelta) -> datetime.timedelta:
        """Wait.

        Args:
            how_long: the time.
        """
        return how_long

    (problem,) = only(wait).parameters.problems({"how_long": given})
    assert "number of seconds" in problem.expected
    told = prompt_of(wait)
    assert "- `how_long` (number of seconds): the time." in told
    assert "Returns: number of seconds" in told
    shown = for_server(only(wait).spec.parameters)["properties"]["how_long"]
    assert shown == {"type": "number", "description": "the time (in seconds)"}


def test_a_typed_dict_is_converted_inside() -> None:
    """Its fields are, where they need it."""
    found = converted(Movie, {"title": "t", "when": "2026-01-02"})
    assert found == {"title": "t", "when": datetime.date(2026, 1, 2)}


def test_a_sum_of_flags_is_told_and_checked() -> None:
    """The prompt names the members; a number that is no sum of them is refused."""

    def allow(access: Access, gap: Gap = Gap.ONE | Gap.FOUR) -> None:
        """Allow."""

    told = prompt_of(allow)
    assert "at most 7): a sum of 1 (READ), 2 (WRITE), 4 (RUN)" in told
    assert "Default: 5." in told
    assert only(allow).parameters.problems({"access": 8})
    with pytest.raises(CommandError, match="gap: expected a sum of 1, 4, got 2"):
        only(allow).run(access=1, gap=2)  # type: ignore[misc]


def test_native_values_pass() -> None:
    """What came by reference is already of the type."""

    def call(
        point: Point, colour: Colour, many: list[Point], day: datetime.date
    ) -> Any:
        return point, colour, many, day

    made = only(call)
    assert made.run is not None
    given = (Point(1), Colour.RED, [Point(2)], datetime.date(2026, 1, 1))
    found = made.run(point=given[0], colour=given[1], many=given[2], day=given[3])
    assert found == given


def test_what_cannot_be_converted_is_told_to_the_model() -> None:
    """A date that no calendar has."""

    def call(day: datetime.date) -> None: ...

    made = only(call)
    assert made.run is not None
    with pytest.raises(CommandError, match='got "2026-02-31"'):
        made.run(day="2026-02-31")


def test_arguments_are_not_changed() -> None:
    """The call's own values stay as they were."""
    given = {"x": 1, "y": 2}
    assert converted(Point, given) == Point(1, 2.0)
    assert given == {"x": 1, "y": 2}


async def test_async_functions() -> None:
    """They stay awaitable, and are told apart."""

    @command
    async def wait(day: datetime.date) -> datetime.date:
        await asyncio.sleep(0)
        return day

    made = only(wait)
    assert made.is_async
    assert made.run is not None
    assert await made.run(day="2026-01-02") == datetime.date(2026, 1, 2)


def test_pydantic_models() -> None:
    """Shown with their own schema, given as instances."""
    pydantic = pytest.importorskip("pydantic")
    inner = pydantic.create_model("Inner", n=(int, ...))
    model = pydantic.create_model(
        "Model", a=(Annotated[int, pydantic.Field(ge=1)], ...), inner=(list[inner], [])
    )
    schema = schema_for(model)
    assert set(schema["$defs"]) == {"Inner", "Model"}
    found = converted(model, {"a": 1, "inner": [{"n": 2}]})
    assert (found.a, found.inner[0].n) == (1, 2)
    bounded = schema_for(Annotated[int, pydantic.Field(ge=1, description="d")])
    assert bounded == {"type": "integer", "minimum": 1, "description": "d"}


# --- classes, modules, lists ---------------------------------------------------


class Counter:
    """Counts things."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    @command(effects="once")
    def add(self, by: int) -> int:
        """Count more."""
        self.count += by
        return self.count

    @command(effects="none")
    async def show(self) -> int:
        return self.count

    @command
    @staticmethod
    def version() -> str:
        return "1"

    def hidden(self) -> None: ...


def test_a_class_is_made_and_its_marked_methods_are_commands() -> None:
    """In the order they stand; what is not marked is not shown."""
    plugin = plugin_from(Counter)
    assert (plugin.spec.name, plugin.spec.description) == ("Counter", "Counts things.")
    assert list(plugin.commands) == ["add", "show", "version"]
    assert plugin.commands["show"].is_async
    add = plugin.commands["add"]
    assert add.spec.parameter_names == ("by",)
    assert add.run is not None
    assert (add.run(by=1), add.run(by=2)) == (1, 3)


def test_an_instance_is_used_as_it_is() -> None:
    """Its state is its own."""
    add = plugin_from(Counter(10), name="mine").commands["add"]
    assert add.run is not None
    assert (add.run(by=1), add.plugin.name) == (11, "mine")


def test_a_class_may_take_its_config() -> None:
    """By its name."""

    class Named:
        def __init__(self, *, config: Mapping[str, Any]) -> None:
            self.config = config

        @command
        def get(self) -> Any:
            return self.config

    run = plugin_from(Named, config={"a": 1}).commands["get"].run
    assert run is not None
    assert run() == {"a": 1}


def test_a_class_without_commands_is_an_error() -> None:
    """It says what to do."""
    with pytest.raises(
        ConfigError, match="Mark the functions that a model may call with @command"
    ):
        plugin_from(Opaque)


def test_modules_and_lists() -> None:
    """A module's marked functions; every function of a list."""
    module = types.ModuleType("pack.tools", "Tools.")

    @command
    def one() -> int:
        return 1

    def two() -> int:
        return 2

    module.__dict__.update(one=one, two=two)
    plugin = plugin_from(module)
    assert (plugin.spec.name, plugin.spec.description) == ("tools", "Tools.")
    assert list(plugin.commands) == ["one"]
    listed = plugin_from([one, two], name="both")
    assert (listed.spec.name, list(listed.commands)) == ("both", ["one", "two"])
    assert plugin_from([one]).spec.name == "test_command"
    with pytest.raises(ManifestError, match="'one' is declared twice"):
        plugin_from([one, one])


def test_a_plugin_is_itself() -> None:
    """Loading one that is loaded changes nothing."""
    plugin = plugin_from(Counter)
    assert plugin_from(plugin) is plugin


def test_nothing_is_imported_for_hints() -> None:
    """Pydantic is looked at only where somebody else imported it."""
    import subprocess

    code = (
        "import sys, neuraxis.plugins.functions.command as p\n"
        "def f(a: int) -> str: return ''\n"
        "p.plugin_from(f)\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_a_function_without_a_readable_signature() -> None:
    """The error names it."""
    assert inspect.isbuiltin(getattr)
    with pytest.raises(ManifestError, match="getattr"):
        plugin_from(getattr)


def test_what_is_no_plugin_says_what_it_is() -> None:
    """The value itself, a constructor's needs, a function without a name."""
    with pytest.raises(ConfigError, match="plugin 2: expected a function, or a class"):
        plugin_from(2)

    class Needs:
        def __init__(self, database: str, table: str) -> None: ...

        @command
        def ask(self) -> None: ...

    with pytest.raises(
        ConfigError, match=r"needs database, table.*plugins=\[.*Needs\("
    ):
        plugin_from(Needs)
    assert list(plugin_from(Needs("a", "b")).commands) == ["ask"]
    with pytest.raises(ManifestError, match="expected a function with a name"):
        plugin_from(lambda a: a)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"effect": "read"}, "there is no option 'effect'. Did you mean effects"),
        (
            {"others_write": True},
            r"key of effects: effects={..., 'others_write': True}",
        ),
        (
            {"time_limit": "5"},
            "time_limit: expected a finite number of seconds above 0, got .5",
        ),
        (
            {"time_limit": -1},
            "time_limit: expected a finite number of seconds above 0, got -1",
        ),
        (
            {"retries": 2},
            r"option 'retries'\. A session .*Options\(on_error=.retry.\)\), unless the "
            r"command.s effects are once, the default\. Options are: name",
        ),
        ({"max_retries": 2}, r"Options\(on_error=\"retry\"\)"),
        (
            {"requires_approval": True},
            r"Write effects={.kind.: .once., .needs_approval.: True}\. Options are",
        ),
        ({"timeout": 5}, r"'timeout'\. Write time_limit=SECONDS\. Options are"),
        ({"strict": True}, r"there is no option 'strict'\. Options are"),
        ({"concurrency": 0}, "concurrency: expected a whole number above 0, got 0"),
        ({"concurrency": "2"}, "concurrency: expected a whole number above 0"),
        ({"tool_name": 3}, "tool_name: expected a name on one line, got 3"),
        ({"trusted_only": "to"}, "trusted_only: expected a list of names"),
        ({"names_file": ["path"]}, "names_file: expected a mapping"),
    ],
)
def test_an_option_that_cannot_be_meant(given: dict[str, Any], words: str) -> None:
    """Told where it is written: with `concurrency=0` the first call would never end."""
    with pytest.raises(ConfigError, match=words):
        command(**given)


@pytest.mark.parametrize("options", [{}, {"effects": "read"}])
def test_command_above_a_class(options: dict[str, Any]) -> None:
    """A class is no function: what to write, and how a class becomes a plugin."""
    decorate: Any = command(**options) if options else command
    with pytest.raises(
        ConfigError,
        match=r"got the class Diary\. Write @command above each method .*"
        r"plugins=\[Diary\], or an object of it: plugins=\[Diary\(",
    ):

        @decorate
        class Diary:
            def note(self) -> None: ...


def test_command_above_what_takes_no_mark() -> None:
    """A property, a builtin function, a number: what to write instead."""
    decorate: Any = command
    with pytest.raises(ConfigError, match=r"got a property\. Leave @prop"):
        decorate(property(len))
    with pytest.raises(ConfigError, match=r"len cannot be marked\. Write"):
        decorate(len)
    with pytest.raises(ConfigError, match="expected a function, got 5"):
        decorate()(5)


def test_a_class_method_is_marked_with_brackets_and_without() -> None:
    """Both ways of writing the decorator are one."""

    class Sums:
        @command
        @classmethod
        def one(cls) -> int:
            return 1

        @command(effects="read")
        @classmethod
        def two(cls) -> int:
            return 2

    assert list(plugin_from(Sums).commands) == ["one", "two"]


def test_a_generator_says_that_it_answers_a_list() -> None:
    """As it is told: the items are one answer. Else each of them is a wrong one."""

    def plain() -> Iterator[int]:
        yield 1

    def whole() -> "Generator[str, None, None]":
        yield ""

    async def later() -> AsyncIterator[Point]:
        yield Point(x=1, y=2)

    def bare() -> typing.Iterator:  # type: ignore[type-arg]
        yield 1

    for function, items in ((plain, "integer"), (whole, "string")):
        found = only(function).spec.response
        assert found == {"type": "array", "items": {"type": items}}
    found = only(later).spec.response
    assert found is not None
    assert found["items"] == {"$ref": "#/$defs/Point"}
    assert only(bare).spec.response == {"type": "array"}


def test_a_method_without_self() -> None:
    """Told when it is registered: each call of it would fail, or lose a value."""

    class None_:
        @command
        def note() -> None: ...  # type: ignore[misc]

    class Hinted:
        @command
        def note(text: str, more: int) -> None: ...  # type: ignore[misc]

    class Quoted:
        @command
        def note(text: "str") -> None: ...  # type: ignore[misc]

    class Fine:
        @command
        def note(this: Any, text: str) -> None: ...

    for cls, got in ((None_, "none"), (Hinted, "text"), (Quoted, "text")):
        words = rf"error: .*note: expected self .* got {got}; write def note\(self, "
        with pytest.raises(ManifestError, match=words):
            plugin_from(cls)
    assert plugin_from(Fine).spec.commands[0].parameter_names == ("text",)


def test_what_a_function_gave_is_no_plugin() -> None:
    """`plugins=[greet()]`: the brackets are too many."""
    for given in (None, 5, Point(x=1, y=2), {"name": "x"}):
        with pytest.raises(ConfigError, match=r"pass the function itself, without"):
            plugin_from(given)
    with pytest.raises(ConfigError, match=r"may call with @command$"):
        plugin_from(Opaque)


def test_a_list_with_something_else_than_functions() -> None:
    """A list in the list is one plugin of functions."""
    for wrong in (5, Colour):
        with pytest.raises(ConfigError, match=r"is no function; write each plugin of"):
            plugin_from([wrong])


def test_effects_without_their_name() -> None:
    """`@command("read")` is what a beginner writes."""
    decorate: Any = command
    with pytest.raises(ConfigError, match=r"write @command\(effects='read'\)"):
        decorate("read")


def test_only_a_close_that_is_no_command_is_called_at_the_end(
    tmp_path: pathlib.Path,
) -> None:
    """By the method's name, whatever its command is called."""
    done: list[str] = []

    class Door:
        """A door."""

        @command(name="shut", effects="once")
        def close(self) -> str:
            """Shut the door."""
            done.append("shut")
            return "shut"

    class Room:
        """A room."""

        @command(name="close", effects="once")
        def shut(self) -> str:
            """Shut the room."""
            return "shut"

        def close(self) -> None:
            done.append("closed")

    for plugin in (Door, Room):
        with Session("local:", plugins=[plugin], workspace=tmp_path):
            pass
    assert done == ["closed"]


def test_a_partial_is_no_command() -> None:
    """It has neither name nor description: what to write instead."""

    def find(text: str, mode: str) -> None: ...

    def bound() -> Any:
        return functools.partial(find, mode="fast")

    decorate: Any = command
    for register in (
        lambda: plugin_from(bound()),
        lambda: plugin_from([bound()]),
        lambda: decorate(bound()),
        lambda: command(effects="read")(bound()),
    ):
        with pytest.raises(
            ConfigError,
            match=r"partial\(find, \.\.\.\) has no name and no description for the "
            r"model; write a def with a docstring that calls find\(",
        ):
            register()
    assert list(plugin_from(command(name="quick")(bound())).commands) == ["quick"]


class FunctionTool:
    """As OpenAI Agents makes of a function."""


def test_the_tool_of_a_framework_that_has_no_bridge() -> None:
    """Not `without parentheses`: the function below the decorator is meant."""
    words = r"take the plain function that it was made of, without a decorator such as"
    decorate: Any = command
    for register in (plugin_from, decorate, command(effects="read")):
        with pytest.raises(ConfigError, match=words) as caught:
            register(FunctionTool())
        assert "parentheses" not in str(caught.value)


def test_the_mark_is_on_the_function_itself() -> None:
    """The decorator returns the same function, and a second mark replaces the first."""

    def find(text: str) -> None: ...

    decorate: Any = command
    first = decorate(find, name="a")
    second = decorate(find, name="b")
    assert first is second is find
    assert list(plugin_from(first).commands) == ["b"]


@dataclasses.dataclass
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("the number must not be negative")
        if self.number == 7:
            raise ValueError


def test_a_class_that_refuses_a_value_is_an_error_of_the_argument(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As with pydantic: the parameter and the reason, no traceback in the log."""

    @command(effects="none")
    def take(value: Positive, more: list[Positive] = []) -> int:  # noqa: B006
        """Take it."""
        return value.number

    for arguments, message in (
        ({"value": {"number": -1}}, "value: the number must not be negative"),
        (
            {"value": {"number": 1}, "more": [{"number": -1}]},
            "more: the number must not be negative",
        ),
        ({"value": {"number": 7}}, "value: ValueError"),
    ):
        error = call(take, "take", arguments).error
        assert error is not None
        assert message in error.message
    assert "Traceback" not in caplog.text
    assert call(take, "take", {"value": {"number": 1}}).value == 1


def test_addresses_and_time_zones_are_text() -> None:
    """The model is told what to write; an address is checked before anything runs."""

    def ask(
        host: ipaddress.IPv4Address, net: ipaddress.IPv6Network, zone: zoneinfo.ZoneInfo
    ) -> str:
        """Ask.

        Args:
            zone: where.
        """
        return f"{host!r} {net!r} {zone!r}"

    told = prompt_of(ask)
    assert "`host` (string): an IPv4 address such as 192.0.2.1" in told
    assert "`net` (string): an IPv6 network such as 2001:db8::/32" in told
    assert "`zone` (string): where" in told
    given = {"host": "192.0.2.1", "net": "2001:db8::/32", "zone": "Europe/Berlin"}
    assert call(ask, "ask", given).value == (
        "IPv4Address('192.0.2.1') IPv6Network('2001:db8::/32') "
        "zoneinfo.ZoneInfo(key='Europe/Berlin')"
    )
    (problem,) = only(ask).parameters.problems({**given, "host": "1.2.3.400"})
    assert (problem.path, problem.expected) == (
        ("host",),
        "an IPv4 address such as 192.0.2.1",
    )
    error = call(ask, "ask", {**given, "zone": "Nowhere"}).error
    assert error is not None
    assert "zone: expected the name of a time zone, such as Europe" in error.message
