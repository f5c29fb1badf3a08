"""Manifests of both protocols: one test or more for each rule."""

from __future__ import annotations

import itertools
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import ManifestError, ManifestProblem
from neuraxis.plugins.loader import load_plugin
from neuraxis.plugins.manifest.load import load_manifest, parse_manifest
from neuraxis.schema.schema import Schema
from neuraxis.specs import Effects, PluginSpec

V2 = """\
name: Weather
info:
  title: weather
  description: Says what the weather is.
commands:
  - command_name: now
    description: The weather at a place.
    parameter:
      type:
        place:
          type: string
          description: a town
"""
V1 = """\
info:
  title: Search
  description: Searches.
commands:
  - command_name: search
    description: searches
    parameters:
      - name: query
        type: string
        description: what to look for
        required: true
"""


def read(text: str) -> PluginSpec:
    return parse_manifest(text)[0]


def warnings(text: str) -> list[str]:
    return [problem.message for problem in parse_manifest(text)[1]]


def errors(text: str, **options: Any) -> list[ManifestProblem]:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(text, **options)
    return [item for item in caught.value.problems if item.severity == "error"]


def with_command(body: str, **root: str) -> str:
    """A v2 file whose only command has this body (8 more spaces are put before)."""
    extra = "".join(f"{key}: {value}\n" for key, value in root.items())
    return (
        extra
        + "name: p\ninfo: {description: d}\ncommands:\n  - command_name: c\n"
        + "    description: d\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
    )


def parameters_of(body: str) -> dict[str, Any]:
    return dict(read(with_command(body)).commands[0].parameters)


# --- the documents' own forms --------------------------------------------------


def test_A4_the_keys_of_v1() -> None:
    """Every key of the v1 document's YAML lands in its place."""
    spec = read(
        """
id: "7"
name: n
info:
  title: t
  description: d
  description_for_human: h
  description_for_model: m
  prompt: |
    Line one.
    Line two.
commands:
  - command_name: c
    description: cd
    parameters:
      - {name: a, type: string, enum: [u, v], required: true, example: u}
    response:
      - {name: r, type: string, description: y, optional: false, example: z}
  - command_name: none
    description: nothing
    parameters:
      # only a comment
    response:
config:
  id: "9"
  name: given
  key: 5
"""
    )
    assert (spec.name, spec.id, spec.title) == ("given", "9", "t")
    assert (spec.description_for_human, spec.description_for_model) == ("h", "m")
    assert spec.generation == "v1"
    assert dict(spec.config) == {"key": 5}
    first, second = spec.commands
    assert first.parameter_names == ("a",)
    assert first.required == ("a",)
    assert first.response is not None
    assert first.response["required"] == ["r"]
    assert second.parameter_names == ()
    assert second.response is None


def test_A9_prompt_is_kept_whole() -> None:
    """A block scalar keeps its lines."""
    text = V2.replace(
        "  title: weather", "  title: weather\n  prompt: |\n    One.\n    Two."
    )
    assert read(text).prompt == "One.\nTwo.\n"


def test_A6_lint_of_missing_descriptions() -> None:
    """Plugin, command and parameter without a description, and a missing type, warn."""
    said = warnings(
        "name: n\ninfo: {title: t}\ncommands:\n  - command_name: c\n"
        "    parameter:\n      type:\n        a: {}\n"
    )
    assert any("the plugin has no description" in text for text in said)
    assert any("the command c has no description" in text for text in said)
    assert any("parameter a has no description" in text for text in said)
    assert any("no type is given" in text for text in said)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "prompt_file_name: p.txt\n" + V2,
            "'prompt_file_name' is not used here",
        ),
        (
            "description: d\n" + V2,
            "is not used here; write it below info",
        ),
        (
            V2.replace("      type:\n        place:", "      place:", 1),
            "no type is given, so any value is taken; write the fields (place) below",
        ),
    ],
)
def test_a_key_on_the_wrong_level_is_told_its_place(text: str, told: str) -> None:
    """A key that exists elsewhere is no unknown key."""
    assert any(told in message for message in warnings(text))


@pytest.mark.parametrize(
    ("commands", "what"),
    [("", "missing"), ("commands:", "empty"), ("commands: []", "empty")],
)
def test_A6_no_commands_is_an_error(commands: str, what: str) -> None:
    """A plugin that a model shall call has commands."""
    found = errors(f"name: n\ninfo: {{description: d}}\n{commands}\n")
    assert [problem.message for problem in found] == [
        f"commands is {what}; write commands: [{{command_name: …, description: …}}]"
    ]


