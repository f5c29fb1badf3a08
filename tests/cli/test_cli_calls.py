"""The arguments of `neuraxis call`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from neuraxis.cli.main import cli, main
from neuraxis.errors import ConfigError

PLUGIN = '''\
from neuraxis import command


@command(effects="none")
def take(
    text: str,
    flag: bool = False,
    numbers: list[int] | None = None,
    model: str = "",
) -> dict[str, object]:
    """Gives back what it was given.

    Args:
        text: any text.
    """
    return {"text": text, "flag": flag, "numbers": numbers, "model": model}
'''


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taking.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


def call(*arguments: str, stdin: str = "") -> Result:
    given = ("call", "-p", "taking.py", "take", *arguments)
    return CliRunner().invoke(cli, given, input=stdin, standalone_mode=False)


def given(*arguments: str, stdin: str = "") -> dict[str, Any]:
    done = call(*arguments, stdin=stdin)
    assert done.return_value == 0, done.output
    return json.loads(done.stdout)


def test_a_text_comes_from_a_file_from_standard_input_or_as_it_is(here: Path) -> None:
    """`@FILE`, `@-`, and `@@x` for the text `@x`, which could not be said else."""
    (here / "t.txt").write_text("of a file", encoding="utf-8")
    assert given("--text", "@t.txt")["text"] == "of a file"
    assert given("--text", "@-", stdin="piped")["text"] == "piped"
    assert given("--text", "@@home")["text"] == "@home"
    assert given("--text", "@")["text"] == "@"


def test_a_table_or_picture_comes_from_a_file(here: Path) -> None:
    """`@FILE` is the object where the command takes one, and may be written."""
    polars = pytest.importorskip("polars")
    image = pytest.importorskip("PIL.Image")
    (here / "s.csv").write_text("name,n\nana,3\nbo,5\n", encoding="utf-8")
    (here / "rows.json").write_text('[{"n": 1}]', encoding="utf-8")
    image.new("RGB", (40, 30)).save(here / "p.png")

    def run(*words: str) -> Result:
        plugins = ("-p", "neuraxis:tables", "-p", "neuraxis:images")
        return CliRunner().invoke(
            cli, ("call", *plugins, *words), standalone_mode=False
        )

    written = run("write_table", "--table", "@s.csv", "--file_path", "o.parquet")
    assert written.return_value == 0, written.output
    frame = polars.read_parquet(here / "neuraxis-workspace" / "o.parquet")
    assert frame.rows() == [("ana", 3), ("bo", 5)]
    assert '"rows": 1' in run("describe_table", "--table", "@rows.json").stdout
    joined = run("join_tables", "--left", "@s.csv", "--right", "@s.csv", "--on", "name")
    assert "n_right" in joined.stdout
    saved = run("save_image", "--img_data", "@p.png", "--file_path", "p.jpg")
    assert json.loads(saved.stdout)["width"] == 40
    # without the @ it is a text, and the way is told
    plain = run("describe_table", "--table", "s.csv")
    assert plain.return_value == 2
    assert "give --table @s.csv" in plain.stderr
    missing = run("describe_table", "--table", "@x.csv")
    assert str(missing.exception).startswith("--table @x.csv: cannot be read")
    long = run("describe_table", "--table", f"@{'x' * 5000}")
    assert "cannot be read: File name too long" in str(long.exception)


def test_a_plugin_of_the_package_is_named() -> None:
    done = CliRunner().invoke(
        cli, ("call", "tables.describe_table"), standalone_mode=False
    )
    assert "add -p neuraxis:tables" in str(done.exception)


def test_a_missing_file_says_how_an_at_is_written() -> None:
    done = call("--text", "@home")
    assert isinstance(done.exception, ConfigError)
    told = str(done.exception)
    assert told.startswith("--text @home: cannot be read: there is no such file")
    assert "Errno" not in told
    assert told.endswith("is written @@home")


def test_a_name_that_stands_twice_is_a_list() -> None:
    """The last one alone would be a silent loss."""
    many = given("--text", "x", "--numbers", "1", "--numbers", "2")
    assert many["numbers"] == [1, 2]
    done = call("--text", "a", "--text", "b")
    assert done.return_value == 2
    assert "expected string" in done.output


def test_a_boolean_stands_alone_and_takes_no_other_name_for_its_value() -> None:
    assert given("--flag", "--text", "x")["flag"] is True
    assert given("--text", "x", "--flag")["flag"] is True
    assert given("--text", "x", "--flag", "false")["flag"] is False
    done = call("--text", "--flag")
    assert "--text: expected a value after it" in str(done.exception)
    assert given("--text=--flag")["text"] == "--flag"


def test_an_option_that_does_nothing_here_hides_no_parameter() -> None:
    """No model is asked, so `--model` is free for the command."""
    assert given("--text", "x", "--model", "y")["model"] == "y"


def test_help_behind_a_target_tells_its_parameters() -> None:
    done = call("--help")
    assert done.return_value == 0
    assert done.output.startswith("Gives back what it was given.")
    words = " ".join(done.output.split())
    assert "--text (string) any text; required" in words
    assert "--flag (boolean) default false" in words
    own = CliRunner().invoke(cli, ["call", "--help"], standalone_mode=False)
    assert "Usage:" in own.output
    assert "--param" in own.output


def test_strictly_a_typed_number_is_a_number() -> None:
    """What is typed has no type yet; what does not fit is refused all the same."""
    assert given("--strict", "--text", "x", "--numbers", "[1, 2]")["numbers"] == [1, 2]
    done = call("--strict", "--text", "x", "--numbers", '["a"]')
    assert done.return_value == 2


def test_a_wrong_argument_is_named_as_it_is_typed() -> None:
    """And is a wrong option: exit code 2."""
    done = call("--numbers", '[1, "x"]')
    assert done.return_value == 2, done.exception
    assert done.stderr == (
        'neuraxis: --numbers[1]: expected integer, got "x"; '
        "--text: expected string (required), got nothing\n"
    )


def test_an_object_is_printed_as_it_describes_itself(here: Path) -> None:
    """Not as one JSON text with its line breaks escaped."""
    code = """\
