"""Optional packages: the package, or an error that says how to install it."""

from __future__ import annotations

import json
import sys

import pytest

from neuraxis.errors import MissingExtra, needed


def test_what_is_there_is_the_package() -> None:
    """Of a dotted name, the innermost one."""
    assert needed("json", "x", "This") is json
    assert needed("json.decoder", "x", "This") is json.decoder


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("neuraxis_no_such", "neuraxis-no-such"),
        ("neuraxis_no_such.inner", "neuraxis-no-such"),
        ("PIL.Image", "pillow"),
        ("PIL", "pillow"),
    ],
)
def test_what_is_missing_is_told(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What needs it, the name it is installed by, and the line that does it."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as told:
        needed(module, "images", "Reading a picture")
    assert (told.value.package, told.value.extra) == (name, "images")
    assert str(told.value) == (
        f"Reading a picture needs the package {name!r}, which is not installed. "
        "Install it with: pip install 'neuraxis[images]'"
    )
    assert told.value.__cause__ is None
    assert told.value.__suppress_context__
