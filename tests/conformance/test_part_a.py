"""Part A: protocol v1. The rules that no other test names, through a whole session."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.kit import (
    ENVELOPES,
    block,
    call_text,
    codes,
    done,
    folder,
    message,
    read,
    talk,
)
from neuraxis import Options, command
from neuraxis.dialects import find_dialect
from neuraxis.plugins.loader import builtin_names, load_plugin

RAN: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


class Diary:
    """Keeps notes."""

    @command
    def note(self, text: str, times: int = 1) -> dict[str, int]:
        """Write a note."""
        RAN.append(text * times)
        return {"kept": len(RAN)}

    @command(effects="read")
    def count(self) -> dict[str, int]:
        """How many notes there are."""
        return {"kept": len(RAN)}


def test_A3_the_summary_names_every_command() -> None:
    """What stands before the details says what the plugin is for and can do."""
    dialect = find_dialect("envelope_v1")
    for name in builtin_names():
        spec = load_plugin(f"neuraxis:{name}").spec
        text = dialect.prompt([spec], {})
        said = re.search(
            r"^Summary:\n\n(.*?)\n\nDetail:\n\n```yaml$", text, re.M | re.S
        )
        assert said is not None
        for item in spec.commands:
            assert item.name in said[1], f"{name}: {item.name}"


def test_A7_the_prompt_says_when_to_call() -> None:
    """Tools are for what the model is not sure of: said, and nothing else."""
    text = find_dialect("envelope_v1").prompt([], {})
    assert "only when you are not sure of your own answer" in text
    sure = talk(
        [call_text("Diary", "count", {}, v1=True), "ok"], [Diary], "envelope_v1"
    )
    assert sure.values == [{"kept": 0}]


PROSE = (
    f"I look it up.\n```json\n{call_text('Diary', 'count', {}, v1=True)}\n```\nDone."
)


def test_A17_other_keys_of_a_message_are_no_mistake() -> None:
    """Thoughts are kept and never said to the user."""
    text = json.dumps(
        {"thoughts": "hmm", "mood": 3, **message("Diary", "count", {}, v1=True)}
    )
    for strict in (False, True):
        reply = read("envelope_v1", text, strict=strict)
        assert [call.target for call in reply.calls] == ["Diary.count"]
        assert reply.thoughts == ("hmm",)
        assert reply.texts == ()


def test_A17_prose_around_a_call_is_taken_leniently_only() -> None:
    """Strict: the reply is JSON and nothing else."""
    assert [call.command for call in read("envelope_v1", PROSE).calls] == ["count"]
    strict = read("envelope_v1", PROSE, strict=True)
    assert strict.calls == ()
    assert codes(strict) == ["malformed_reply"]


@pytest.mark.parametrize("role", ["Plugin", "tool", "plugins", "PLUGIN", None, 1])
@pytest.mark.parametrize("strict", [False, True])
def test_A18_the_role_is_exactly_plugin(role: Any, strict: bool) -> None:
    """Nothing is routed on a guess; the error says the word that is expected."""
    wrong = message("Diary", "note", {"text": "x"}, v1=True)
    wrong["receiver"]["role"] = role
    said = talk(
        [json.dumps(wrong), "ok"],
        [Diary],
        "envelope_v1",
        options=Options(strict=strict),
    )
    assert RAN == []
    assert '\\"plugin\\"' in said.told[0]
    assert said.answer.outcome == "answered"


MANIFEST = """
name: root
info: {title: Title, description: d}
commands:
  - command_name: add
    description: d
    parameters: [{name: a, type: int, description: d, required: true}]
