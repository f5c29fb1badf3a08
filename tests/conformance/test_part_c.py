"""Part C: tool intents. The rules that no other test names."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from conformance.kit import DIALECTS, block, codes, message, read, reply_in, talk
from neuraxis import command
from neuraxis.dialects import find_dialect
from neuraxis.messages import Call, CallError
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.registry import Registry

RAN: list[Any] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:  # pyright: ignore[reportUnusedFunction]
    RAN.clear()


@command(effects="none")
def double(number: int) -> dict[str, int]:
    """Twice the number."""
    RAN.append(number)
    return {"number": 2 * number}


@command(effects="none", asset_refs=["tool"])
def use(tool: str) -> dict[str, str]:
    """Its parameter has the dialect's own word as its name."""
    RAN.append(tool)
    return {"used": tool}


TWO = {"tool": "double", "number": 2}
LIST = json.dumps([TWO])
START, END = "<!-- RESPONSE_START -->", "<!-- RESPONSE_END -->"


def test_C3_a_block_of_one_array() -> None:
    """Also for one tool; the only form that the strict profile takes."""
    for strict in (False, True):
        reply = read("intents", f"{START}\n{LIST}\n{END}", strict=strict)
        assert [call.arguments for call in reply.calls] == [{"number": 2}]


@pytest.mark.parametrize(
    "text",
    [
        f"{START}{json.dumps(TWO)}{END}",
        f"{START}{LIST}",
        f"{LIST}{END}",
        f"Sure!\n{START}{LIST}{END}\nDone.",
        f"{START}{LIST}{END}{START}{json.dumps([TWO | {'number': 9}])}{END}",
        f"{START}\n```json\n{LIST}\n```\n{END}",
    ],
    ids=["object", "no end", "no start", "prose", "two blocks", "fences"],
)
def test_C3_what_models_write_is_taken_leniently_only(text: str) -> None:
    """One call is understood; strictly, none is run out of a bent frame."""
    reply = read("intents", text)
    assert [call.arguments for call in reply.calls] == [{"number": 2}]
    strict = read("intents", text, strict=True)
    assert strict.calls == ()


def test_C3_a_marker_in_a_string_does_not_end_the_block() -> None:
    """JSON is scanned, not the text."""
    text = block({"tool": "use", "$tool": f"a {END} b {START}"})
    for strict in (False, True):
        (call,) = read("intents", text, strict=strict).calls
        assert call.arguments == {"tool": f"a {END} b {START}"}


def test_C4_an_intent_is_flat() -> None:
    """The tool's name, and each parameter as a key beside it."""
    assert talk([block(TWO), "ok"], [double], "intents").values == [{"number": 4}]


@pytest.mark.parametrize(
    ("intent", "code", "said"),
    [
        ({"tool": "triple", "number": 1}, "unknown_command", "double"),
        ({"tool": "double"}, "invalid_param", "number"),
        ({"tool": "double", "number": 1, "n": 2}, "invalid_param", "number"),
        ({"number": 1}, "malformed_reply", "tool"),
        ({"tool": 7}, "malformed_reply", "tool"),
    ],
)
def test_C4_mistakes_are_told(intent: Any, code: str, said: str) -> None:
    """An unknown tool, a missing parameter, an unknown one, no tool at all."""
    found = talk([block(intent), "ok"], [double], "intents")
    assert found.codes == [code]
    assert said in found.told[0]
    assert RAN == []


def test_C4_a_parameter_called_tool_has_another_key() -> None:
    """`$tool`, as the prompt says; written and read again it is the same."""
    found = talk([block({"tool": "use", "$tool": "saw"}), "ok"], [use], "intents")
    assert found.values == [{"used": "saw"}]
    assert "`$tool`" in found.model.prompts[0].messages[0].content


PLACEHOLDER = f"""{START}
[
  {{
    "tool": <TOOL_NAME>,
    "<PARAMETER1>": <FIRST PARAMETER OF TOOL>
  }}
]
{END}"""


