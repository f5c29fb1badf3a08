"""Part B: protocol v2. The rules that no other test names, through a whole session."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.kit import (
    DIALECTS,
    call_text,
    codes,
    done,
    folder,
    message,
    read,
    reply_in,
    talk,
)
from neuraxis import Options, Session, command
from neuraxis.dialects import find_dialect
from neuraxis.errors import ManifestError
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.settings import Settings


class Bulb:
    """What JSON cannot hold."""

    def __init__(self, watts: int) -> None:
        self.watts = watts


GIVEN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    GIVEN.clear()


@dataclass
class Lamps:
    """Makes lamps and looks at them."""

    made: list[Bulb] = field(default_factory=list[Bulb])

    @command
    def make(self, watts: int = 60) -> dict[str, Any]:
        """Make a bulb."""
        self.made.append(Bulb(watts))
        return {"bulb": self.made[-1], "label": "asset://a1/content"}

    @command(effects="read")
    def look(self, bulb: Bulb) -> dict[str, int]:
        """Look at a bulb."""
        GIVEN.append(bulb)
        return {"watts": bulb.watts}

    @command(effects="read", asset_refs=["text"])
    def echo(self, text: str) -> dict[str, str]:
        """Say it again."""
        GIVEN.append(text)
        return {"text": text}


MANIFEST = """
name: web
info: {title: Web, description: Looks things up.}
commands:
  - command_name: search
    description: Find pages.
    parameter: {type: {query: {type: string, description: the words}}}
  - command_name: nap
    description: Wait.
    parameter: {type: int}
"""
CODE = "def search(query):\n    return {'q': query}\ndef nap(n):\n    return n\n"


# --- the prompt --------------------------------------------------------------


def test_B1_the_plugins_stand_where_a_template_says(tmp_path: Path) -> None:
    """Between the template's own headings, once; nothing else of it changes."""
    template = tmp_path / "own.md"
    template.write_text(
        '{"a": 1}\n\n**Available Plugins:**\n\n{plugins}\n\n---\n\n'
        "**Important Note:** {x}\n\n## Complex Data Type\n",
        encoding="utf-8",
    )
    spec, _ = parse_manifest(MANIFEST.replace("Looks things up.", "'{plugins} {x}'"))
    text = find_dialect("envelope_v2", template=template).prompt([spec], {})
    before, _, rest = text.partition("**Available Plugins:**\n\n```yaml\n")
    detail, _, after = rest.partition("\n```\n\n---\n\n")
    assert before == '{"a": 1}\n\n'
    assert yaml.safe_load(detail)["info"]["description"] == "{plugins} {x}"
    assert after == "**Important Note:** {x}\n\n## Complex Data Type\n"


def test_B3_the_prompt_says_when_a_plugin_is_better() -> None:
    """Prompt text only: the runtime asks no model how sure it is."""
    text = find_dialect("envelope_v2").prompt([], {})
    assert "Call a plugin only when it does better than what you know" in text


# --- messages ----------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"content_type": "text/markdown"}])
def test_B7_a_message_to_the_user_is_the_answer(more: dict[str, str]) -> None:
    """Role user with any text, or bare text; both profiles."""
    user = json.dumps({"receiver": {"role": "user"}, **more, "content": "**Hello**"})
    for strict in (False, True):
        assert (
            talk([user], [], options=Options(strict=strict)).answer.text == "**Hello**"
        )
        assert (
            talk(["Just hello."], [], options=Options(strict=strict)).answer.text
            == "Just hello."
        )


def test_B8_content_type_is_command() -> None:
    """Missing: an error strictly, understood leniently. Another word: an error."""
    bare = json.dumps(message("web", "search", {"query": "x"}, v1=True))
    other = json.dumps(message("web", "search", {}) | {"content_type": "commands"})
    assert codes(read("envelope_v2", bare, strict=True)) == ["malformed_reply"]
    lenient = read("envelope_v2", bare)
    assert [call.command for call in lenient.calls] == ["search"]
    assert "no content_type" in lenient.notes
    for strict in (False, True):
        assert codes(read("envelope_v2", other, strict=strict)) == ["malformed_reply"]


