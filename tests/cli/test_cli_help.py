"""`--help`: every command and option says what it does; files are completed."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from neuraxis.cli.main import cli
from neuraxis.execution.budget import Budget


def _commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from _commands(command, (*path, name))


ALL = dict(_commands(cli))


@pytest.mark.parametrize("name", ALL)
def test_each_command_and_option_is_explained(name: str) -> None:
    """A list of commands that ends in dots explains nothing."""
    command = ALL[name]
    room = 78 - 6 - len("completion")
    assert not command.get_short_help_str(room).endswith("...")
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("run", "attach"), ("run", "workspace"), ("run", "plugin"),
        ("plugins check", "path"), ("plan run", "file"), ("sessions list", "journal"),
    ],
)  # fmt: skip
def test_a_file_is_completed(name: str, option: str) -> None:
    (found,) = [item for item in ALL[name].params if item.name == option]
    assert isinstance(found.type, click.Path)


def test_plans_and_calls_have_no_option_of_a_model() -> None:
    """What is taken and does nothing misleads."""
    for name in ("plan check", "plan show", "plan run", "call"):
        options = {parameter.name for parameter in ALL[name].params}
        assert not options & {
            "model",
            "base_url",
            "dialect",
            "template",
            "show_results",
        }, name
        assert {"plugin", "workspace", "yes_to"} <= options, name


def test_the_limits_that_help_names_are_those_there_are() -> None:
    told = {
        item.name: str(item.help)
        for item in ALL["run"].params
        if isinstance(item, click.Option)
    }
    assert f"default: {Budget().steps}." in told["max_calls"]
    assert f"default: {Budget().seconds:g}." in told["max_seconds"]