def test_C5_placeholders_are_no_call() -> None:
    """A model that copies the document's form block is asked again."""
    for strict in (False, True):
        reply = read("intents", PLACEHOLDER, strict=strict)
        assert reply.calls == ()
        assert codes(reply) == ["malformed_reply"]


def test_C5_our_own_prompt_shows_real_json() -> None:
    """Every block between markers in it is JSON."""
    specs = [load_plugin(f"neuraxis:{name}").spec for name in FOUR]
    names = Registry([load_plugin(f"neuraxis:{name}") for name in FOUR]).tool_names
    for strict in (False, True):
        text = find_dialect("intents", strict=strict).prompt(specs, names)
        blocks = re.findall(rf"{START}\n(.*?)\n{END}", text, re.DOTALL)
        assert len(blocks) > 4
        for found in blocks:
            assert isinstance(json.loads(found), list)


FOUR = ("web_search", "files", "fetch_url", "python_file")
DOCUMENT = {
    "GOOGLE": ["query"],
    "FILEWRITER": ["file_path", "contents"],
    "FETCH_URL": ["url"],
    "EXECUTE_PYTHON_FILE": ["file_path"],
}


@pytest.mark.parametrize("tool", DOCUMENT)
def test_C7_the_documents_parameters_are_required_strings(tool: str) -> None:
    """The document gives them no type and calls none of them optional."""
    registry = Registry([load_plugin(f"neuraxis:{name}") for name in FOUR])
    found = registry.find(None, tool)
    assert not isinstance(found, CallError)
    assert list(found.spec.required) == DOCUMENT[tool]
    for name in DOCUMENT[tool]:
        node = found.spec.parameters["properties"][name]
        assert node["type"] == "string"


OUTPUT = {"success": True, "urls": ["it's", "b"], "none": None, "n": 1.5}


def test_C22_an_example_output_is_json_for_our_prompt_and_python_strictly() -> None:
    """The document's form is read by `literal_eval` and by nothing that runs code."""

    @command(example_output=OUTPUT)
    def tell() -> dict[str, Any]:
        """Tell."""
        return {}

    spec = load_plugin(tell).spec
    names = {"tell": ("tell", "tell")}
    ours = find_dialect("intents").prompt([spec], names)
    line = re.search(r"It returns, for example: (.*)", ours)
    assert line is not None
    assert json.loads(line[1]) == OUTPUT
    strict = find_dialect("intents", strict=True).prompt([spec], names)
    literal = re.search(r"### Example Tool Output\n```\n(.*?)\n```", strict, re.DOTALL)
    assert literal is not None
    assert ast.literal_eval(literal[1]) == OUTPUT
    assert "True" in literal[1]


def test_C26_intents_and_messages_are_one_thing(tmp_path: Path) -> None:
    """The same plugins, the same chain, the same answers; names are an alias table."""
    chain: list[dict[str, Any]] = [
        {"number": 2},
        {"number": "{{ previous_result['number'] }}"},
    ]
    intents = block(*({"tool": "double", **item} for item in chain))
    messages = json.dumps([message("double", "double", item) for item in chain])
    one = talk([intents, "ok"], [double], "intents")
    two = talk([messages, "ok"], [double], "envelope_v2")
    assert one.values == two.values == [{"number": 4}, {"number": 8}]
    assert [result.plugin for result in one.answer.calls] == ["double", "double"]
    full = talk([block({"tool": "double.double", "number": 1}), "ok"], [double],
                "intents")  # fmt: skip
    assert full.values == [{"number": 2}]


def test_C26_an_intent_may_pass_an_asset() -> None:
    """Where the command allows it, as in the messages."""
    first = block({"tool": "use", "$tool": "saw"})
    second = block({"tool": "use", "$tool": "asset://a1/content/response/used"})
    assert talk([first, second, "ok"], [use], "intents").values == [{"used": "saw"}] * 2
    wrong = block({"tool": "double", "number": "asset://a1/content/response/used"})
    assert talk([first, wrong, "ok"], [use, double], "intents").codes == [
        "asset_ref_not_acceptable"
    ]