@pytest.mark.parametrize(("info", "what"), [("", "missing"), ("info:\n", "empty")])
def test_what_lacks_is_told_as_it_is_written(info: str, what: str) -> None:
    """A plugin without info, and a command without a name."""
    found = errors(f"name: n\n{info}commands: [{{command_name: c}}]\n")
    assert [problem.message for problem in found] == [
        f"info is {what}; write info: {{title: …, description: …}}"
    ]
    with pytest.raises(ManifestError) as caught:
        parse_manifest("name: n\ninfo: {title: t}\ncommands: [{effects: read}]\n")
    told = [problem.message for problem in caught.value.problems]
    assert "the command has no description" in told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a", "expected a mapping, got list"),
        ("info: [a]\nname: n", "info: expected a mapping, got list"),
        ("info: {title: {a: b}}\nname: n", "title: expected text, got mapping"),
        ("commands: {a: b}\nname: n", "commands: expected a list, got mapping"),
        ("commands: [{command_name: c, parameter: {type: {a: [x]}}}]\nname: n", ""),
        (
            "commands: [{command_name: c, parameters: text}]\nname: n",
            "expected a list of fields, got text",
        ),
    ],
)
def test_a_wrong_type_is_named_as_in_yaml(text: str, said: str) -> None:
    """A list and a mapping, not JSON's array and object."""
    told = "\n".join(problem.message for problem in errors(text))
    assert said in told
    assert "array" not in told
    assert "object" not in told


# --- names ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "root", "title"), list(itertools.product([True, False], repeat=3))
)
def test_A11_name_priority(config: bool, root: bool, title: bool) -> None:
    """config.name, then name, then info.title, in all eight combinations."""
    text = "info:\n  description: d\n"
    text += "  title: T\n" if title else ""
    text += "name: R\n" if root else ""
    text += "config:\n  name: C\n" if config else ""
    text += "commands:\n  - {command_name: c, description: d}\n"
    if not (config or root or title):
        assert [problem.message for problem in errors(text)] == [
            "no name: expected config.name, name or info.title"
        ]
    else:
        assert read(text).name == ("C" if config else "R" if root else "T")


@pytest.mark.parametrize("blank", ["null", "~", "''", "'  '", ""])
def test_A12_blank_names_fall_through(blank: str) -> None:
    """Null, empty and blank are as good as absent."""
    text = V2.replace("name: Weather", f"name: {blank}") + f"config:\n  name: {blank}\n"
    assert read(text).name == "weather"


def test_A13_a_comment_is_no_name() -> None:
    """`name: # MyPlugin` is null, whatever the comment says."""
    assert read(V2.replace("name: Weather", "name: # MyPlugin")).name == "weather"


def test_A15_name_as_typed() -> None:
    """`name: 007` is the text 007, with a warning and its line."""
    spec, problems = parse_manifest(V2.replace("name: Weather", "name: 007"))
    assert spec.name == "007"
    assert [(item.line, item.severity) for item in problems] == [(1, "warning")]
    assert "'007'" in problems[0].message


def test_A15_enum_members_as_typed() -> None:
    """YAML 1.1 makes truth values, numbers and dates of these; we keep the words."""
    body = """
    parameter:
      type:
        a: {type: string, description: d, enum: [yes, no, on, 3.10, 2024-01-01, 12:30]}
    """
    expected = ["yes", "no", "on", "3.10", "2024-01-01", "12:30"]
    assert parameters_of(body)["properties"]["a"]["enum"] == expected
    assert any("are read as text" in text for text in warnings(with_command(body)))


def test_A15_enum_of_other_types_is_not_text() -> None:
    """An enum of numbers keeps numbers; null stays where the type allows it."""
    body = """
    parameter:
      type:
        a: {type: int, description: d, enum: [1, 2]}
        b: {type: "Optional[str]", description: d, enum: [x, null]}
        c: {type: "List[str]", description: d, item_enum: [on, off]}
    """
    properties = parameters_of(body)["properties"]
    assert properties["a"]["enum"] == [1, 2]
    assert properties["b"]["enum"] == ["x", None]
    assert properties["c"]["items"]["enum"] == ["on", "off"]


def test_A15_nulls_in_enums() -> None:
    """`enum: null` is no enum; `null` among the words of a text enum is a word."""
    body = """
    parameter:
      type:
        a: {type: string, description: d, enum: null}
        b: {type: string, description: d, enum: [yes, null]}
        c: {type: "List[str]", description: d, items: {enum: [no, null]}}
    """
    properties = parameters_of(body)["properties"]
    assert "enum" not in properties["a"]
    assert properties["b"]["enum"] == ["yes", "null"]
    assert properties["c"]["items"]["enum"] == ["no", "null"]


def test_A15_an_empty_member_of_a_text_enum_is_the_empty_text() -> None:
    """As typed: an enum with a null would be written as one with the word null."""
    body = """
    parameter:
      type:
        a: {type: string, description: d, enum: ["", b]}
        b:
          type: string
          description: d
          enum:
            -
            - b
    """
    properties = parameters_of(body)["properties"]
    assert properties["a"] == properties["b"] != {}
    assert properties["b"]["enum"] == ["", "b"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("time_limit: " + "9" * 400, "time_limit: expected a finite number of seconds"),
        ("time_limit: 1.0e+999", "time_limit: expected a finite number of seconds"),
        ("time_limit: 0x" + "f" * 4000, "expected a value of the tag"),
        ("example_output: 0x" + "f" * 4000, "expected a value of the tag"),
    ],
)
def test_a_number_that_is_too_large_is_a_mistake(line: str, words: str) -> None:
    """It ended the load with an exception of Python."""
    text = (
        "name: p\ninfo: {description: d}\nas_plugin: true\ncommands:\n"
        f"  - command_name: a\n    description: d\n    {line}\n"
    )
    assert any(words in item.message for item in errors(text))