from neuraxis import command


class Lines:
    def __str__(self):
        return "one\\ntwo"


@command(effects="none")
def lines() -> object:
    \"\"\"Gives an object.\"\"\"
    return Lines()
"""
    (here / "taking.py").write_text(code, encoding="utf-8")
    done = CliRunner().invoke(
        cli, ("call", "-p", "taking.py", "lines"), standalone_mode=False
    )
    assert done.stdout == "one\ntwo\n", (done.output, done.exception)


def test_a_plugin_that_is_not_loaded_is_told_with_its_file() -> None:
    """A plugin file here is named; -p is told for any other."""
    for target in ("taking.take", "taking"):
        done = CliRunner().invoke(cli, ["call", target], standalone_mode=False)
        assert str(done.exception).endswith("such as -p taking.py")
    done = CliRunner().invoke(cli, ["call", "crm.find"], standalone_mode=False)
    assert str(done.exception) == (
        'The requested plugin "crm" does not exist. A plugin of your own is given with '
        "-p, such as -p FILE.py"
    )
    done = CliRunner().invoke(cli, ["call", "files.fin"], standalone_mode=False)
    assert "-p" not in str(done.exception)


def run_call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ("call", *arguments), standalone_mode=False)


def test_a_parameter_of_any_value_is_read_as_json(here: Path) -> None:
    """Two numbers were added as texts: 12."""
    code = """\
from neuraxis import command


@command
def add(a, b):
    \"\"\"Add two values.\"\"\"
    return a + b