@pytest.mark.parametrize("role", ["Plugin", "function", "", None])
def test_B9_the_role_is_plugin(role: Any) -> None:
    """Any other role reaches no plugin."""
    wrong = message("web", "search", {"query": "x"})
    wrong["receiver"]["role"] = role
    for strict in (False, True):
        assert read("envelope_v2", json.dumps(wrong), strict=strict).calls == ()


@pytest.mark.parametrize(
    ("config", "name", "title", "resolved"),
    [
        ("c", "n", "t", "c"),
        ("null", "n", "t", "n"),
        ("# a comment", "null", "t", "t"),
        ("''", "' '", "t", "t"),
        ("c", "null", "null", "c"),
    ],
)
def test_B10_three_places_of_a_name(
    tmp_path: Path, config: str, name: str, title: str, resolved: str
) -> None:
    """The same order as in v1; the resolved name is shown and called by."""
    text = MANIFEST.replace("name: web", f"name: {name}").replace("Web", title)
    plug = folder(tmp_path, "p", f"{text}config:\n  name: {config}\n", CODE)
    said = talk([call_text(resolved, "search", {"query": "x"}), "ok"], [plug])
    assert said.values == [{"q": "x"}]
    assert f"name: {resolved}\n" in said.model.prompts[0].messages[0].content


def test_B11_only_listed_commands(tmp_path: Path) -> None:
    """Code that the manifest does not list cannot be called."""
    plug = folder(tmp_path, "p", MANIFEST, CODE + "def wipe():\n    1 / 0\n")
    said = talk([call_text("web", "wipe", {}), "ok"], [plug])
    assert said.codes == ["unknown_command"]
    assert "search, nap" in said.told[0]


def test_B12_param_is_an_object_or_the_plain_value(tmp_path: Path) -> None:
    """The object of all parameters, or the bare value where the type is simple."""
    plug = folder(tmp_path, "p", MANIFEST, CODE)
    calls = [
        message("web", "search", {"query": "x"}),
        message("web", "nap", 3),
    ]
    assert talk([json.dumps(calls), "ok"], [plug]).values == [{"q": "x"}, 3]
    for param in ("x", ["x"], 3):
        said = talk([call_text("web", "search", param), "ok"], [plug])
        assert said.codes == ["invalid_param"]


def test_B13_no_id_in_a_receiver() -> None:
    """Strictly an error of its own; never written by us in any message."""
    wrong = message("web", "search", {"query": "x"})
    wrong["receiver"]["id"] = "1"
    strict = read("envelope_v2", json.dumps(wrong), strict=True)
    assert codes(strict) == ["receiver_id_not_allowed"]
    for strict in (False, True):
        dialect = find_dialect("envelope_v2", strict=strict)
        call = Call(id="a1", plugin="web", command="search")
        for text in (dialect.write([call]), dialect.encode([done(1)])):
            assert "id" not in json.loads(text)["receiver"]


# --- the answer ----------------------------------------------------------------


@pytest.fixture
def answered(tmp_path: Path) -> dict[str, Any]:
    """What the model reads after one call, in the strict profile."""
    plug = folder(tmp_path, "p", MANIFEST, CODE)
    said = talk(
        [call_text("web", "search", {"query": "x"}), "ok"],
        [plug],
        options=Options(strict=True),
    )
    return json.loads(said.told[0])


def test_B21_the_sender_is_the_plugin(answered: dict[str, Any]) -> None:
    """The one that the call was sent to."""
    assert answered["sender"] == {"role": "plugin", "name": "web"}


def test_B22_the_receiver_is_the_cerebrum(answered: dict[str, Any]) -> None:
    """With its role and nothing else."""
    assert answered["receiver"] == {"role": "cerebrum"}


def test_B23_the_content_type_is_command(answered: dict[str, Any]) -> None:
    """As in the call."""
    assert answered["content_type"] == "command"


