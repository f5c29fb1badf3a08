"""A thousand commands: quick to register, described when read, the same in bytes."""

from __future__ import annotations

import copy
import dataclasses
import gc
import subprocess
import sys
import time
import typing
from collections.abc import Callable
from typing import Any, TypedDict

import pydantic
import pytest
import yaml

from cpu_time import least
from neuraxis import CommandSpec, Effects, Session, command
from neuraxis.dialects import DIALECTS
from neuraxis.dialects.envelope import prompt
from neuraxis.errors import ManifestError
from neuraxis.messages import Message
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.lock_file import facts
from neuraxis.plugins.manifest.convert import to_json_schema, to_v2
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.plugins.registry import Command
from neuraxis.settings import Settings


class Item(TypedDict):
    """What is ordered.

    Attributes:
        sku: its number.
    """

    sku: str
    amount: int


def functions(count: int) -> list[Callable[..., Any]]:
    """As many different functions, each marked as a command."""

    def made(number: int) -> Callable[..., Any]:
        def work(
            customer: str, items: list[Item], hurry: bool = False
        ) -> dict[str, int]:
            return {customer: len(items) + hurry}

        work.__name__ = work.__qualname__ = f"order_{number:04d}"
        work.__doc__ = f"""Place order number {number}.

        Args:
            customer: who orders.
            items: what is ordered.

        Returns:
            How many there are.
        """
        return command(effects="read", blocking=False)(work)

    return [made(number) for number in range(count)]


def session(plugins: list[Any], dialect: str = "intents") -> Session:
    return Session(
        model=ScriptedModel([]), plugins=plugins, dialect=dialect, settings=Settings()
    )


def only(made: Callable[..., Any]) -> CommandSpec:
    return next(iter(plugin_from(made).spec.commands))


def _prompted(marked: list[Any]) -> Session:
    made = session(marked)
    assert marked[-1].__name__ in made.prompt().messages[0].content
    return made


def test_a_thousand_functions_are_registered_and_prompted() -> None:
    """In a time that grows with their number, no faster; all hints are texts."""
    few, marked = functions(200), functions(1000)
    assert "list[Item]" == marked[0].__annotations__["items"]
    gc.collect()
    gc.freeze()  # what the other tests hold is not looked through
    try:
        less, more = least(lambda: _prompted(few)), least(lambda: _prompted(marked))
    finally:
        gc.unfreeze()
    assert more < 10 * less
    made = _prompted(marked)
    assert 1000 == len(made.registry.plugins)
    assert isinstance(made.registry.find(None, "order_0999"), Command)
    made.close()


def test_a_command_is_described_as_it_was_registered() -> None:
    """What its author changes afterwards is another function's matter."""
    (one,) = functions(1)
    plugin = plugin_from(one)
    (spec,) = plugin.spec.commands
    one.__doc__ = "Something else."
    assert ("order_0000", Effects(kind="read", destructive=False)) == (
        spec.name,
        spec.effects,
    )
    assert "Place order number 0." == plugin.spec.description
    assert ("customer", "items") == spec.required
    assert "Place order number 0." == spec.description
    assert spec.response is not None
    assert "How many there are." == spec.response["description"]


@dataclasses.dataclass
class Lost:
    """Its field's type is nowhere."""

    where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821, UP037


def test_mistakes_are_told_at_once() -> None:
    """Though nothing is described yet: the function is named, and what is wrong."""

    def takes(value: list[Lost]) -> None: ...
    def gives() -> dict[str, Lost]: ...  # type: ignore[empty-body]
    def rest(**more: Lost) -> None: ...

    for wrong in (takes, gives, rest):
        # what stands in quotes here is what `from __future__` makes of every hint
        wrong.__annotations__ = typing.get_type_hints(
            wrong, {"Lost": Lost, **globals()}, locals()
        )
        with pytest.raises(ManifestError, match=rf"{wrong.__name__}.*'Nowhere'"):
            plugin_from(wrong)
        with pytest.raises(ManifestError, match="'Nowhere'"):  # and not only once
            plugin_from(wrong)

    class Unsayable(pydantic.BaseModel):
        run: Callable[[int], int]

    def asks(value: Any) -> None: ...

    asks.__annotations__ = {"value": Unsayable}
    with pytest.raises(ManifestError, match=r"asks: .*cannot be understood: [^\n]*$"):
        plugin_from(asks)


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (typing.List, {"type": "array"}),  # noqa: UP006
        (typing.Dict, {"type": "object"}),  # noqa: UP006
        (typing.Tuple, {"type": "array"}),  # noqa: UP006
        (typing.Sequence, {"type": "array"}),
        (typing.Set, {"type": "array", "uniqueItems": True}),  # noqa: UP006
    ],
)
def test_generics_without_brackets(hint: Any, kind: dict[str, Any]) -> None:
    """`List` is what `list` is; a call of it works."""

    def work(value: Any) -> Any:
        return value

    work.__annotations__ = {"value": hint}
    (made,) = plugin_from(work).commands.values()
    schema = made.spec.parameters["properties"]["value"]
    assert {**kind, "x-asset-ref": True} == schema
    assert made.run is not None
    for given in ([1], {"a": 1}):
        if made.parameters.valid({"value": given}):
            assert list(given) == list(made.run(value=given))


