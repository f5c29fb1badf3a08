"""Annotations that cannot be read yet (Python 3.14 reads them late)."""

# No `from __future__ import annotations`: that would put all of them in quotes.
import dataclasses
import functools
import sys
from typing import TYPE_CHECKING, Any

import pytest

from neuraxis import ConfigError, Session, command
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.functions.deferred_annotations import (
    annotations_of,
    signature_of,
)

if TYPE_CHECKING:
    from decimal import Decimal

    from neuraxis import Context

late = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="Python 3.14 is the first that reads them late"
)


def test_what_can_be_read_is_what_was_written() -> None:
    """A class is the class; what has no annotations has none."""

    def find(city: str, *, most: int = 3) -> list[str]: ...

    assert annotations_of(find) == {"city": str, "most": int, "return": list[str]}
    assert annotations_of(len) == annotations_of(functools.partial(find)) == {}
    assert list(signature_of(find).parameters) == ["city", "most"]


if sys.version_info >= (3, 14):  # Python 3.11 would fail at the `def`

    def pay(amount: Decimal, context: Context) -> str:
        """Pay."""
        return "paid"

    def wait(context: Context) -> str:
        """Wait."""
        return context.session_id

    def approve(asked: Decimal) -> bool:
        """Say yes."""
        return True

    def instructions(context: Decimal) -> str:
        """Say what to do."""
        return "Be kind."

    class Till:
        """A till."""

        def __init__(self, config: Decimal) -> None:
            self.config = config

        @command(effects="read")
        def total(self, context: Context) -> int:
            """Return the total."""
            return 3

    class Adding:
        """Adds."""

        step: Decimal

        def __call__(self, by: Node) -> int:  # noqa: F821 - it stands below
            """Add."""
            return by.count

    @dataclasses.dataclass
    class Node:
        count: int
        kids: list[Node] = dataclasses.field(  # noqa: F821 - as it is used
            default_factory=list
        )


@late
def test_a_name_for_type_checkers_is_told_with_its_place() -> None:
    """No NameError: where, which parameter, what to do."""
    with pytest.raises(
        ConfigError,
        match=r"parameter 'amount': Decimal: name 'Decimal' is not defined\. Define or",
    ):
        Session(model=ScriptedModel([]), plugins=[command(pay, effects="read")])


@late
async def test_context_may_be_imported_for_type_checkers_only() -> None:
    """It is known by its name, as in quotes."""
    replies = ['[{"tool": "wait"}]', '[{"tool": "total"}]', "Done."]
    session = Session(
        model=ScriptedModel(replies),
        plugins=[command(wait, effects="read"), Till],
        approve=approve,
        instructions=instructions,
    )
    answer = await session.run("Go")
    assert [result.value for result in answer.calls] == [session.id, 3]


@late
def test_a_class_that_is_defined_later_is_found() -> None:
    """Of an object's `__call__`, too, whose class has annotations of its own."""
    added: Any = command(Adding(), effects="read", name="added")
    (spec,) = plugin_from(added).spec.commands
    assert spec.parameters["properties"]["by"]["$ref"] == "#/$defs/Node"


@late
def test_an_expression_that_fails_is_told_with_its_place() -> None:
    """`int | any` raised at the `def` before Python 3.14."""

    def find(city: int | any) -> None: ...  # type: ignore[valid-type]

    with pytest.raises(ConfigError, match="any is a function; write Any"):
        plugin_from(command(find, effects="read"))
