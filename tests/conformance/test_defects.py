"""The defects of earlier implementations, each with the behaviour that replaces it."""

from __future__ import annotations

import json
import math
import pickle
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import neuraxis
from builtin.pages import serving
from conformance.kit import block, call_text, folder, message, talk
from neuraxis import Options, Policy, Session, command
from neuraxis.assets.store import AssetStore
from neuraxis.dialects import find_dialect
from neuraxis.errors import NeuraxisError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.references.asset_ref import AssetRef, parse_reference
from neuraxis.settings import Settings

GIVEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    GIVEN.clear()


@command
def make() -> dict[str, Any]:
    """Make what JSON cannot hold."""
    return {"thing": object(), "words": ["a", "b"]}


@command(effects="read", asset_refs=["what"])
def take(what: Any) -> bool:
    """Take it."""
    GIVEN.append(what)
    return True


def _taken(written: Any) -> Any:
    calls = [
        call_text("make", "make", {}),
        call_text("take", "take", {"what": written}),
    ]
    said = talk([*calls, "ok"], [make, take])
    return GIVEN[-1] if GIVEN else said.errors or said.codes


def test_defect_01_a_reference_without_a_path_is_one() -> None:
    """`{"asset_id": "a1"}` is the very shape that an answer has."""
    assert parse_reference({"asset_id": "a1"}) == AssetRef(asset_id="a1")
    assert _taken({"asset_id": "a1"})["content"]["command"] == "make"


def test_defect_02_an_id_keeps_its_case() -> None:
    """It is no host name."""
    store = AssetStore()
    store.keep("AbC", "make", {"x": object(), "n": 1})
    ref = parse_reference("asset://AbC/content/response/n")
    assert ref is not None
    assert store.resolve(ref) == 1


def test_defect_03_a_url_names_the_whole_asset_and_empty_keys() -> None:
    """`asset://id` is the root; `//` is the key "" between."""
    assert _taken("asset://a1")["content"]["command"] == "make"
    assert _taken("asset://a1/")["content"]["command"] == "make"
    store = AssetStore()
    store.keep("a1", "c", {"x": object(), "": {"b": 7}})
    ref = parse_reference("asset://a1/content/response//b")
    assert ref is not None
    assert store.resolve(ref) == 7


PATHS = [["__class__", "__mro__"], ["__class__"], ["words", -1], ["words", "0:1"],
         ["thing", "__dict__"], ["keys"], ["words", "append"]]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=str)
def test_defect_04_a_path_has_no_attributes_and_no_index_from_the_end(
    path: Any,
) -> None:
    """Mappings and lists are walked, nothing else."""
    written = {"asset_id": "a1", "field_path": ["content", "response", *path]}
    assert _taken(written) == ["asset_path_not_found"]


def test_defect_05_null_can_be_said_and_nan_cannot() -> None:
    """An answer with null stays an answer; one with NaN becomes an asset."""
    store = AssetStore()
    assert not store.keep("a1", "c", None).stored
    assert not store.keep("a2", "c", {"x": None, "y": [None]}).stored
    for number, value in enumerate((math.nan, math.inf, 1j, [math.nan], {"x": 2j})):
        assert store.keep(f"b{number}", "c", value).stored


def test_defect_06_the_meta_is_short_and_keeps_nulls() -> None:
    """A long text costs its beginning; a container has Python's name."""
    store = AssetStore()
    store.keep("a1", "c", {"text": "x" * 100_000, "none": None, "o": object()})
    (meta,) = store.meta()
    assert len(json.dumps(meta)) <= 500
    assert meta["content/response/none"] is None
    assert meta["content/response"] == "<class 'dict'>"
    assert "100000 characters" in meta["content/response/text"]


@pytest.mark.parametrize("value", ["hello", ["a"], None, 5, False], ids=repr)
def test_defect_07_a_response_that_is_no_mapping_survives(value: Any) -> None:
    """The response is never taken from `param`."""

    @command
    def give(param: int) -> Any:
        """Give."""
        return value

    said = talk(
        [call_text("give", "give", {"param": 1}), "ok"],
        [give],
        options=Options(strict=True),
    )
    content = {"command": "give", "response": value}
    assert json.loads(said.told[0])["content"] == content


