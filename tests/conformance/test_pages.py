"""The protocol pages show what goes over the wire, and show it as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.pages import PAGES, V1, V2, blocks, fill, used
from neuraxis.plugins.manifest.load import parse_manifest


@pytest.fixture(scope="module")
def now() -> dict[str, str]:
    return blocks()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_are_what_is_sent(page: Path, now: dict[str, str]) -> None:
    """`PYTHONPATH=tests python -m conformance.pages` writes them."""
    text = page.read_text(encoding="utf-8")
    assert list(used(text)) != []
    assert text.count("<!-- wire ") == len(list(used(text)))
    assert text == fill(text, now)


def test_the_two_manifests_say_the_same() -> None:
    """So that the two pages can be compared."""
    v1, v2 = parse_manifest(V1)[0], parse_manifest(V2)[0]
    assert (v1.generation, v2.generation) == ("v1", "v2")
    for old, new in zip(v1.commands, v2.commands, strict=True):
        assert old.parameters == new.parameters
        assert old.response == new.response