def test_A15_command_and_parameter_names_as_typed() -> None:
    """`on` is a command, `no` and `1` are parameters."""
    text = """
name: p
info: {description: d}
commands:
  - command_name: on
    description: d
    parameter:
      type:
        no: {type: string, description: d}
        1: {type: string, description: d}
"""
    command = read(text).commands[0]
    assert (command.name, command.parameter_names) == ("on", ("no", "1"))
    assert len(warnings(text)) == 3


def test_A15_text_values_of_text_parameters() -> None:
    """Default and example of a text parameter are text, dates included."""
    body = """
    parameter:
      type:
        day: {type: date, description: d, default: 2024-01-01, required: false}
        code: {type: str, description: d, example: 0123}
        clock: {type: string, description: d, example: 12:30}
    """
    properties = parameters_of(body)["properties"]
    assert properties["day"]["default"] == "2024-01-01"
    assert properties["code"]["examples"] == ["0123"]
    assert properties["clock"]["examples"] == ["12:30"]


def test_A14_B19_command_names_are_unique() -> None:
    """A command that appears twice is an error at the second."""
    text = V2 + "  - {command_name: now, description: d}\n"
    found = errors(text)
    assert [(item.line, item.message) for item in found] == [
        (13, "the command 'now' is declared twice")
    ]


# --- v1 parameters and responses -----------------------------------------------


def test_A23_K9_required_defaults_to_true() -> None:
    """v1 states no default; true is taken, and the lint says so."""
    text = V1.replace("        required: true\n", "")
    assert read(text).commands[0].required == ("query",)
    assert any("states no default" in item for item in warnings(text))


def test_A24_B31_enum_is_enforced() -> None:
    """A value outside the enum is a problem that lists the members."""
    text = V1.replace(
        "        required: true", "        enum: [a, b]\n        required: false"
    )
    command = read(text).commands[0]
    problems = Schema(command.parameters).problems({"query": "c"})
    assert [problem.path for problem in problems] == [("query",)]
    assert '"a"' in problems[0].expected


@pytest.mark.parametrize(
    ("written", "schema"),
    [
        ("string", "string"),
        ("str", "string"),
        ("int", "integer"),
        ("float", "number"),
        ("bool", "boolean"),
        ("Dict[str, Any]", "object"),
        ("List[Any]", "array"),
    ],
)
def test_A25_types_of_v1(written: str, schema: str) -> None:
    """v1 files use the same type names."""
    text = V1.replace("type: string", f'type: "{written}"')
    assert read(text).commands[0].parameters["properties"]["query"]["type"] == schema


def test_A26_example_is_kept_and_checked() -> None:
    """An example that is not of its type is a warning at its line."""
    text = V1.replace("type: string", "type: int") + "        example: many\n"
    spec, problems = parse_manifest(text)
    assert spec.commands[0].parameters["properties"]["query"]["examples"] == ["many"]
    assert [item.line for item in problems if "example" in item.message] == [12]


def test_A27_optional_response_fields() -> None:
    """`optional: true` may be absent; an absent `optional` means always there."""
    text = V1 + (
        "    response:\n      - {name: a, type: string, optional: true}\n"
        "      - {name: b, type: string}\n"
    )
    response = read(text).commands[0].response
    assert response is not None
    assert response["required"] == ["b"]


def test_K1_v1_list_is_v2_mapping() -> None:
    """The same parameters in both notations give the same schema."""
    v2 = V1.replace("    parameters:\n      - name: query\n", "").replace(
        "        type: string",
        "    parameter:\n      type:\n       query:\n        type: string",
    )
    assert read(v2).generation == "v2"
    assert read(v2).commands[0].parameters == read(V1).commands[0].parameters


def test_K1_D1_both_in_one_command_is_an_error() -> None:
    """`parameters` and `parameter` in one command contradict each other."""
    found = errors(V1 + "    parameter: {type: string}\n")
    assert [item.line for item in found] == [12]
    assert "got both" in found[0].message


def test_K1_the_wrong_shape_is_told() -> None:
    """A mapping under `parameters`, a list under `parameter`."""
    assert (
        "`parameter:`"
        in errors(with_command("parameters: {a: {type: string}}"))[0].message
    )
    assert "`parameters:`" in errors(with_command("parameter: [{name: a}]"))[0].message


def test_K2_responses() -> None:
    """A list under `response` is v1's fields; under `response.type`, objects of v2."""
    v1 = read(V1 + "    response: [{name: a, type: string}]\n").commands[0].response
    v2 = (
        read(V1 + "    response: {type: [{name: a, type: string}]}\n")
        .commands[0]
        .response
    )
    assert v1 is not None
    assert v2 is not None
    assert (v1["type"], v2["type"]) == ("object", "array")
    assert v2["items"]["properties"] == v1["properties"]


# --- prompt files --------------------------------------------------------------


