"""Part K: where the two protocols disagree. Rules that no other test names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.kit import (
    DIALECTS,
    ENVELOPES,
    Talk,
    call_text,
    codes,
    folder,
    read,
    reply_in,
    talk,
)
from neuraxis import Options
from neuraxis.dialects import find_dialect
from neuraxis.events import PlanChecked
from neuraxis.messages import Call
from neuraxis.plugins.manifest.load import parse_manifest

V1 = """
name: web # another-name
info:
  title: Web
  description: Looks things up. # pay more attention on this
commands: # the list
  - command_name: search # the first
    description: Find pages. # pay more attention
    parameters:
      - {name: query, type: string, description: the words, required: true} # words
    response:
      - {name: urls, type: 'List[str]', description: found, optional: false}
"""
V2 = """
name: web # another-name
info:
  title: Web
  description: Looks things up. # pay more attention on this
commands:
  - command_name: search # the first
    description: Find pages.
    parameter:
      type:
        query: {type: string, description: the words} # words
    response: {type: {urls: {type: 'List[str]', description: found}}}
"""
CODE = "def search(query):\n    return {'urls': [query]}\n"
BOTH = pytest.mark.parametrize("manifest", [V1, V2], ids=["v1", "v2"])


def test_K4_content_type_is_of_v2_only() -> None:
    """v1 asks for none; strict v2 does."""
    text = call_text("web", "search", {"query": "x"}, v1=True)
    assert len(read("envelope_v1", text, strict=True).calls) == 1
    assert codes(read("envelope_v2", text, strict=True)) == ["malformed_reply"]
    assert '"content_type"' not in find_dialect("envelope_v1").prompt([], {})
    assert '"content_type": "command"' in find_dialect("envelope_v2").prompt([], {})


@BOTH
def test_K7_a_summary_stands_in_v1_only(manifest: str) -> None:
    """Summary and detail, or YAML alone: by the dialect, not by the file."""
    spec, _ = parse_manifest(manifest)
    v1 = find_dialect("envelope_v1").prompt([spec], {})
    v2 = find_dialect("envelope_v2").prompt([spec], {})
    assert ("Summary:" in v1, "Detail:" in v1) == (True, True)
    assert ("Summary:" in v2, "Detail:" in v2) == (False, False)
    assert "command_name: search" in v1
    assert "command_name: search" in v2


@BOTH
@pytest.mark.parametrize(
    "config",
    ["", "config: {}", "config: null", "config: {id: a}", "config: {name: null}"],
)
def test_K8_config_id_and_name_are_optional(manifest: str, config: str) -> None:
    """In both protocols."""
    spec, problems = parse_manifest(manifest + config)
    assert spec.name == "web"
    assert problems == ()


@BOTH
def test_K10_a_comment_is_no_name_in_either(manifest: str) -> None:
    """`name: # x` is empty in v2, too."""
    text = manifest.replace("name: web # another-name", "name: # another-name")
    assert parse_manifest(text)[0].name == "Web"


@pytest.mark.parametrize("dialect", ENVELOPES)
@BOTH
def test_K11_an_unlisted_plugin_is_refused_in_both(
    tmp_path: Path, manifest: str, dialect: str
) -> None:
    """Loaded but not listed: as if it were not there, and not in the prompt."""
    hidden = folder(tmp_path, "p", f"as_plugin: false\n{manifest}", CODE)
    call = call_text("web", "search", {"query": "x"}, v1=dialect == "envelope_v1")
    said = talk([call, "ok"], [hidden], dialect)
    assert said.codes == ["unknown_plugin"]
    assert "does not exist" in said.told[0]
    assert "Find pages" not in said.model.prompts[0].messages[0].content


@pytest.mark.parametrize("dialect", ENVELOPES)
def test_K13_how_sure_the_model_is_stands_in_the_prompt_only(
    tmp_path: Path, dialect: str
) -> None:
    """A call runs whatever the model thinks of its own answer."""
    text = find_dialect(dialect).prompt([], {})
    assert re.search(r"only when (you are not sure|it does better)", text)
    plug = folder(tmp_path, "p", V1, CODE)
    call = call_text("web", "search", {"query": "x"}, v1=dialect == "envelope_v1",
                     thoughts="I am sure", confidence=1.0)  # fmt: skip
    assert talk([call, "ok"], [plug], dialect).values == [{"urls": ["x"]}]


@pytest.mark.parametrize("dialect", ENVELOPES)
@BOTH
def test_K14_comments_on_descriptions_are_text_for_authors(
    manifest: str, dialect: str
) -> None:
    """They are not shown; the descriptions themselves are."""
    spec, _ = parse_manifest(manifest)
    text = find_dialect(dialect).prompt([spec], {})
    assert "attention" not in text
    detail = re.search(r"```yaml\n(.*?)\n```", text, re.DOTALL)
    assert detail is not None
    shown: Any = yaml.safe_load(detail[1])
    assert shown["info"]["description"] == "Looks things up."
    assert shown["commands"][0]["description"] == "Find pages."


PLAIN = """
name: p
info: {title: P, description: d}
commands:
  - {command_name: one, description: d, parameter: {type: int}}
  - {command_name: many, description: d, parameter: {type: "List[str]"}}
  - command_name: maybe
    description: d
    parameter: {type: string, required: false}
  - command_name: box
    description: d
    parameter: {required: false, type: {a: {type: int, description: d}}}