config: {name: shown}
"""
CODE = "def add(a):\n    return {'sum': a}\n"


@pytest.mark.parametrize("name", ["root", "Title", "SHOWN", "plug"])
def test_A19_a_call_goes_by_the_resolved_name_only(tmp_path: Path, name: str) -> None:
    """The other places of a name, the folder and another case lead nowhere."""
    plug = folder(tmp_path, "plug", MANIFEST, CODE)
    good = call_text("shown", "add", {"a": 2}, v1=True)
    said = talk([call_text(name, "add", {"a": 2}, v1=True), good, "ok"], [plug],
                "envelope_v1")  # fmt: skip
    assert said.codes == ["unknown_plugin"]
    assert said.values == [{"sum": 2}]


def test_A20_a_command_of_the_plugin_only() -> None:
    """A command that another plugin has is unknown in this one."""

    @command
    def other() -> int:
        """Another."""
        return 1

    for name in ("other", "Note", "nothing"):
        said = talk(
            [call_text("Diary", name, {}, v1=True), "ok"], [Diary, other], "envelope_v1"
        )
        assert said.codes == ["unknown_command"]
        assert "note, count" in said.told[0]


def test_A21_a_missing_param_is_an_empty_one() -> None:
    """So a command without parameters needs none, and `required` still holds."""
    fine = talk([call_text("Diary", "count", v1=True), "ok"], [Diary], "envelope_v1")
    assert fine.values == [{"kept": 0}]
    short = talk([call_text("Diary", "note", v1=True), "ok"], [Diary], "envelope_v1")
    assert short.codes == ["invalid_param"]
    assert "note.text" in short.told[0]


@pytest.mark.parametrize("param", [[], "x", 3, True, ["text"]])
def test_A21_param_is_an_object(param: Any) -> None:
    """Anything else is an error, in both profiles."""
    for strict in (False, True):
        wrong = call_text("Diary", "note", param, v1=True)
        said = talk(
            [wrong, "ok"], [Diary], "envelope_v1", options=Options(strict=strict)
        )
        assert said.codes != []
        assert RAN == []


def test_A21_unknown_keys_are_told_with_the_valid_ones() -> None:
    """Nothing is dropped silently."""
    wrong = call_text("Diary", "note", {"text": "x", "txt": 1}, v1=True)
    said = talk([wrong, "ok"], [Diary], "envelope_v1")
    assert said.codes == ["invalid_param"]
    assert "text, times" in said.told[0]
    assert RAN == []


@pytest.mark.parametrize("dialect", ENVELOPES)
def test_A22_an_id_in_the_receiver_never_routes(dialect: str) -> None:
    """Strict refuses it; leniently it is noted, and the name alone counts."""
    wrong = message("Diary", "note", {"text": "x"})
    wrong["receiver"]["id"] = "another-plugin"
    said = talk(
        [json.dumps(wrong), "ok"], [Diary], dialect, options=Options(strict=True)
    )
    assert said.codes == ["receiver_id_not_allowed"]
    assert RAN == []
    talk([json.dumps(wrong), "ok"], [Diary], dialect)
    assert RAN == ["x"]
    noted = read(dialect, json.dumps(wrong))
    assert "an id in the receiver, ignored" in noted.notes
    wrong["receiver"] |= {"name": "Nobody", "id": "Diary"}
    assert talk([json.dumps(wrong), "ok"], [Diary], dialect).codes == ["unknown_plugin"]


def test_A28_a_list_of_calls_runs_in_its_order() -> None:
    """One call is what the document shows; several come as a list of messages."""
    text = json.dumps(
        [message("Diary", "note", {"text": word}, v1=True) for word in "abc"]
    )
    for strict in (False, True):
        RAN.clear()
        said = talk(
            [text, "ok"], [Diary], "envelope_v1", options=Options(strict=strict)
        )
        assert RAN == ["a", "b", "c"]
        assert said.values == [{"kept": 1}, {"kept": 2}, {"kept": 3}]


def test_A29_an_answer_of_v1_is_the_envelope_of_v2() -> None:
    """content_type is sent, though v1 never asks a model for it."""
    for strict in (False, True):
        v1 = find_dialect("envelope_v1", strict=strict).encode([done({"urls": []})])
        v2 = find_dialect("envelope_v2", strict=strict).encode([done({"urls": []})])
        assert v1 == v2
        assert json.loads(v1)["content_type"] == "command"
        reply = read("envelope_v1", call_text("Diary", "count", v1=True), strict=strict)
        assert [call.command for call in reply.calls] == ["count"]


def test_A30_what_v1_does_not_name_is_as_in_v2() -> None:
    """Errors, assets and messages to the user."""

    @command
    def picture() -> object:
        """Makes what no JSON can hold."""
        return object()

    call = call_text("picture", "picture", {}, v1=True)
    user = json.dumps({"receiver": {"role": "user"}, "content": "There it is."})
    said = talk([call_text("Nope", "x", {}, v1=True), call, user], [picture],
                "envelope_v1")  # fmt: skip
    error, asset = map(json.loads, said.told)
    assert error["content_type"] == "error"
    assert asset["content_type"] == "asset_ref"
    assert said.answer.text == "There it is."


def test_A28_an_intent_block_is_no_message() -> None:
    """Another dialect's call is text here, not a guess."""
    reply = read("envelope_v1", block({"tool": "note", "text": "x"}), strict=True)
    assert reply.calls == ()


