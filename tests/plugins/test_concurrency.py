"""How many calls of a command may run at once: said in Python and in a manifest."""

from __future__ import annotations

import pytest

from neuraxis import command
from neuraxis.errors import ManifestError
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.manifest.write import to_yaml


def test_concurrency_is_said_by_the_decorator_and_kept_in_a_manifest() -> None:
    """The manifest that `plugins show` writes of a function says it, too."""

    @command(effects="read", concurrency=2)
    def ask(text: str) -> str:
        """Asks a slow service."""
        return text

    spec = plugin_from(ask).spec
    assert spec.commands[0].concurrency == 2
    text = to_yaml(spec)
    assert "concurrency: 2" in text
    read, _ = parse_manifest(text, file="config.yaml")
    assert read.commands[0].concurrency == 2


@pytest.mark.parametrize("wrong", ["0", "-1", "two", "1.5", "true"])
def test_a_wrong_concurrency_is_told(wrong: str) -> None:
    """A whole number above 0, or nothing."""

    @command(effects="read", concurrency=2)
    def ask(text: str) -> str:
        """Asks a slow service."""
        return text

    text = to_yaml(plugin_from(ask).spec)
    with pytest.raises(ManifestError, match="concurrency"):
        parse_manifest(
            text.replace("concurrency: 2", f"concurrency: {wrong}"), file="config.yaml"
        )