def test_defect_08_a_parameter_without_required_is_required_natively() -> None:
    """The native definition is the schema that is enforced."""
    spec, _ = parse_manifest(TYPED)
    (tool,) = find_dialect("native").native_tools([spec], {})
    assert tool["function"]["parameters"]["required"] == ["kind", "box"]


TYPED = """
name: typed
info: {title: Typed, description: d}
commands:
  - command_name: act
    description: d
    parameter:
      type:
        kind: {type: string, description: d, enum: [a, b]}
        box: {type: {_type_ref: box, x: {type: int, description: d}}, description: d}
        other: {type: box, description: d, required: false}
    response:
      type:
        ok: {type: bool, description: d}
        note: {type: string, description: d, optional: true}
"""
GOOD = {"kind": "a", "box": {"x": 1}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "c"},
        {"box": {"x": "one"}},
        {"box": {}},
        {"other": {"x": None}},
        {"other": {"x": 1, "y": 2}},
        {"kind": "asset://a1"},
        {"kind": {"asset_id": "a1"}},
        {"kind": None},
    ],
    ids=str,
)
def test_defect_09_what_a_manifest_says_is_enforced(tmp_path: Path, wrong: Any) -> None:
    """enum, type, required, _type_ref, asset_ref_acceptable; optional in answers."""
    plug = folder(tmp_path, "p", TYPED, "def act(**given):\n    return {'ok': True}\n")
    assert talk([call_text("typed", "act", GOOD), "ok"], [plug]).errors == []
    said = talk([call_text("typed", "act", GOOD | wrong), "ok"], [plug])
    assert said.codes != []
    assert said.answer.calls == ()
    bad = folder(tmp_path, "q", TYPED, "def act(**given):\n    return {'note': 'x'}\n")
    said = talk(
        [call_text("typed", "act", GOOD), "ok"], [bad], options=Options(strict=True)
    )
    assert said.errors == ["plugin_contract_error"]


def test_defect_10_a_failing_call_stops_those_after_it() -> None:
    """What has an effect is not run after a failure."""

    @command
    def fail() -> None:
        """Fail."""
        raise RuntimeError("no")

    @command
    def act() -> None:
        """Act."""
        GIVEN.append("acted")

    both = json.dumps([message("fail", "fail", {}), message("act", "act", {})])
    said = talk([both, "ok"], [fail, act])
    assert [result.status for result in said.answer.calls] == ["failed", "skipped"]
    assert GIVEN == []


class _Bomb:
    def __reduce__(self) -> Any:
        return GIVEN.append, ("exploded",)


def test_defect_10_a_foreign_session_file_runs_no_code(tmp_path: Path) -> None:
    """Nothing of the package unpickles; a file of another kind is refused."""
    sources = Path(neuraxis.__file__).parent.rglob("*.py")
    for file in sources:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(import|from) (pickle|marshal|shelve)\b", text, re.M)
    bomb = pickle.dumps(_Bomb())
    journal = tmp_path / "sessions.db"
    journal.write_bytes(bomb)
    with pytest.raises(NeuraxisError):
        Session(model=ScriptedModel([]), journal=journal, settings=Settings())
    journal.unlink()
    with Session(
        model=ScriptedModel([call_text("make", "make", {}), "ok"]),
        plugins=[make],
        dialect="envelope_v2",
        journal=journal,
        options=Options(asset_folder=tmp_path / "assets"),
        settings=Settings(),
    ) as session:
        session.run_sync("go")
        name = session.id
    with sqlite3.connect(journal) as base:
        for (table,) in base.execute(
            "SELECT name FROM sqlite_master WHERE type='table'"
        ).fetchall():
            for column in base.execute(f"PRAGMA table_info({table})").fetchall():
                if column[2].upper() in ("TEXT", "BLOB") and not column[5]:
                    GIVEN.append(column[1])
    base.close()
    assert GIVEN != []
    GIVEN.clear()
    (tmp_path / "assets" / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "assets" / name / "a1.nxb").write_bytes(bomb)
    call = call_text("take", "take", {"what": "asset://a1"})
    with Session.open(
        name,
        model=ScriptedModel([call, "ok"]),
        plugins=[take],
        dialect="envelope_v2",
        journal=journal,
        options=Options(asset_folder=tmp_path / "assets"),
        settings=Settings(),
    ) as session:
        answer = session.run_sync("go")
    assert answer.calls[0].error is not None
    assert answer.calls[0].error.code == "asset_lost"
    assert GIVEN == []