def test_two_classes_of_one_name() -> None:
    """Where pydantic names one of them, the other is not lost."""

    def inner(kind: type[Any]) -> type[pydantic.BaseModel]:
        part = pydantic.create_model("Part", x=(kind, ...))
        return pydantic.create_model(f"Whole{kind.__name__}", part=(part, ...))

    def work(a: Any, b: Any, c: Any) -> None: ...

    work.__annotations__ = {"a": inner(int), "b": inner(str), "c": inner(int)}
    (made,) = plugin_from(work).commands.values()
    right = {
        "a": {"part": {"x": 1}},
        "b": {"part": {"x": "s"}},
        "c": {"part": {"x": 2}},
    }
    assert () == made.parameters.problems(right)
    for name, wrong in (("a", "s"), ("b", 1), ("c", "s")):
        assert made.parameters.problems({**right, name: {"part": {"x": wrong}}})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_constant_part_is_kept(dialect: str) -> None:
    """Of a thousand commands: the same bytes, made once."""
    with session(functions(1000), dialect) as made:
        started = time.thread_time()
        first = made.prompt()
        took = time.thread_time() - started
        said = [Message(role="user", content="hello")]
        again = made.prompt(said)
        assert least(lambda: made.prompt(said)) < took / 20
        assert again.messages[0].content.encode() == first.messages[0].content.encode()
        assert (again.native_tools, again.tool_names) == (
            first.native_tools,
            first.tool_names,
        )
        assert again.messages[1:] == tuple(said)
        assert 1 == again.constant


def test_what_commands_share_is_never_changed() -> None:
    """Two functions that take one class share its schema; whoever shows it copies."""
    plugins = [plugin_from(made) for made in functions(2)]
    schemas = [plugin.spec.commands[0].parameters for plugin in plugins]
    assert schemas[0]["$defs"]["Item"] is schemas[1]["$defs"]["Item"]
    before = copy.deepcopy(schemas)
    for dialect in DIALECTS:
        with session(plugins, dialect) as made:
            made.prompt()
    for plugin in plugins:
        to_v2(plugin.spec), to_yaml(plugin.spec), to_json_schema(plugin.spec)
        facts(plugin.spec)
        (ready,) = plugin.commands.values()
        ready.parameters.problems({"customer": 1, "items": [{"sku": 1}]})
        ready.parameters.coerce({"customer": "c", "items": [{"amount": "2"}]})
    assert before == schemas


def test_a_plugin_that_is_added_is_shown() -> None:
    """The constant part is that of the plugins there are."""
    marked = functions(3)
    with session(marked[:2]) as made:
        before = made.prompt().messages[0].content
        assert made.prompt().messages[0].content is before
        made.registry.add(plugin_from(marked[2]))
        assert "order_0002" not in before
        assert "order_0002" in made.prompt().messages[0].content


_SHOW = """
import hashlib, sys
sys.path[:0] = sys.argv[2:]
from plugins.test_many_commands import functions, session
made = session(functions(40), sys.argv[1])
shown = made.prompt()
print(hashlib.sha256(repr((shown.messages, shown.native_tools)).encode()).hexdigest())
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_process_says_the_same_bytes(dialect: str) -> None:
    """Whatever the order of its sets: a server keeps what it has read by its bytes."""
    said = {
        subprocess.run(
            [sys.executable, "-c", _SHOW, dialect, *sys.path],
            env={"PYTHONHASHSEED": seed, "NEURAXIS_HOME": "/nonexistent"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert 1 == len(said)


TEXTS = (
    "plain", "two\nlines", "tail\n\n", " lead\nx", "", "null", "a: b", "- x", "# no",
    "\U0001f600 smile", "tab\there", "\u2028", "\x07", "\r\n", "\ufeff", "\xe9",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_shown_in_yaml_does_not_depend_on_its_writer(text: str) -> None:
    """Most plugins are written by libyaml; those it would spell are not."""
    tree = {"name": text, f"k{text}": [text, {"a": text}], "number": 1.5, "last": text}
    shown = prompt._yaml(tree)
    assert tree == yaml.safe_load(shown)
    if "\U0001f600" in text:
        assert "\U0001f600" in shown
    slow = yaml.dump(
        tree, Dumper=_plain(), sort_keys=False, allow_unicode=True, width=10**6
    )
    assert slow.removesuffix("...\n") == shown


def _plain() -> Any:
    dumper = type(
        "Plain", (yaml.SafeDumper,), {"ignore_aliases": lambda self, data: True}
    )
    dumper.add_representer(str, prompt._text)  # type: ignore[attr-defined]
    return dumper
