"""Defaults of a manifest: passed to the code, and checked against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis.plugins.manifest.defaults import fill_defaults
from neuraxis.testing import call, check_plugin

OMISSIBLE = "{type: {n: {type: int, description: n, required: false%s}}}"
BARE = "{type: int, description: n, required: false%s}"


def plugin(folder: Path, parameter: str, code: str = "def give(n): return n") -> str:
    """A plugin with one command `give`."""
    (folder / "config.yaml").write_text(
        "{name: d, info: {title: T, description: D.}, commands: [{command_name: give, "
        f"description: Give., effects: none, parameter: {parameter}}}]}}",
        encoding="utf-8",
    )
    (folder / "plugin.py").write_text(code, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize(
    ("code", "parameter"),
    [
        ("def give(n): return n", OMISSIBLE),
        ("def give(n=5): return n", OMISSIBLE),
        ("async def give(n): return n", OMISSIBLE),
        ("def give(context, n): return n", OMISSIBLE),
        ("def command(name, param): return param['n']", OMISSIBLE),
        ("def give(n): return n", BARE),
    ],
)
def test_an_omitted_argument_gets_the_default(
    tmp_path: Path, code: str, parameter: str
) -> None:
    """The manifest's, which the model was shown, whatever the function's is."""
    if "context" in code:
        code = f"from neuraxis import Context\n{code.replace('t,', 't: Context,')}"
    path = plugin(tmp_path, parameter % ", default: 3", code)
    assert check_plugin(path) == []
    assert call(path, "give", {}).value == 3
    given: Any = 9 if parameter is BARE else {"n": 9}
    assert call(path, "give", given).value == 9


def test_defaults_inside_arguments(tmp_path: Path) -> None:
    """Fields of objects in lists have them; each call gets a copy of its own."""
    field = "{name: a, type: list, description: a, required: false, default: [1]}"
    code = "def give(o):\n    o[0]['a'].append(2)\n    return o"
    path = plugin(
        tmp_path, f"{{type: {{o: {{type: [{field}], description: o}}}}}}", code
    )
    for _ in range(2):
        assert call(path, "give", {"o": [{}, {"a": []}]}).value == [
            {"a": [1, 2]},
            {"a": []},
        ]


def test_default_of_the_whole_object(tmp_path: Path) -> None:
    """It stands in for a missing `param`."""
    fields = OMISSIBLE[:-1] % "" + ", required: false, default: {n: 4}}"
    assert call(plugin(tmp_path, fields), "give", {}).value == 4


@pytest.mark.parametrize("parameter", [OMISSIBLE, BARE])
def test_an_optional_parameter_without_any_default(
    tmp_path: Path, parameter: str
) -> None:
    """The call that omits it would fail, so the author is warned."""
    (found,) = check_plugin(plugin(tmp_path, parameter % ""))
    assert "plugin.py: warning: give() needs 'n', which the manifest makes" in found
    assert (
        check_plugin(plugin(tmp_path, parameter % "", "def give(n=1): return n")) == []
    )


def test_code_is_unchanged_without_defaults() -> None:
    """The function itself is called."""
    assert fill_defaults(len, {"type": "object", "properties": {"n": {}}}) is len