@pytest.mark.parametrize(
    ("plugin", "name"),
    [("diary", "note"), ("DIARY", "note"), ("Diary", "Note"), ("Dairy", "note"),
     ("Diary", "notes"), ("Diary ", "NOTE")],
)  # fmt: skip
def test_A16_a_near_name_is_told_and_never_corrected(plugin: str, name: str) -> None:
    """Case counts; the nearest names are given, and nothing runs."""
    for strict in (False, True):
        call = call_text(plugin, name, {"text": "x"}, v1=True)
        said = talk(
            [call, "ok"], [Diary], "envelope_v1", options=Options(strict=strict)
        )
        known = plugin.strip() == "Diary"
        assert said.codes == ["unknown_command" if known else "unknown_plugin"]
        assert json.loads(said.told[0])["content"]["candidates"][0] in ("Diary", "note")
        assert RAN == []


def test_A16_spaces_around_a_name_do_not_count() -> None:
    """They are trimmed, on both sides."""
    talk([call_text(" Diary ", " note ", {"text": "x"}, v1=True), "ok"], [Diary],
         "envelope_v1")  # fmt: skip
    assert RAN == ["x"]


ENUMS = """
name: enums
info: {title: Enums, description: d}
commands:
  - command_name: pick
    description: d
    parameters:
      - {name: word, type: string, description: d, enum: [yes, no, 1], required: false}
      - {name: number, type: int, description: d, enum: [1, 2], required: false}
"""
ENUM_CODE = "def pick(word=None, number=None):\n    return [word, number]\n"


@pytest.mark.parametrize(
    "param", [{"word": "maybe"}, {"word": ""}, {"word": "YES?"}, {"number": 3},
              {"number": True}, {"number": "three"}],
    ids=str,
)  # fmt: skip
def test_A24_a_value_outside_of_an_enum_is_refused(tmp_path: Path, param: Any) -> None:
    """By value and by type; the error lists what is possible."""
    plug = folder(tmp_path, "enums", ENUMS, ENUM_CODE)
    for strict in (False, True):
        call = call_text("enums", "pick", param, v1=True)
        said = talk([call, "ok"], [plug], "envelope_v1", options=Options(strict=strict))
        assert said.codes == ["invalid_param"]
        assert ("yes" if "word" in param else "1, 2") in said.told[0]


@pytest.mark.parametrize("param", [{"word": "yes"}, {"word": "1"}, {"number": 2}])
def test_A24_A15_the_listed_values_are_taken(tmp_path: Path, param: Any) -> None:
    """Words of a text parameter are what was typed, though YAML reads another thing."""
    plug = folder(tmp_path, "enums", ENUMS, ENUM_CODE)
    call = call_text("enums", "pick", param, v1=True)
    said = talk([call, "ok"], [plug], "envelope_v1", options=Options(strict=True))
    assert said.values == [[param.get("word"), param.get("number")]]