def manifest_file(folder: Path, text: str) -> Path:
    file = folder / "config.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def with_info(text: str, **info: str) -> str:
    lines = "".join(f"  {key}: {value}\n" for key, value in info.items())
    return text.replace("info:\n", "info:\n" + lines)


def test_A10_K5_v1_never_reads_prompt_file_path(tmp_path: Path) -> None:
    """In v1 the path is neither read nor checked, so anything may stand there."""
    file = tmp_path / "prompt.md"
    file.write_text("secret", encoding="utf-8")
    for path in (str(file), "/nowhere/at/all", "../../etc/passwd"):
        text = with_info(V1, prompt_file_path=path)
        spec, problems = load_manifest(manifest_file(tmp_path, text))
        assert (spec.prompt, problems) == (None, ())


def test_K6_v1_with_prompt_file_name(tmp_path: Path) -> None:
    """v1 does not know it: it is read as in v2, with a warning."""
    (tmp_path / "p.md").write_text("do so", encoding="utf-8")
    text = with_info(V1, prompt_file_name="p.md")
    spec, problems = load_manifest(manifest_file(tmp_path, text))
    assert spec.prompt == "do so"
    assert any("is of protocol v2" in item.message for item in problems)


def test_B16_precedence(tmp_path: Path) -> None:
    """prompt, then prompt_file_name, then prompt_file_path."""
    (tmp_path / "name.md").write_text("by name", encoding="utf-8")
    (tmp_path / "path.md").write_text("by path", encoding="utf-8")
    info = {
        "prompt": "written",
        "prompt_file_name": "name.md",
        "prompt_file_path": str(tmp_path / "path.md"),
    }
    found: list[str | None] = []
    while info:
        file = manifest_file(tmp_path, with_info(V2, **info))
        found.append(load_manifest(file)[0].prompt)
        del info[next(iter(info))]
    assert found == ["written", "by name", "by path"]


