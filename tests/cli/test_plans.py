"""`neuraxis plan check|show|run` and `--save-plan`, as their user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from neuraxis.cli.main import cli
from neuraxis.errors import ConfigError, StorageError

PLAN = """
version: 1
parameters:
  name: {default: out.txt}
  n: integer
steps:
  - tool: FILEWRITER
    arguments: {file_path: "{{ params.name }}", contents: "n is {{ params.n }}"}
  - tool: file_reader
    arguments: {file_path: "{{ params.name }}"}
"""

REPLIES = [
    json.dumps([{"tool": "FILEWRITER", "file_path": "a.txt", "contents": "from a"}]),
    json.dumps(
        [
            {"tool": "file_reader", "file_path": "a.txt"},
            {
                "tool": "FILEWRITER",
                "file_path": "b.txt",
                "contents": "{{ results[0]['contents'] }}",
            },
        ]
    ),
    "done",
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "model.yaml").write_text(json.dumps(REPLIES), encoding="utf-8")
    return tmp_path


def neuraxis(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def test_plan_check_says_all_that_is_wrong(here: Path) -> None:
    """Exit code 0 or 1, and nothing was run."""
    done = neuraxis("plan", "check", "plan.yaml")
    assert (done.return_value, done.exception) == (0, None)
    assert "2 steps" in done.output
    wrong = PLAN.replace("file_reader", "file_raeder").replace("contents:", "content:")
    (here / "wrong.yaml").write_text(wrong, encoding="utf-8")
    done = neuraxis("plan", "check", "wrong.yaml")
    assert done.return_value == 1
    assert "file_reader" in done.output
    assert "contents" in done.output
    assert not (here / "neuraxis-workspace" / "out.txt").exists()


def test_plan_show_draws(here: Path) -> None:
    """As text, and as SVG where it is asked for."""
    done = neuraxis("plan", "show", "plan.yaml", "--svg", "plan.svg")
    assert done.return_value == 0
    assert "2. file_reader" in done.output
    assert "n: integer" in done.output
    drawing = (here / "plan.svg").read_text(encoding="utf-8")
    assert len(ElementTree.fromstring(drawing).findall("{*}g")) == 2


def test_plan_run_needs_no_model(here: Path) -> None:
    """The last answer on stdout, progress on stderr, states in the drawing."""
    done = neuraxis("plan", "run", "plan.yaml", "--set", "n=5", "--svg", "plan.svg")
    assert (done.return_value, done.exception) == (0, None)
    assert json.loads(done.stdout)["contents"] == "n is 5"
    assert "FILEWRITER" in done.stderr
    assert "✓ done" in (here / "plan.svg").read_text(encoding="utf-8")
    done = neuraxis("plan", "run", "plan.yaml", "--set", "n=6", "--json")
    assert [item["status"] for item in json.loads(done.stdout)] == ["done", "done"]


def test_plan_run_tells_what_failed(here: Path) -> None:
    """Exit code 1; what worked is told as well."""
    failing = PLAN.replace(
        'arguments: {file_path: "{{ params.name }}"}', "arguments: {file_path: no.txt}"
    )
    (here / "failing.yaml").write_text(failing, encoding="utf-8")
    done = neuraxis("plan", "run", "failing.yaml", "--set", "n=1", "--json")
    assert done.return_value == 1
    assert [item["status"] for item in json.loads(done.stdout)] == ["done", "failed"]


def test_plan_run_goes_on_where_it_is_told_to(here: Path) -> None:
    """--on-error comes before what the file says."""
    steps = "[{tool: file_reader, arguments: {file_path: no.txt}}, {tool: list_files}]"
    text = f"version: 1\non_error: fail_fast\nsteps: {steps}\n"
    (here / "two.yaml").write_text(text, encoding="utf-8")
    done = neuraxis("plan", "run", "two.yaml", "--json")
    assert [item["status"] for item in json.loads(done.stdout)] == ["failed", "skipped"]
    done = neuraxis("plan", "run", "two.yaml", "--json", "--on-error", "continue")
    assert [item["status"] for item in json.loads(done.stdout)] == ["failed", "done"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["plan.yaml"], ConfigError),
        (["plan.yaml", "--set", "n"], ConfigError),
        (["plan.yaml", "--set", "n=x"], ConfigError),
        (["missing.yaml"], ConfigError),
        (["plan.yaml", "--set", "n=1", "--svg", "no/such/folder.svg"], StorageError),
    ],
)
def test_plan_run_refuses(here: Path, arguments: list[str], error: Any) -> None:
    """What was typed wrongly is told before anything is run."""
    done = neuraxis("plan", "run", *arguments)
    assert isinstance(done.exception, error)


def test_save_plan_and_run_it_again(here: Path) -> None:
    """What a model did once is done again without it."""
    done = neuraxis(
        "run", "-m", "scripted:model.yaml", "--journal", "memory", "-q",
        "--save-plan", "saved.yaml", "copy a to b",
    )  # fmt: skip
    assert (done.return_value, done.exception) == (0, None)
    text = (here / "saved.yaml").read_text(encoding="utf-8")
    assert "results[1]" in text
    (here / "neuraxis-workspace" / "b.txt").unlink()
    done = neuraxis("plan", "run", "saved.yaml", "-q")
    assert (done.return_value, done.exception) == (0, None)
    written = here / "neuraxis-workspace" / "b.txt"
    assert written.read_text(encoding="utf-8") == "from a"


def test_a_plan_remembers_what_a_failed_step_did(here: Path) -> None:
    """A loop that lost an item under `continue` does the same when it is run again."""
    items = ["a.txt", "no.txt"]
    write = {"tool": "FILEWRITER", "file_path": "a.txt", "contents": "x"}
    read = {"tool": "file_reader", "$for_each": items, "file_path": "{{ item }}"}
    replies = [json.dumps([write, read]), "done"]
    (here / "model.yaml").write_text(json.dumps(replies), encoding="utf-8")
    neuraxis(
        "run", "-m", "scripted:model.yaml", "--journal", "memory", "-q",
        "--on-error", "continue", "--save-plan", "saved.yaml", "read them",
    )  # fmt: skip
    done = neuraxis("plan", "run", "saved.yaml", "--json")
    assert [item["status"] for item in json.loads(done.stdout)] == ["done", "done"]


def test_a_plan_that_lacks_an_asset_says_so(here: Path) -> None:
    """What a person attached is no step: a file cannot bring it back."""
    (here / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    call = {"tool": "describe_asset", "asset": {"asset_id": "a1"}}
    replies = [json.dumps([call]), "done"]
    (here / "model.yaml").write_text(json.dumps(replies), encoding="utf-8")
    done = neuraxis(
        "run", "-m", "scripted:model.yaml", "--journal", "memory", "-q",
        "--attach", "t.csv", "--save-plan", "saved.yaml", "describe it",
    )  # fmt: skip
    assert "the plan uses a1" in done.stderr


def test_a_plan_comes_from_a_pipe(here: Path) -> None:
    """`-` is standard input, for all three."""
    given = ("--set", "n=1")
    for name in ("check", "show", "run"):
        done = CliRunner().invoke(
            cli, ["plan", name, "-", *given], input=PLAN, standalone_mode=False
        )
        assert (done.return_value, done.exception) == (0, None), name
    wrong = CliRunner().invoke(
        cli, ["plan", "check", "-"], input="version: 2", standalone_mode=False
    )
    assert "standard input:1: version" in str(wrong.exception)


def test_a_missing_plan_is_told_without_the_systems_number(here: Path) -> None:
    done = neuraxis("plan", "check", "none.yaml")
    expected = "none.yaml: cannot be read: there is no such file"
    assert str(done.exception) == expected


def test_a_picture_that_cannot_be_written_loses_no_result(here: Path) -> None:
    """Told before the run where its folder is missing, else after the answer."""
    given = ("plan", "run", "plan.yaml", "--set", "n=1", "--svg")
    done = neuraxis(*given, "nowhere/p.svg")
    assert isinstance(done.exception, StorageError)
    assert not (here / "neuraxis-workspace" / "out.txt").exists()
    done = neuraxis(*given, ".")
    assert isinstance(done.exception, StorageError)
    assert "n is 1" in done.stdout


def test_a_plan_of_a_plugin_that_is_not_given(here: Path) -> None:
    """The option is told, once; a plan without parameters says so."""
    step = "version: 1\nsteps: [{tool: greet}, {tool: greet}]\n"
    (here / "g.yaml").write_text(step, encoding="utf-8")
    (here / "other.py").write_text(
        "from neuraxis import command\n\n\n@command\ndef other() -> None: ...\n",
        encoding="utf-8",
    )
    for action in ("check", "show", "run"):
        done = neuraxis("plan", action, "g.yaml")
        assert done.return_value == 1
        assert done.stderr.count("given with -p, such as -p FILE.py") == 1
    assert "FILE.py" not in neuraxis("plan", "check", "-p", "other.py", "g.yaml").stderr
    done = neuraxis("plan", "run", "g.yaml", "--set", "x=1")
    assert str(done.exception) == "x: no such parameter; the plan has none"
