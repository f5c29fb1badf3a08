"""Objects through a whole conversation: read, group, plot, crop, save, in each dialect.

100,000 rows are read and never said: the model passes references on, and the files at
the end are the same byte for byte, whatever the calls were written in.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Answer, Session
from neuraxis.dialects import DIALECTS
from neuraxis.models.scripted import ScriptedModel

pytest.importorskip("polars")
pytest.importorskip("PIL")
pytest.importorskip("matplotlib")

PLUGINS = [f"neuraxis:{name}" for name in ("tables", "images", "plots", "assets")]
ROWS = 100_000


def _at(number: int, *path: str) -> str:
    return "/".join([f"asset://a{number}/content/response", *path])


CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("tables", "read_table", {"file_path": "people.csv"}),
    (
        "tables",
        "group_rows",
        {
            "table": _at(1),
            "by": ["city"],
            "aggregations": [
                {"function": "count"},
                {"column": "age", "function": "mean"},
            ],
        },
    ),
    (
        "plots",
        "plot_bar",
        {"table": _at(2), "x": "city", "y": "age_mean", "title": "Age"},
    ),
    ("images", "crop_image", {"img_data": _at(3), "box": [0, 0, 400, 250]}),
    (
        "images",
        "save_image",
        {"img_data": _at(4, "cropped", "0"), "file_path": "out/part.png"},
    ),
    ("tables", "write_table", {"table": _at(2), "file_path": "out/means.csv"}),
]
ASKED = "How old are the people of each city? Put the means and part of a plot in out."
SAID = f"Saved. <|{_at(2)}|>"


def _written(dialect: str, calls: list[tuple[str, str, dict[str, Any]]]) -> Any:
    """Calls as a model of that dialect writes them."""
    if dialect == "native":
        return {
            "text": "",
            "tool_calls": [
                {"name": command, "arguments": arguments}
                for _, command, arguments in calls
            ],
        }
    if dialect == "intents":
        return json.dumps([{"tool": command, **given} for _, command, given in calls])
    kind = {"content_type": "command"} if dialect == "envelope_v2" else {}
    return json.dumps(
        [
            {
                "receiver": {"role": "plugin", "name": plugin},
                **kind,
                "content": {"command": command, "param": arguments},
            }
            for plugin, command, arguments in calls
        ]
    )


def _ending(dialect: str) -> str:
    if not dialect.startswith("envelope"):
        return SAID
    kind = {"content_type": "text/plain"} if dialect == "envelope_v2" else {}
    return json.dumps({"receiver": {"role": "user"}, **kind, "content": SAID})


def _run(
    folder: Path, dialect: str, at_once: bool
) -> tuple[Answer, list[int], dict[str, bytes]]:
    """The answer, the characters of each request, and the files that were written."""
    folder.mkdir()
    chance = random.Random(5)
    cities = ["Lyon", "Turin", "Graz", "Bergen", "$x_y$"]
    lines = [f"{chance.choice(cities)},{chance.randrange(90)}" for _ in range(ROWS)]
    text = "\n".join(["city,age", *lines])
    (folder / "people.csv").write_text(text, encoding="utf-8")
    turns = [CALLS] if at_once else [[call] for call in CALLS]
    model = ScriptedModel(
        [*(_written(dialect, turn) for turn in turns), _ending(dialect)]
    )
    with Session(
        model=model, plugins=PLUGINS, dialect=dialect, workspace=folder
    ) as session:
        answer = session.run_sync(ASKED)
    asked = [sum(len(m.content) for m in prompt.messages) for prompt in model.prompts]
    written = {name: (folder / name).read_bytes() for name in sorted(set(answer.files))}
    return answer, asked, written


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the conversation in the intent dialect."""
    return _run(tmp_path_factory.mktemp("first") / "w", "intents", False)[2]


@pytest.mark.parametrize("at_once", [False, True], ids=["turns", "one-plan"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_B42_B52_the_same_files_in_each_dialect(
    dialect: str, at_once: bool, files: dict[str, bytes], tmp_path: Path
) -> None:
    """Every step is done, nothing large is said, and the files are the same."""
    answer, asked, written = _run(tmp_path / "w", dialect, at_once)
    statuses = [
        (call.command, call.status, call.error and call.error.message)
        for call in answer.calls
    ]
    assert [(name, "done", None) for _, name, _ in CALLS] == statuses
    assert ["out/means.csv", "out/part.png"] == list(written)
    assert files == written
    assert written["out/part.png"].startswith(b"\x89PNG")
    assert asked[-1] - asked[0] < 6000
    # B62: the reference in the text to the person is a table they can read
    assert answer.text.startswith("Saved. \n\n| city | count | age_mean |\n| --- |")
    assert "asset://" not in answer.text