def test_B16_prompt_file_name_stays_in_the_folder(tmp_path: Path) -> None:
    """Neither `..` nor an absolute path nor a link leads out."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    secret = tmp_path / "secret.txt"
    secret.write_text("key", encoding="utf-8")
    (folder / "link.md").symlink_to(secret)
    for name in ("../secret.txt", str(secret), "link.md"):
        file = manifest_file(folder, with_info(V2, prompt_file_name=name))
        with pytest.raises(ManifestError, match="inside the plugin's folder") as caught:
            load_manifest(file)
        assert "key" not in str(caught.value)


def test_B16_prompt_file_path_only_where_allowed(tmp_path: Path) -> None:
    """A full path is read only inside folders that the host allows."""
    folder, other = tmp_path / "plugin", tmp_path / "prompts"
    folder.mkdir()
    other.mkdir()
    (other / "p.md").write_text("do so", encoding="utf-8")
    file = manifest_file(folder, with_info(V2, prompt_file_path=str(other / "p.md")))
    with pytest.raises(ManifestError, match="that the host allows"):
        load_manifest(file)
    assert load_manifest(file, allowed_dirs=[other])[0].prompt == "do so"


def test_B16_missing_and_odd_prompt_files(tmp_path: Path) -> None:
    """A missing file, one that is no text and one that is too large are errors."""
    (tmp_path / "bytes.md").write_bytes(b"\xff\xfe\x00\xd8")
    (tmp_path / "large.md").write_text("x" * 300_000, encoding="utf-8")
    for name, words in (
        ("none.md", "there is no such file"),
        ("bytes.md", "not UTF-8 text"),
        ("large.md", "at most"),
    ):
        file = manifest_file(tmp_path, with_info(V2, prompt_file_name=name))
        with pytest.raises(ManifestError, match=words):
            load_manifest(file)


# --- v2: plugin -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "listed"),
    [("true", True), ("1", True), ('"true"', True), ("false", False), ("0", False)],
)
def test_B14_as_plugin(written: str, listed: bool) -> None:
    """Truth value, number or word; absent means true."""
    assert read(f"as_plugin: {written}\n" + V2).listed is listed
    assert read(V2).listed is True


def test_B14_what_must_exist() -> None:
    """info and commands must exist where as_plugin is true, and need not elsewhere."""
    found = errors("name: n\n")
    assert [item.message.split(" is")[0] for item in found] == ["info", "commands"]
    spec = read("name: n\nas_plugin: false\n")
    assert (spec.listed, spec.commands) == (False, ())
    assert "expected true or false" in errors("as_plugin: maybe\n" + V2)[0].message


def test_B15_text_for_the_model() -> None:
    """description_for_model wins where it is given."""
    assert read(V2).description_model == "Says what the weather is."
    text = with_info(V2, description_for_model="Ask me.")
    assert read(text).description_model == "Ask me."


def test_B17_B18_ids() -> None:
    """config.id before id; absent and `default` give one made from the name."""
    assert read("id: 5\n" + V2 + "config: {id: 6}\n").id == "6"
    assert read("id: 5\n" + V2).id == "5"
    made = read(V2).id
    assert made == read("id: default\n" + V2).id
    assert made
    assert made != "default"


# --- v2: types (the grammar itself is tested with notation.py) --------------------


def test_B28_B29_B30_nested_fields() -> None:
    """Mappings nest; unknown node keys are a warning at their line."""
    body = """
    parameter:
      type:
        box:
          type:
            x: {type: int, description: d}
          description: d
          colour: red
    """
    properties = parameters_of(body)["properties"]
    assert properties["box"]["properties"]["x"]["type"] == "integer"
    _, problems = parse_manifest(with_command(body))
    assert [
        (item.line, item.severity) for item in problems if "colour" in item.message
    ] == [(13, "warning")]


def test_B32_required_at_every_depth() -> None:
    """`required` defaults to true, also inside."""
    body = """
    parameter:
      type:
        a: {type: {x: {type: int}, y: {type: int, required: false}}, description: d}
        b: {type: int, description: d, required: false}
    """
    schema = parameters_of(body)
    assert (schema["required"], schema["properties"]["a"]["required"]) == (["a"], ["x"])


def test_B33_B34_B35_lists_and_maps() -> None:
    """Simple lists and maps, and lists of objects."""
    body = """
    parameter:
      type:
        a: {type: "List[int]", description: d}
        b: {type: "Dict[str, int]", description: d}
        c: {type: [{name: x, type: int}], description: d}
    """
    properties = parameters_of(body)["properties"]
    assert properties["a"]["items"] == {"type": "integer"}
    assert properties["b"]["additionalProperties"] == {"type": "integer"}
    assert properties["c"]["items"]["properties"] == {"x": {"type": "integer"}}
    assert errors(with_command("parameter: {type: 'Dict[int, str]'}"))


@pytest.mark.parametrize(
    ("parameter", "place"),
    [
        ("parameter: {type: pandas.DataFrame, description: d}", "parameter"),
        ("parameter: {type: {n: {type: 'List[a.B]', description: d}}}", "n"),
        ("parameter: {type: {n: {type: {x: {type: a.B}}, description: d}}}", "n.x"),
        ("parameters: [{name: n, type: a.B, description: d, required: true}]", "n"),
    ],
)
def test_B41_B44_a_class_that_no_call_can_supply(parameter: str, place: str) -> None:
    """`plugins check` says what to add; the other commands can still be used."""
    warned = warnings(with_command(parameter))[-1]
    assert f"{place}: an object of the class " in warned
    assert "write asset_ref_acceptable: true" in warned


@pytest.mark.parametrize(
    "node",
    [
        "{type: a.B, description: d, asset_ref_acceptable: true}",
        "{type: {x: {type: a.B}}, description: d, asset_ref_acceptable: true}",
        "{type: 'Union[a.B, str]', description: d}",
        "{type: 'Optional[a.B]', description: d}",
    ],
)
def test_B41_B44_classes_that_a_call_can_supply(node: str) -> None:
    """By a reference to it, or to what holds it, or by another type."""
    assert warnings(with_command(f"parameter: {{type: {{n: {node}}}}}")) == []


def test_B36_type_refs_hold_for_the_whole_file() -> None:
    """Defined in one command's answer, used in a parameter before it stands."""
    text = """
name: p
info: {description: d}
commands:
  - command_name: a
    description: d
    parameter: {type: {boxes: {type: "List[box]", description: d}}}
  - command_name: b
    description: d
    response:
      type:
        one:
          type:
            _type_ref: box
            x: {type: int, optional: false}
            next: {type: "Optional[box]", optional: true}
"""
    schema = Schema(read(text).commands[0].parameters)
    assert schema.valid({"boxes": [{"x": 1, "next": {"x": 2}}]})
    assert not schema.valid({"boxes": [{"next": None}]})


def test_B36_mistakes_in_type_refs_have_lines() -> None:
    """Twice, unknown, and the name of a builtin type."""
    found = errors(
        """name: p
info: {description: d}
commands:
  - command_name: a
    description: d
    parameter:
      type:
        a: {type: {_type_ref: t, x: {type: int}}, description: d}
        b: {type: {_type_ref: t, y: {type: int}}, description: d}
        c: {type: tt, description: d}
        d: {type: {_type_ref: string, z: {type: int}}, description: d}
"""
    )
    assert [item.line for item in found] == [9, 10, 11]


def test_B36_an_alias_does_not_define_a_type_twice() -> None:
    """What an anchor holds is one definition, however often it is used."""
    body = """
    parameter:
      type:
        a: &box {type: {_type_ref: box, x: {type: int}}, description: d}
        b: *box
    """
    properties = parameters_of(body)["properties"]
    assert properties["a"] == properties["b"]


def test_B36_a_name_for_the_whole_parameter() -> None:
    """Its fields stand at the root all the same, also where the name is used."""
    text = """
name: p
info: {description: d}
commands:
  - command_name: a
    description: d
    parameter: {type: {_type_ref: all, x: {type: int, description: d}}}
    response: {type: all}
  - {command_name: b, description: d, parameter: {type: all, required: false}}
"""
    first, second = read(text).commands
    assert first.parameter_names == second.parameter_names == ("x",)
    assert first.response is not None
    assert first.response["required"] == ["x"]
    assert "$defs" not in first.parameters
    assert second.parameters["x-optional"] is True


