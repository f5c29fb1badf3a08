"""`--output`: the answer is JSON of a schema."""

from __future__ import annotations

import json
from pathlib import Path

from cli_process import neuraxis

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "string"}},
    "required": ["number"],
}


def _run(folder: Path, *replies: str) -> tuple[int, str, str]:
    (folder / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    (folder / "m.yaml").write_text(json.dumps([*replies]), encoding="utf-8")
    arguments = ("run", "-q", "-m", "scripted:m.yaml", "--journal", "memory")
    done = neuraxis(*arguments, "--output", "schema.json", "read it", cwd=folder)
    return done.returncode, done.stdout, done.stderr


def test_nothing_but_json_is_written(tmp_path: Path) -> None:
    """Also where the model wrote words around it."""
    code, out, _ = _run(tmp_path, 'Here:\n```json\n{"number": "R7"}\n```')
    assert (code, json.loads(out)) == (0, {"number": "R7"})


def test_what_never_fits_is_a_failure(tmp_path: Path) -> None:
    """With the reason on standard error."""
    code, _, told = _run(tmp_path, "a", "b", "c")
    assert (code, "found no JSON" in told) == (1, True)


def test_a_file_that_is_no_json_is_told(tmp_path: Path) -> None:
    """Before the model is asked."""
    (tmp_path / "s.json").write_text("{", encoding="utf-8")
    done = neuraxis("run", "--output", "s.json", "hi", cwd=tmp_path)
    assert (done.returncode, "--output s.json" in done.stderr) == (2, True)