"""
    (here / "nohint.py").write_text(code, encoding="utf-8")
    for a, b, total in (
        ("1", "2", "3"),
        ("one", "two", "onetwo"),
        ('"1"', '"2"', "12"),
        ("[1]", "[2]", "[1, 2]"),
    ):
        done = run_call("-p", "nohint.py", "add", "--a", a, "--b", b)
        assert " ".join(done.stdout.split()) in (total, f"[ {total[1:-1]} ]")


def test_a_short_option_is_told_as_a_long_one() -> None:
    """The option itself was suggested as its value."""
    for word, meant in (("-t", "--text x"), ("-flag", "--flag x"), ("-z", "--text x")):
        assert str(call(word, "x").exception).endswith(f"such as {meant}")
    assert str(call("-5").exception).endswith("such as --text -5")
    assert str(call("-n").exception).endswith("such as --numbers VALUE")
    code = "from neuraxis import command\n\n\n@command\ndef go() -> None: ...\n"
    Path("go.py").write_text(code, encoding="utf-8")
    told = run_call("-p", "go.py", "go", "-n", "1").exception
    assert str(told) == "'-n': the command has no parameters"


def test_a_value_that_is_given_twice_is_told_so() -> None:
    """Nobody typed an array."""
    done = call("--text", "a", "--text", "b")
    assert done.stderr == "neuraxis: --text: expected string; it was given twice\n"
    done = call("--text", "a", "--text", "b", "--text", "c")
    assert done.stderr.endswith("it was given 3 times\n")


def test_an_unknown_option_is_told_with_those_there_are() -> None:
    """On the command line there are options, no keys."""
    for arguments in (("--flags", "1"), ("--flags",)):
        done = call("--text", "a", *arguments)
        told = f"{done.exception or ''}{done.stderr}"
        assert "--flags: there is no such option, and no such parameter" in told
        assert "Did you mean --flag? The command's parameters are: --text" in told


def test_a_command_is_found_by_its_own_name() -> None:
    """Its tool name is another, which the model uses."""
    done = run_call("-p", "neuraxis:files", "read_file", "--help")
    assert "--file_path" in done.stdout, done.exception


@pytest.mark.parametrize("target", ["later", "taking.later"])
def test_a_function_that_is_not_marked_is_told(here: Path, target: str) -> None:
    """It stands in the file, beside a command."""
    text = f"{PLUGIN}\n\ndef later() -> int:\n    return 1\n"
    (here / "taking.py").write_text(text, encoding="utf-8")
    told = str(run_call("-p", "taking.py", target).exception)
    assert "taking.py has a function later that is no command: write @command" in told
    assert "@command" not in str(run_call("-p", "taking.py", "never").exception)


def test_an_option_of_other_programs_is_told_as_ours(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--tool` is like `--model` in letters only."""
    with pytest.raises(SystemExit):
        main(["run", "--tool", "taking.py", "Hello"])
    told = capsys.readouterr().err
    assert "--plugin" in told
    assert "--model" not in told


def test_without_a_command_those_of_the_plugin_are_named() -> None:
    told = str(run_call("-p", "taking.py").exception)
    assert told.startswith("expected PLUGIN.COMMAND or a tool name, one of: take, ")
    assert "neuraxis plugins list" in str(run_call().exception)


def test_commands_of_the_given_plugin_are_listed_first() -> None:
    """They were behind twenty that come with the package; -p was given."""
    told = str(run_call("-p", "taking.py", "tke").exception)
    assert "Did you mean take? The tools are: take, " in told
    assert "FILE.py" not in told
    assert "FILE.py" in str(run_call("tke").exception)


@pytest.mark.parametrize("typed", [["7"], ["[7]"], ["7", "8"]])
def test_one_value_for_a_list_is_a_list_of_one(typed: list[str]) -> None:
    """As the help says: repeat a name to give more."""
    options = [part for value in typed for part in ("--numbers", value)]
    expected = [7, 8] if len(typed) == 2 else [7]
    assert given("--text", "a", *options)["numbers"] == expected


def test_a_file_of_this_folder_that_is_not_in_the_workspace_is_told(here: Path) -> None:
    """An analyst's first try: the file is there, and not where commands look."""
    (here / "sales.csv").write_text("a\n1\n", encoding="utf-8")
    words = ("call", "-p", "neuraxis:tables", "read_table", "--file_path", "sales.csv")
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    assert "sales.csv is in this folder; commands see the files in" in done.stderr
    assert "give -w ." in done.stderr
    done = CliRunner().invoke(cli, [*words, "-w", "."], standalone_mode=False)
    assert done.return_value == 0, done.output


def test_help_tells_what_the_items_of_a_list_have() -> None:
    """So that the call can be written without a wrong try."""
    words = ("call", "-p", "neuraxis:tables", "group_rows", "--help")
    done = CliRunner().invoke(cli, words, standalone_mode=False)
    told = " ".join(done.stdout.split())
    assert "List[string]" in told
    assert "List[{column?: string, function: Literal[" in told