def test_B24_the_command_is_the_one_sent(answered: dict[str, Any]) -> None:
    """Beside the response and nothing else: no param comes back."""
    assert answered["content"]["command"] == "search"
    assert set(answered["content"]) == {"command", "response"}


def test_B25_the_response_is_the_plugins(answered: dict[str, Any]) -> None:
    """Unchanged."""
    assert answered["content"]["response"] == {"q": "x"}


VALUES = ["text", "", [], [1, "a", None], None, 0, 2.5, True, {}, {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_B27_any_json_survives_as_a_response(dialect: str, value: Any) -> None:
    """Not only mappings; in every dialect."""

    @command
    def give() -> Any:
        """Give it."""
        return value

    call = Call(id="a1", plugin="give", command="give")
    reply = reply_in(dialect, [call], {("give", "give"): "give"})
    said = talk([reply, "ok"], [give], dialect)
    assert said.values == [value]
    (last,) = [item for item in said.model.prompts[1].messages if item.results]
    text = last.content.replace("<!-- RESULTS_START -->", "")
    told = json.loads(text.replace("<!-- RESULTS_END -->", ""))
    if dialect.startswith("envelope"):
        response = told["content"]["response"]
    else:
        response = told.get("results", [told])[0]["response"]
    assert response == value
    assert type(response) is type(value)


# --- assets --------------------------------------------------------------------

PATH = ["content", "response", "bulb"]
REFERENCES = [
    {"asset_id": "a1", "field_path": PATH},
    "asset://a1/content/response/bulb",
]


@pytest.mark.parametrize("written", REFERENCES, ids=["object", "url"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_B42_B43_the_command_gets_the_object(dialect: str, written: Any) -> None:
    """The runtime reads the asset before the call; it is the very same object."""
    lamps = Lamps()
    tools = {("Lamps", name): name for name in ("make", "look", "echo")}
    make = Call(id="a1", plugin="Lamps", command="make", arguments={"watts": 40})
    look = Call(id="a2", plugin="Lamps", command="look", arguments={"bulb": written})
    replies = [reply_in(dialect, [item], tools) for item in (make, look)]
    said = talk([*replies, "ok"], [lamps], dialect)
    assert said.values[1] == {"watts": 40}
    assert GIVEN == lamps.made
    assert GIVEN[0] is lamps.made[0]


NOTES = """
name: notes
info: {title: Notes, description: Keeps addresses.}
commands:
  - command_name: keep
    description: Keep where an object is.
    parameter:
      type:
        what:
          type: %s.Bulb
          asset_ref_acceptable: true
          resolve: false
          description: the object
"""
KEEP = "def keep(what):\n    return {'kept': what}\n"


@pytest.mark.parametrize("written", REFERENCES, ids=["object", "url"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_B43_a_command_may_ask_for_the_reference_itself(
    dialect: str, written: Any, tmp_path: Path
) -> None:
    """It gets the same object form, whichever form was written; nothing is read."""
    plug = folder(tmp_path, "notes", NOTES % __name__, KEEP)
    tools = {("Lamps", "make"): "make", ("notes", "keep"): "keep"}
    make = Call(id="a1", plugin="Lamps", command="make", arguments={"watts": 40})
    keep = Call(id="a2", plugin="notes", command="keep", arguments={"what": written})
    replies = [reply_in(dialect, [item], tools) for item in (make, keep)]
    said = talk([*replies, "ok"], [Lamps(), plug], dialect)
    path = ["content", "response", "bulb"]
    assert said.values[1] == {"kept": {"asset_id": "a1", "field_path": path}}


def test_B43_a_raw_reference_is_checked_like_any_other(tmp_path: Path) -> None:
    """It must name what there is, and a value of another type is refused."""
    plug = folder(tmp_path, "notes", NOTES % __name__, KEEP)
    unknown = call_text("notes", "keep", {"what": {"asset_id": "zz"}})
    assert talk([unknown, "ok"], [Lamps(), plug]).codes == ["asset_not_found"]
    wrong = call_text("notes", "keep", {"what": 5})
    assert talk([wrong, "ok"], [Lamps(), plug]).codes == ["invalid_param"]


def test_B42_the_wrong_type_behind_a_reference_is_told() -> None:
    """With what was expected and what is there."""
    text = call_text("Lamps", "look", {"bulb": "asset://a1/content/response/label"})
    said = talk([call_text("Lamps", "make", {}), text, "ok"], [Lamps()])
    assert said.errors == ["invalid_asset_type"]
    assert "Bulb" in said.told[1]
    assert "string" in said.told[1]


def test_B44_a_reference_where_none_is_taken(tmp_path: Path) -> None:
    """In both forms; nothing runs."""
    plug = folder(tmp_path, "p", MANIFEST, CODE)
    for written in ({"asset_id": "a1"}, "asset://a1"):
        text = call_text("web", "search", {"query": written})
        said = talk([call_text("Lamps", "make", {}), text, "ok"], [Lamps(), plug])
        assert said.codes == ["asset_ref_not_acceptable"]


def test_B47_a_resolved_value_is_never_read_for_references() -> None:
    """A text in an asset that looks like a reference stays that text."""
    text = call_text("Lamps", "echo", {"text": "asset://a1/content/response/label"})
    said = talk([call_text("Lamps", "make", {}), text, "ok"], [Lamps()])
    assert said.values[1] == {"text": "asset://a1/content"}
    assert GIVEN == ["asset://a1/content"]


@pytest.mark.parametrize("strict", [False, True])
def test_B51_B52_B53_what_json_cannot_hold_becomes_an_asset(strict: bool) -> None:
    """One bad leaf: the whole answer. The model is told the id and nothing else."""
    said = talk(
        [call_text("Lamps", "make", {}), "ok"],
        [Lamps()],
        options=Options(strict=strict),
    )
    told = json.loads(said.told[0])
    assert told == {
        "sender": {"role": "plugin", "name": "Lamps"},
        "receiver": {"role": "cerebrum"},
        "content_type": "asset_ref",
        "content": {"asset_id": "a1"},
    }
    root = said.session.assets.root("a1")
    assert root["content"]["command"] == "make"
    assert root["content"]["response"]["bulb"].watts == 60
    assert [asset.id for asset in said.answer.assets] == ["a1"]


def test_B54_a_forgotten_content_is_told_with_the_right_path() -> None:
    """`response/bulb` is refused, and the hint is the path that works."""
    text = call_text("Lamps", "look", {"bulb": "asset://a1/response/bulb"})
    said = talk([call_text("Lamps", "make", {}), text, "ok"], [Lamps()])
    assert said.errors == ["asset_path_not_found"]
    assert "content/response/bulb" in said.told[1].replace("asset://a1/", "")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B55_the_asset_list_is_in_each_round(dialect: str) -> None:
    """From the first asset on, in every prompt, and never in the kept history."""
    tools = {("Lamps", name): name for name in ("make", "look", "echo")}
    make = Call(id="a1", plugin="Lamps", command="make")
    look = Call(id="a2", plugin="Lamps", command="look",
                arguments={"bulb": REFERENCES[1]})  # fmt: skip
    replies = [reply_in(dialect, [item], tools) for item in (make, look)]
    said = talk([*replies, "ok"], [Lamps()], dialect)
    text = ""
    for number, prompt in enumerate(said.model.prompts):
        text = "".join(item.content for item in prompt.messages)
        assert text.count("Current AssetMeta list") == min(number, 1)
    assert '"content/response/bulb": "<class ' in text
    assert not any("AssetMeta" in item.content for item in said.session.history)


def test_B61_what_a_person_gives_is_an_asset(tmp_path: Path) -> None:
    """An object or a file; commands take it by its reference."""
    file = tmp_path / "notes.txt"
    file.write_text("tea", encoding="utf-8")
    bulb = Bulb(7)
    model = ScriptedModel(
        [
            json.dumps(
                [
                    message("Lamps", "look", {"bulb": "asset://a1/content"}),
                    message("Lamps", "echo", {"text": "asset://a2/content"}),
                ]
            ),
            "ok",
        ]
    )
    with Session(
        model=model, plugins=[Lamps], dialect="envelope_v2", settings=Settings()
    ) as session:
        assert [session.attach(bulb, "my lamp"), session.attach(file)] == ["a1", "a2"]
        answer = session.run_sync("Look at both.")
    assert [result.error for result in answer.calls] == [None, None]
    assert (2, True, True) == (len(GIVEN), bulb in GIVEN, "tea" in GIVEN)
    first = model.prompts[0].messages[-1].content
    assert "my lamp" in first
    assert "notes.txt" in first


def test_B59_a_large_answer_is_said_whole_in_the_strict_profile() -> None:
    """The document knows no size; leniently it becomes an asset, and is not cut."""

    @command
    def read() -> dict[str, str]:
        """Read a long text."""
        return {"text": "x" * 50_000}

    strict = talk(
        [call_text("read", "read", {}), "ok"], [read], options=Options(strict=True)
    )
    assert json.loads(strict.told[0])["content"]["response"] == {"text": "x" * 50_000}
    lenient = talk([call_text("read", "read", {}), "ok"], [read])
    assert json.loads(lenient.told[0])["content_type"] == "asset_ref"
    root = lenient.session.assets.root("a1")
    assert root["content"]["response"] == {"text": "x" * 50_000}


def test_B46_flags_are_not_inherited(tmp_path: Path) -> None:
    """All of `param` by reference does not make each field one, nor the other way."""
    whole = folder(tmp_path, "whole", _FLAGS.format("true", "false", "false"), _SHOW)
    part = folder(tmp_path, "part", _FLAGS.format("false", "true", "true"), _SHOW)
    give = call_text("give", "give", {})

    def outcome(plugin: Path, param: Any) -> Any:
        said = talk([give, call_text("flags", "show", param), "ok"], [_give, plugin])
        return said.codes or said.errors or said.values[1]

    all_of_it, one, many = (
        f"asset://a1/content/response/{name}" for name in ("all", "one", "many")
    )
    given = {"one": "x", "many": ["y", "z"]}
    refused = ["asset_ref_not_acceptable"]
    assert outcome(whole, all_of_it) == given
    assert outcome(whole, {"one": one, "many": ["y"]}) == refused
    assert outcome(part, all_of_it) == refused
    assert outcome(part, {"one": one, "many": many}) == given
    assert outcome(part, {"one": "q", "many": ["y", one]}) == {
        "one": "q",
        "many": ["y", "x"],
    }


@command(name="give")
def _give() -> dict[str, Any]:
    """Give what can be referred to."""
    return {"all": {"one": "x", "many": ["y", "z"]}, "one": "x", "many": ["y", "z"]}


_SHOW = "def show(one, many):\n    return {'one': one, 'many': many}\n"
_FLAGS = """
name: flags
info: {{title: Flags, description: d}}
commands:
  - command_name: show
    description: d
    parameter:
      asset_ref_acceptable: {0}
      type:
        one: {{type: string, description: d, asset_ref_acceptable: {1}}}
        many: {{type: "List[str]", description: d, asset_ref_acceptable: {2}}}
"""


def test_B62_an_object_in_a_text_to_the_user_is_put_in() -> None:
    """Between `<|` and `|>` only; a text as it is, and never read again."""
    text = "Here: <|asset://a1/content/response/label|> asset://a1/content"
    user = json.dumps({"receiver": {"role": "user"}, "content": text})
    said = talk([call_text("Lamps", "make", {}), user], [Lamps()])
    assert said.answer.text == "Here: asset://a1/content asset://a1/content"


def test_B60_lost_objects_are_told_when_a_session_goes_on(tmp_path: Path) -> None:
    """What could not be saved keeps its entry in the list; reading it is asset_lost."""
    options: dict[str, Any] = {
        "plugins": [Lamps],
        "dialect": "envelope_v2",
        "journal": tmp_path / "sessions.db",
        "options": Options(asset_folder=tmp_path / "assets"),
        "settings": Settings(),
    }
    first = ScriptedModel([call_text("Lamps", "make", {}), "ok"])
    with Session(model=first, **options) as session:
        session.run_sync("go")
        name = session.id
    again = ScriptedModel([call_text("Lamps", "look", {"bulb": REFERENCES[1]}), "ok"])
    with Session.open(name, model=again, **options) as session:
        answer = session.run_sync("go on")
    assert "content/response/bulb" in again.prompts[0].messages[-1].content
    assert answer.calls[0].error is not None
    assert answer.calls[0].error.code == "asset_lost"


def test_B56_what_is_left_out_is_said() -> None:
    """A long text by its beginning and length, a long list by its first items."""

    @command
    def dump(what: str) -> dict[str, Any]:
        """Give much."""
        rows = [f"row {number}" for number in range(2000)]
        return {"rows": rows} if what == "rows" else {"text": "tea " * 50_000}

    calls = [call_text("dump", "dump", {"what": what}) for what in ("text", "rows")]
    said = talk([*calls, "ok"], [dump])
    text, rows = said.session.assets.meta()
    assert text["content/response/text"].startswith("tea tea ")
    assert "(200000 characters)" in text["content/response/text"]
    assert rows["content/response/rows/0"] == "row 0"
    assert rows["content/response/rows/…"] == "shown 3 of 2000"
    listed = said.model.prompts[2].messages[-1].content
    for meta in (text, rows):
        assert len(json.dumps(meta)) <= 500
        assert json.dumps(meta, ensure_ascii=False) in listed


_WHOLE = """
name: whole
info: {title: Whole, description: d}
commands:
  - command_name: show
    description: d
    parameter:
      asset_ref_acceptable: true
      type:
        one: {type: string, description: d}
        many: {type: "List[str]", description: d}
"""


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B45_all_of_param_by_one_reference(tmp_path: Path, dialect: str) -> None:
    """The object form, in every dialect; what is behind it must fit as a whole."""
    plug = folder(tmp_path, "whole", _WHOLE, _SHOW)
    tools = {("give", "give"): "give", ("whole", "show"): "show"}
    for field_path, codes_told in (
        (["content", "response", "all"], []),
        (["content", "response", "many"], ["invalid_param"]),
        (["content", "response", "one"], ["invalid_param"]),
    ):
        calls = [
            Call(id="a1", plugin="give", command="give"),
            Call(
                id="a2",
                plugin="whole",
                command="show",
                arguments={"asset_id": "a1", "field_path": field_path},
            ),
        ]
        said = talk([reply_in(dialect, calls, tools), "ok"], [_give, plug], dialect)
        if codes_told:
            assert said.errors in (["invalid_asset_type"], codes_told), said.told
        else:
            assert said.values[1] == {"one": "x", "many": ["y", "z"]}


def test_A14_B19_D1_plugins_of_all_kinds_in_one_session(tmp_path: Path) -> None:
    """v1, v2, a function and a class; two of one name are refused, naming both."""
    v1 = _WHOLE.replace("name: whole", "name: first").replace(
        """    parameter:
      asset_ref_acceptable: true
      type:
        one: {type: string, description: d}
        many: {type: "List[str]", description: d}
""",
        """    parameters:
      - {name: one, type: string, description: d, required: true}
      - {name: many, type: "List[str]", description: d, required: false}
""",
    )
    first = folder(tmp_path, "first", v1, _SHOW.replace("many)", "many=())"))
    second = folder(tmp_path, "second", _WHOLE, _SHOW)
    calls = [
        message("first", "show", {"one": "x"}),
        message("whole", "show", {"one": "x", "many": []}),
        message("give", "give", {}),
        message("Lamps", "echo", {"text": "t"}),
    ]
    said = talk([json.dumps(calls), "ok"], [first, second, _give, Lamps])
    assert said.errors == []
    assert len(said.values) == 4
    again = folder(tmp_path, "third", _WHOLE, _SHOW)
    with pytest.raises(ManifestError) as told:
        talk(["ok"], [second, again])
    assert str(second) in str(told.value)
    assert str(again) in str(told.value)
    assert "config.name" in str(told.value)
