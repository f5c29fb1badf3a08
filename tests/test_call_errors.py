"""The sentences a model is told: names that are meant, values quoted short."""

import json
from pathlib import Path

import pytest

from neuraxis import call_errors
from neuraxis.messages import Problem


def test_D7_the_nearest_name_is_the_one_that_was_meant(shared_data: Path) -> None:
    """Misspelled commands among 723 names: the right one first in over 90 %.

    A fifth of the rows; the benchmark takes all.
    """
    folder = shared_data / "bfcl"
    with (folder / "functions.jsonl").open(encoding="utf-8") as lines:
        names = [json.loads(line)["name"] for line in lines]
    with (folder / "unknown_command.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][::5]
    first = sum(
        call_errors.nearest(row["name"], names)[:1] == (row["did_you_mean"],)
        for row in rows
    )
    assert first / len(rows) > 0.9


def test_a_problem_says_where_expected_and_given() -> None:
    """The form of every argument error."""
    problem = Problem(
        path=("boxes", 1, "odd key"), expected="integer", got='"one"', candidates=("x",)
    )
    told = call_errors.problem_text(problem, "crop")
    assert told == (
        'crop.boxes[1]["odd key"]: expected integer, got "one" (did you mean x?)'
    )


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("a\nb", '"a\\nb"'),
        (object, "<builtins.type>"),
        ("x" * 100, '"' + "x" * 58 + "…"),
    ],
)
def test_values_are_quoted_on_one_short_line(value: object, quoted: str) -> None:
    """No line break and no long text of a third party stands in an error."""
    assert call_errors.quote(value) == quoted


@pytest.mark.parametrize("tell", ["unknown_plugin", "unknown_command", "asset_unknown"])
def test_a_name_of_any_length_makes_a_short_error(tell: str) -> None:
    """What a model writes for a name may be a whole page; the nearest is found."""
    known = {"x": (), "weather" * 17: ()}
    names = known if tell == "unknown_command" else tuple(known)
    error = getattr(call_errors, tell)("weather" * 100_000, names)
    assert len(error.message) < 700
    assert error.candidates == ("weather" * 17,)
    assert '"weather' in error.message


def test_no_error_holds_a_traceback() -> None:
    """The first line of an exception only, cut at 500 characters."""
    error = call_errors.crashed("a.b", "ValueError", "x" * 900)
    assert len(error.message) < 560
    assert error.fixable_by == "author"


def test_errors_have_the_same_matter_as_json() -> None:
    """Rule D7: code, message, where, problems, candidates, who can mend it."""
    error = call_errors.unknown_plugin("Wether", ["Weather", "Maps"])
    written = call_errors.to_json(error)
    assert written["candidates"] == ["Weather"]
    assert "does not exist" in written["message"]
    assert json.loads(json.dumps(written)) == written
