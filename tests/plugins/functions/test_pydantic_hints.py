"""What pydantic made or decorated is pydantic's to check (N7)."""

from __future__ import annotations

from typing import Annotated, Any

import annotated_types
import pydantic
import pytest

from neuraxis.errors import CommandError, ManifestError
from neuraxis.plugins.functions.command import read_function


def _even(value: int) -> int:
    if value % 2:
        raise ValueError("boxes hold pairs")
    return value


class Order(pydantic.BaseModel):
    """An order."""

    count: int

    @pydantic.field_validator("count")
    @classmethod
    def _few(cls, value: int) -> int:
        if value > 3:
            raise ValueError("at most 3 in this shop")
        return value


def box(
    pairs: Annotated[int, pydantic.AfterValidator(_even)] = 2,
    mail: pydantic.EmailStr = "a@example.com",
    page: pydantic.HttpUrl | None = None,
    key: pydantic.SecretStr | None = None,
    at: pydantic.AwareDatetime | None = None,
    order: Order | None = None,
    copies: list[pydantic.EmailStr] | None = None,
    odd: Annotated[int, annotated_types.Predicate(lambda value: value % 2 == 1)] = 1,
) -> dict[str, Any]:
    """A box."""
    return locals()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"pairs": 3}, "pairs: Value error, boxes hold pairs, got 3"),
        ({"mail": "x"}, "mail: value is not a valid email address"),
        ({"page": "x"}, "page: Input should be a valid URL"),
        ({"at": "2026-01-01T00:00:00"}, "at: Input should have timezone info"),
        ({"order": {"count": 9}}, "order: count: Value error, at most 3 in this shop"),
        ({"copies": ["x"]}, "copies: value is not a valid email address"),
        ({"odd": 2}, "odd: Predicate"),
    ],
)
def test_n7_a_validator_says_its_reason(arguments: dict[str, Any], said: str) -> None:
    """The full message reaches the model, with the path of the value."""
    built = read_function(box)
    with pytest.raises(CommandError) as caught:
        built.caller.run(**arguments)
    assert str(caught.value).startswith(said)


def test_n7_its_types_are_json_to_a_model_and_objects_to_the_function() -> None:
    """No class that only a reference could supply."""
    built = read_function(box)
    assert "x-type" not in repr(built.spec.parameters)
    got = built.caller.run(
        page="https://example.com/a", key="k", at="2026-01-01T00:00:00Z"
    )
    assert got["page"].host == "example.com"
    assert got["key"].get_secret_value() == "k"
    assert got["at"].tzinfo is not None


def pack(
    names: list[str] = pydantic.Field(default_factory=list),  # noqa: B008
    size: Annotated[int, pydantic.Field(ge=1, default_factory=lambda: 4)] = 2,
    must: int = pydantic.Field(description="It has none.", gt=0),
) -> tuple[list[str], int, int]:
    """A pack."""
    names.append("x")
    return names, size, must


def test_n7_a_default_factory_is_a_default() -> None:
    """And each call has a list of its own."""
    built = read_function(pack)
    assert built.spec.parameters["required"] == ["must"]
    assert built.spec.parameters["properties"]["must"]["exclusiveMinimum"] == 0
    assert built.caller.run(must=1) == (["x"], 2, 1)
    assert built.caller.run(must=1) == (["x"], 2, 1)


def test_n7_a_default_of_another_type_is_told() -> None:
    """At registration, before a model can leave it out."""

    def sized(count: int = "q") -> None:  # type: ignore[assignment]
        """Sized."""

    with pytest.raises(ManifestError, match="default of the type int, got 'q'"):
        read_function(sized)