def test_B37_K3_simple_parameter() -> None:
    """The parameter may be one bare value."""
    assert (
        parameters_of("parameter: {type: string, description: d}")["type"] == "string"
    )


def test_B38_parameter_may_be_missing() -> None:
    """`required: false` at the parameter itself is kept."""
    schema = parameters_of("parameter: {type: {a: {type: int}}, required: false}")
    assert schema["x-optional"] is True


@pytest.mark.parametrize("written", ["", "null", "{type: null}"])
def test_B38_no_parameters(written: str) -> None:
    """Nothing, null and a null type: the command takes nothing."""
    schema = Schema(parameters_of(f"parameter: {written}"))
    assert schema.valid({})
    assert not schema.valid({"a": 1})


def test_B39_B40_optional_and_required_are_both_read() -> None:
    """The wrong word is a warning, and means what it says."""
    body = "response: {type: {a: {type: int, required: false}, b: {type: int}}}"
    response = read(with_command(body)).commands[0].response
    assert response is not None
    assert response["required"] == ["b"]
    assert any("required" in text for text in warnings(with_command(body)))


def test_B41_opaque_types_and_references() -> None:
    """Class names stay names; nothing is imported for them."""
    import sys

    body = """
    parameter:
      type:
        img: {type: no_such_module.Image, description: d, asset_ref_acceptable: true}
      asset_ref_acceptable: true
    """
    schema = parameters_of(body)
    assert schema["properties"]["img"]["x-type"] == "no_such_module.Image"
    assert schema["properties"]["img"]["x-asset-ref"] is True
    assert schema["x-asset-ref"] is True
    assert "no_such_module" not in sys.modules


# --- our additions ---------------------------------------------------------------


def test_additions_are_read() -> None:
    """Effects, examples, output, tool name, limits and failure field."""
    body = """
    parameter: {type: {place: {type: string, description: d}}}
    response: {type: {ok: {type: bool}}}
    effects: {kind: idempotent, destructive: false}
    examples:
      - q: What is it like in Bern?
        a: {place: Bern}
      - q: And then?
        a: [{tool: OTHER, x: 1}, {tool: W, place: "{{ previous_result['x'] }}"}]
    example_output: {ok: true}
    tool_name: W
    time_limit: 2
    blocking: false
    failure_field: ok
    """
    text = with_command(body)
    assert warnings(text) == []
    command = read(text).commands[0]
    assert command.effects == Effects(kind="idempotent", destructive=False)
    assert (command.tool_name, command.time_limit, command.blocking) == (
        "W",
        2.0,
        False,
    )
    assert (command.failure_field, command.example_output) == ("ok", {"ok": True})
    first, second = command.examples
    assert (first.question, first.calls[0].tool) == ("What is it like in Bern?", "W")
    assert [call.tool for call in second.calls] == ["OTHER", "W"]
    assert second.calls[0].arguments == {"x": 1}


def test_a_failure_field_is_checked_as_that_of_a_function() -> None:
    """A response of unknown fields may have it; of known ones it is a boolean."""
    (command,) = read(with_command("failure_field: ok")).commands
    assert command.failure_field == "ok"
    for kind in ("{ok: {type: int}}", "{done: {type: bool}}", "int"):
        body = f"response: {{type: {kind}}}\nfailure_field: ok"
        (wrong,) = errors(with_command(body))
        assert wrong.message.endswith("the response has no boolean field 'ok'")


def test_effects_words() -> None:
    """One word is enough; who only reads destroys nothing."""
    effects = read(with_command("effects: read")).commands[0].effects
    assert effects == Effects(kind="read", destructive=False, open_world=True)
    assert read(with_command("")).commands[0].effects == Effects()
    assert "expected one of" in errors(with_command("effects: often"))[0].message


def test_C6_examples_are_checked() -> None:
    """An example that does not fit the parameters is a warning."""
    body = """
    parameter: {type: {place: {type: string, description: d}}}
    examples: [{q: Where?, a: {plaice: Bern}}]
    """
    assert any("does not fit" in text for text in warnings(with_command(body)))


def test_examples_of_the_plugin_are_checked() -> None:
    """Calls of its own commands are; of another plugin's tools nothing is known."""
    calls = "[{tool: now, plaice: x}, {tool: OTHER, y: 1}]"
    said = warnings(V2 + f"examples: [{{q: Where?, a: {calls}}}]\n")
    assert any("plaice" in text for text in said)
    assert not any("OTHER" in text for text in said)


def test_examples_are_data() -> None:
    """Names inside arguments are not touched by the rules for names."""
    body = """
    parameter: {type: {name: {type: int, description: d}}}
    examples: [{q: Which?, a: {name: 7}}]
    """
    assert warnings(with_command(body)) == []
    example = read(with_command(body)).commands[0].examples[0]
    assert example.calls[0].arguments == {"name": 7}


def test_unknown_keys_are_warnings() -> None:
    """Each with its line and the nearest key there is."""
    spec, problems = parse_manifest(
        V2.replace("    description: The", "    descripton: The")
    )
    assert spec.commands[0].description == ""
    assert [
        (item.line, item.message) for item in problems if "unknown" in item.message
    ] == [(7, "unknown key 'descripton' is not used; did you mean description?")]