class Lamp:
    """What JSON cannot hold."""

    watts = 60


@command(effects="none")
def make() -> dict[str, Any]:
    """Make a lamp."""
    return {"lamp": Lamp(), "note": "asset://a1/content"}


@command(effects="none")
def look(lamp: Lamp, note: str = "") -> dict[str, Any]:
    """Look at a lamp."""
    RAN.append(lamp)
    return {"watts": lamp.watts, "note": note}


@pytest.mark.parametrize(
    "written",
    [
        "{{ previous_result['lamp'] }}",
        "{{ results[0].lamp }}",
        "asset://a1/content/response/lamp",
        {"asset_id": "a1", "field_path": ["content", "response", "lamp"]},
    ],
    ids=["previous", "results", "url", "object"],
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_C20_C26_an_object_goes_through_one_reply(dialect: str, written: Any) -> None:
    """By an expression or an asset's reference, in each dialect: the same object."""
    tools = {("make", "make"): "make", ("look", "look"): "look"}
    calls = [
        Call(id="a1", plugin="make", command="make"),
        Call(id="a2", plugin="look", command="look", arguments={"lamp": written}),
    ]
    said = talk([reply_in(dialect, calls, tools), "ok"], [make, look], dialect)
    assert (said.codes, said.errors) == ([], [])
    assert said.values[1] == {"watts": 60, "note": ""}
    assert RAN == [said.values[0]["lamp"]]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_C24_a_result_in_a_text_is_not_expanded(dialect: str) -> None:
    """What the first step returned looks like a reference and stays text."""
    tools = {("make", "make"): "make", ("look", "look"): "look"}
    arguments = {
        "lamp": "{{ previous_result['lamp'] }}",
        "note": "({{ previous_result['note'] }}) {{ other }}",
    }
    calls = [
        Call(id="a1", plugin="make", command="make"),
        Call(id="a2", plugin="look", command="look", arguments=arguments),
    ]
    said = talk([reply_in(dialect, calls, tools), "ok"], [make, look], dialect)
    assert said.values[1]["note"] == "(asset://a1/content) {{ other }}"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_model_reads_that_braces_are_text(dialect: str) -> None:
    """What looks like a reference and is none stays, with a warning beside it."""
    tools = {("make", "make"): "make", ("look", "look"): "look"}
    lamp, note = "{{ previous_result['lamp'] }}", "{{ result['note'] }}"
    arguments = {"lamp": lamp, "note": note}
    calls = [
        Call(id="a1", plugin="make", command="make"),
        Call(id="a2", plugin="look", command="look", arguments=arguments),
    ]
    said = talk([reply_in(dialect, calls, tools), "ok"], [make, look], dialect)
    assert said.values[1]["note"] == note
    read = "".join(item.content for item in said.model.prompts[1].messages[2:])
    assert "was passed on as text" in read


@pytest.mark.parametrize("dialect", DIALECTS)
def test_C25_a_chain_costs_one_message(dialect: str) -> None:
    """All results, in order, in what the model reads next; two model calls in all."""
    tools = {("double", "double"): "double"}
    calls = [
        Call(id=f"a{n}", plugin="double", command="double", arguments={"number": n})
        for n in (1, 20, 300)
    ]
    said = talk([reply_in(dialect, calls, tools), "ok"], [double], dialect)
    assert len(said.model.prompts) == 2
    new = said.model.prompts[1].messages[len(said.model.prompts[0].messages) + 1 :]
    assert len(new) == (3 if dialect == "native" else 1)
    text = re.sub(r"[\s\\]", "", "".join(item.content for item in new))
    places = [text.index(f'{{"number":{value}}}') for value in (2, 40, 600)]
    assert places == sorted(places)