PAYLOAD = "{{ cycler.__init__.__globals__.os.popen('echo PWN').read() }}"


@pytest.mark.parametrize("dialect", ["intents", "envelope_v2"])
def test_defect_11_nothing_between_braces_runs(dialect: str) -> None:
    """What a model or a page wrote is text, byte for byte."""
    text = (
        block({"tool": "take", "what": "x"}, {"tool": "take", "what": PAYLOAD})
        if dialect == "intents"
        else json.dumps([message("take", "take", {"what": PAYLOAD})])
    )
    talk([text, "ok"], [take], dialect)
    assert PAYLOAD in GIVEN  # two calls that only read may overlap


def test_defect_12_a_reference_in_the_first_step_is_told() -> None:
    """It is never written literally, and nothing runs."""
    text = block({"tool": "take", "what": "{{ previous_result['urls'] }}"})
    said = talk([text, "ok"], [take], "intents")
    assert said.codes == ["reference_not_found"]
    assert GIVEN == []


@pytest.mark.parametrize("text", ["[{", '{"tool": ', "[{'tool': }]", '["tool": 1]'])
def test_defect_13_a_reply_that_cannot_be_read_is_told(text: str) -> None:
    """The model is asked again; the run goes on."""
    wrong = f"<!-- RESPONSE_START -->\n{text}\n<!-- RESPONSE_END -->"
    said = talk([wrong, block({"tool": "take", "what": "x"}), "ok"], [take], "intents")
    assert said.codes == ["malformed_reply"]
    assert (GIVEN, said.answer.text) == (["x"], "ok")


def test_defect_14_a_failing_script_is_an_answer(tmp_path: Path) -> None:
    """Not an exception out of the loop: `success: false`, and what it printed."""
    from neuraxis.sandbox.process.run import probe

    if not any(found.works for found in probe() if found.kind != "none"):
        pytest.skip("no sandbox works on this machine")
    (tmp_path / "bad.py").write_text("print('so far')\nraise SystemExit(3)\n")
    run = block({"tool": "EXECUTE_PYTHON_FILE", "file_path": "bad.py"})
    said = talk([run, "ok"], ["neuraxis:python_file"], "intents", workspace=tmp_path)
    assert said.answer.outcome == "answered"
    assert said.values[0]["success"] is False
    assert said.values[0]["output"] == "so far\n"


@pytest.mark.parametrize("path", ["../out.py", "/etc/out.py", "a/../../out.py"])
def test_defect_15_one_workspace_and_no_way_out(tmp_path: Path, path: str) -> None:
    """Writing and running mean the same folder, and neither leaves it."""
    inside = tmp_path / "workspace"
    inside.mkdir()
    for intent in (
        {"tool": "FILEWRITER", "file_path": path, "contents": "print(1)"},
        {"tool": "EXECUTE_PYTHON_FILE", "file_path": path},
    ):
        said = talk(
            [block(intent), "ok"],
            ["neuraxis:files", "neuraxis:python_file"],
            "intents",
            workspace=inside,
        )
        assert said.answer.calls[0].status == "failed"
    assert [item.name for item in tmp_path.iterdir()] == ["workspace"]
    assert list(inside.iterdir()) == []


def test_defect_16_a_failed_fetch_is_a_failed_step(tmp_path: Path) -> None:
    """Not None as an answer: the step fails, and what needs it is not run."""
    chain = (
        {"tool": "FILEWRITER", "file_path": "x.md",
         "contents": "{{ previous_result['output'] }}"},
    )  # fmt: skip
    with serving({"/gone": (500, "text/plain", b"no")}, []) as server:
        for url, allow in (
            (f"http://{server}/gone", (server,)),
            (f"http://{server}/gone", ()),  # an inner address
            ("http://169.254.169.254/latest/meta-data", ()),
        ):
            said = talk(
                [block({"tool": "FETCH_URL", "url": url}, *chain), "ok"],
                ["neuraxis:fetch_url", "neuraxis:files"],
                "intents",
                workspace=tmp_path,
                policy=Policy(allow_hosts=allow),
            )
            statuses = [result.status for result in said.answer.calls]
            assert statuses == ["failed", "skipped"]
    assert not (tmp_path / "x.md").exists()