# --- the file itself ---------------------------------------------------------------


def test_eight_mistakes_give_eight_problems() -> None:
    """All mistakes of a file are told at once, each with its line."""
    text = """\
name: p
info: {title: t, description: d}
as_plugin: perhaps
commands:
  - command_name: a
    description: d
    parameter:
      type:
        x: {type: strin, description: d}
        y: {type: int, description: d, required: maybe}
    time_limit: -1
    effects: sometimes
  - command_name: a
    description: d
  - description: no name
  - command_name: b
    description: d
    description: again
"""
    found = errors(text)
    assert [item.line for item in found] == [3, 9, 10, 11, 12, 13, 15, 18]
    assert all(str(item).startswith("config.yaml:") for item in found)


def test_duplicate_keys_have_both_lines() -> None:
    """The second stands in the problem's place, the first in its words."""
    found = errors(V2 + "name: again\n")
    assert [(item.line, item.message) for item in found] == [
        (13, "the key 'name' appears twice, first on line 1")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "name: !!python/object/apply:os.system [echo]",
        "name: !!python/name:os.system",
        "name: !custom x",
        "? !!python/name:os.system x\n: y",
        "name: !!binary aGk=",
        "name: !!set {a, b}",
    ],
)
def test_tags_are_refused(text: str) -> None:
    """No tag makes an object."""
    assert any("tag" in item.message for item in errors(text))


@pytest.mark.parametrize("tag", ["int", "float", "bool"])
@pytest.mark.parametrize("value", ["", " x", " _"])
def test_a_tag_without_such_a_value_is_told(tag: str, value: str) -> None:
    """`!!int` with nothing behind it is a mistake like any other (fuzzing)."""
    found = errors(f"config: !!{tag}{value}\n")
    assert any(
        f"value of the tag 'tag:yaml.org,2002:{tag}'" in item.message for item in found
    )


def test_billion_laughs_is_refused_fast() -> None:
    """Aliases are followed only so far."""
    text = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for before, name in itertools.pairwise("abcdefghi"):
        text += f"{name}: &{name} [{', '.join(['*' + before] * 10)}]\n"
    start = time.process_time()
    found = errors(text)
    assert time.process_time() - start < 3
    assert "aliases" in found[0].message


@pytest.mark.parametrize(
    "text",
    ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a, b: 1}", "a: &a {<<: [*a, *a]}"],
)
def test_what_contains_itself_is_refused(text: str) -> None:
    """An alias to what it stands in does not hang the reader."""
    assert errors(text)


@pytest.mark.parametrize(
    "text", ["a: " + "[" * 200_000, "a: " + "{a: " * 100_000, "- " * 100_000]
)
def test_deep_nesting_does_not_crash(text: str) -> None:
    """PyYAML's composer crashes the process on this; it is never asked.

    PyYAML 6.0.4 refuses it itself, while it looks ahead for the end of a key.
    """
    assert "levels deep" in errors(text)[0].message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("# only a comment", "the file is empty"),
        ("- a", "expected a mapping"),
        ("a: [", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("a:\n\tb: c", "the line is indented with a tab; use spaces"),
        ("a:\n  - b: 1\n c: 2", "must begin at the same column"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("commands:\n  one: {}\n", "each command begins with `- command_name: NAME`"),
        ("a: \x00", "not valid YAML"),
        ("? [a]\n: b", "expected a plain key"),
        ("a: !!int x", "expected a value"),
        ("x" * 2_000_001, "characters"),
    ],
)
def test_files_that_are_no_manifest(text: str, words: str) -> None:
    """Each says what it is."""
    assert any(words in item.message for item in errors(text))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb 2\nc: 3", 2, "there is no `: ` in 'b 2'; write `key: value`"),
        ("a: say: it", 1, "a text with `: ` in it must be in quotes"),
        ("a: so it is:", 1, "a text with `: ` in it must be in quotes"),
        ("a: 1\n b: {c: 2}\n", 2, "must begin at the same column"),
        ("a: 1\nb: {{x}} y\n", 2, "a text that begins with { must be in quotes"),
        ("a: @x", 1, "a text that begins with @ must be in quotes"),
        ('a: "x\nb: 1\nc: 2\n', 1, "a quote is opened here and never closed"),
    ],
)
def test_what_to_write_where_it_is_no_yaml(text: str, line: int, words: str) -> None:
    """The line that is wrong, not where the parser could go no further."""
    (problem,) = errors(text)
    assert words in problem.message
    assert problem.line == line


def test_anchors_and_merges_are_read() -> None:
    """`<<` gives fields; a key of one's own wins."""
    body = """
    parameter:
      type:
        a: &base {type: int, description: first}
        b: {<<: *base, description: second}
    """
    properties = parameters_of(body)["properties"]
    assert properties["a"] == {"type": "integer", "description": "first"}
    assert properties["b"] == {"type": "integer", "description": "second"}


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """Missing, and not UTF-8."""
    with pytest.raises(ManifestError, match="cannot be read"):
        load_manifest(tmp_path / "none.yaml")
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ManifestError, match="not UTF-8"):
        load_manifest(tmp_path)