"""
PLAIN_CODE = """
def one(n): return n
def many(words): return words
def maybe(text="nothing"): return text
def box(a=0): return a
"""
PLAIN_TOOLS = {("p", name): name for name in ("one", "many", "maybe", "box")}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_K3_B37_a_plain_parameter_in_every_dialect(
    tmp_path: Path, dialect: str
) -> None:
    """The bare value; under a key of its own leniently only, and it is noted."""
    plug = folder(tmp_path, "p", PLAIN, PLAIN_CODE)

    def say(command: str, arguments: Any, *, strict: bool = False) -> Talk:
        call = Call(id="a1", plugin="p", command=command, arguments=arguments)
        reply = reply_in(dialect, [call], PLAIN_TOOLS)
        return talk([reply, "ok"], [plug], dialect, options=Options(strict=strict))

    if dialect == "envelope_v1":  # which knows objects only
        assert say("one", 3).values == [3]
    if dialect in ("intents", "envelope_v2"):
        for strict in (False, True):
            assert say("one", 3, strict=strict).values == [3]
            assert say("many", ["a"], strict=strict).values == [["a"]]
    assert say("one", {"value": 3}).values == [3]
    assert say("many", {"words": ["a"]}).values == [["a"]] or dialect == "native"
    said = say("one", {"number": "three"})
    assert said.codes == ["invalid_param"]
    for wrong in ({"a": 1, "b": 2}, {"x": {"y": 1}}):
        assert say("one", wrong).codes == ["invalid_param"]
    if dialect != "native":
        assert say("one", {"value": 3}, strict=True).codes != []
        plans = [
            event
            for event in say("one", {"n": 3}).events
            if isinstance(event, PlanChecked)
        ]
        assert any("taken as the whole parameter" in note for note in plans[0].notes)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_B38_a_param_that_may_be_missing(tmp_path: Path, dialect: str) -> None:
    """The command is called with nothing, whether its type is plain or an object."""
    plug = folder(tmp_path, "p", PLAIN, PLAIN_CODE)
    for name, value in (("maybe", "nothing"), ("box", 0)):
        for strict in (False, True):
            call = Call(id="a1", plugin="p", command=name)
            reply = reply_in(dialect, [call], PLAIN_TOOLS)
            said = talk([reply, "ok"], [plug], dialect, options=Options(strict=strict))
            assert said.values == [value], said.told
    if dialect == "envelope_v2":
        assert talk([call_text("p", "box"), "ok"], [plug]).values == [0]
        assert talk([call_text("p", "box", {"a": 1}), "ok"], [plug]).values == [1]
        assert talk([call_text("p", "one"), "ok"], [plug]).codes == ["invalid_param"]