def test_a_byte_order_mark_is_taken_off(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    (tmp_path / "config.yaml").write_bytes(b"\xef\xbb\xbf" + V2.encode())
    assert load_manifest(tmp_path)[0].name == "Weather"


# --- real files ---------------------------------------------------------------------

_NAMELESS = "no name is given: artifact_id is used as the name"
_MESSAGE = (
    "unknown type 'Message': its values are not checked; write a class with its module "
    "or plugin, as in PLUGIN.Message"
)
_PLACEHOLDER = 'example: expected one of "<enum_1>", "<enum_2>", got \'<example>\''
REAL_WARNINGS = {
    # An interactor is no plugin for the model and has no name of its own.
    "v1__concopilot-examples__2023-12-04__interactor_auto_7ed7bb": [_NAMELESS],
    "v1__concopilot__2023-11-14__interactor_chat_4292a2": [_NAMELESS],
    # v2's interactors answer with a class that is named without its module.
    "v2__concopilot-examples__2024-02-24__interactor_auto_6038cb": [
        _NAMELESS,
        _MESSAGE,
    ],
    "v2__concopilot-examples__2024-02-24__interactor_chatwithtool_5aef43": [
        _NAMELESS,
        _MESSAGE,
    ],
    "v2__concopilot-examples__2024-03-18__interactor_auto_e7514e": [
        _NAMELESS,
        _MESSAGE,
    ],
    "v2__concopilot-examples__2024-03-18__interactor_chatwithtool_62f81b": [
        _NAMELESS,
        _MESSAGE,
    ],
    # The document's own template: its placeholder example is none of its enum.
    "v1__concopilot__2023-10-22__config_plugin_config_yaml_1126d0": [_PLACEHOLDER],
    "v1__concopilot__2023-11-14__config_plugin_config_yaml_d04ccf": [_PLACEHOLDER],
}


def test_A4_B2_every_real_file_loads(shared_data: Path) -> None:
    """The predecessor's own files load, with exactly the warnings written above."""
    files = sorted((shared_data / "concopilot" / "configs").glob("*.yaml"))
    assert len(files) == 15
    for file in files:
        spec, problems = load_manifest(file)
        assert spec.generation == file.name[:2]
        assert spec.commands
        expected = REAL_WARNINGS.get(file.stem, [])
        assert expected == [item.message for item in problems], file.name


BAD_ENUM = """
info: {title: t, description: d}
commands:
- command_name: good
  description: d
- command_name: bad
  description: d
  parameter: {type: {n: {type: int, enum: [1, two]}}}
"""


def test_a_wrong_enum_member_leaves_out_its_command_only() -> None:
    """The rest works, and the problem is told; strictly all of it is refused."""
    spec, problems = parse_manifest(BAD_ENUM)
    assert [command.name for command in spec.commands] == ["good"]
    assert {problem.severity for problem in problems} == {"warning"}
    assert any("the command is left out" in problem.message for problem in problems)
    with pytest.raises(ManifestError, match="is not of the type"):
        parse_manifest(BAD_ENUM, strict=True)
    alone = BAD_ENUM.replace("- command_name: good\n  description: d\n", "")
    with pytest.raises(ManifestError, match="is not of the type"):
        parse_manifest(alone)


def test_a_strict_session_refuses_such_a_manifest(tmp_path: Path) -> None:
    """And any other works with what is left of it."""
    (tmp_path / "odd.yaml").write_text(BAD_ENUM, encoding="utf-8")
    source = tmp_path / "odd.yaml"
    assert [command.name for command in load_plugin(source).spec.commands] == ["good"]
    with pytest.raises(ManifestError, match="is not of the type"):
        load_plugin(source, strict=True)


def test_what_is_given_by_mistake_is_told_with_what_is_meant() -> None:
    """A required key by another name, a word for files, a limit of another type."""
    text = V2.replace("command_name: now", "name: now")
    with pytest.raises(ManifestError, match="'name' is not used; did you mean command"):
        parse_manifest(text)
    text = V2.replace("type: string", "type: string\n          names_file: writ")
    (wrong,) = errors(text)
    assert wrong.message.endswith('folder, got "writ". Did you mean write?')
    for written, told in (
        ("string", ["minimum is not used: it limits the type number, got string"]),
        ("integer", []),
        ("Optional[int]", []),
    ):
        text = V2.replace("type: string", f"type: {written}\n          minimum: 1")
        assert warnings(text) == told


def test_a_named_type_may_have_any_letters() -> None:
    """A reference to `größe` is checked as one to `size` is."""
    text = V2.replace(
        "          type: string",
        "          type: {_type_ref: größe, x: {type: int}}",
        1,
    )
    spec = read(
        text.replace("        place:", "        two: {type: größe}\n        place:", 1)
    )
    schema = Schema(spec.commands[0].parameters)
    assert schema.problems({"place": {"x": 1}, "two": {"x": 1}}) == ()
    (wrong,) = schema.problems({"place": {"x": 1}, "two": {"x": "a"}})
    assert wrong.path == ("two", "x")
