"""A script is said reply by reply, and a recording is a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from neuraxis.errors import (
    ConfigError,
    ModelBroken,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    StorageError,
)
from neuraxis.messages import Chunk, Message, NativeCall, Prompt, Usage
from neuraxis.models import complete, find_model, guesses
from neuraxis.models.recorder import Recorder, entry
from neuraxis.models.scripted import ScriptedModel, ScriptedReply, load_script
from neuraxis.settings import Settings


def asking(text: str = "Hi") -> Prompt:
    return Prompt(messages=(Message(role="user", content=text),))


async def test_replies_in_order() -> None:
    """Texts, mappings and replies; every prompt is kept."""
    model = ScriptedModel(["one", {"text": "two"}, ScriptedReply(text="three")])
    said = [(await complete(model, asking(text))).text for text in "abc"]
    assert said == ["one", "two", "three"]
    assert [prompt.messages[0].content for prompt in model.prompts] == ["a", "b", "c"]
    model.finish()


async def test_one_text_is_one_reply() -> None:
    """It is not taken for a list of characters."""
    model = ScriptedModel("hello")
    assert (await complete(model, asking())).text == "hello"
    model.finish()


async def test_a_function_as_a_model() -> None:
    """A test's own function answers each prompt."""
    model = ScriptedModel(lambda prompt: prompt.messages[-1].content.upper())
    assert (await complete(model, asking("abc"))).text == "ABC"
    assert model.unused == 0
    model.finish()


async def test_asking_past_the_end() -> None:
    """The error names the script, its length and what was asked."""
    model = ScriptedModel(["one"], name="scripted:x.yaml")
    await complete(model, asking())
    with pytest.raises(ModelUnavailable, match=r"x\.yaml.* 1 reply .*'Tell me'"):
        await complete(model, asking("Tell me"))
    with pytest.raises(ModelUnavailable):
        model.finish()


async def test_each_question_past_the_end_counts_the_same_replies() -> None:
    """The number is that of the script, not of the questions."""
    for script, count in (([], "no replies"), (["one"], "1 reply")):
        model = ScriptedModel(script)
        for _ in script:
            await complete(model, asking())
        for _ in range(2):
            with pytest.raises(ModelUnavailable, match=f"the script has {count} and"):
                await complete(model, asking())


async def test_replies_that_are_left_over() -> None:
    """`finish` says how many and which."""
    model = ScriptedModel(["one", "two", "three"])
    await complete(model, asking())
    assert model.unused == 2
    with pytest.raises(ConfigError, match=r'2 of 3 replies .* "two"'):
        model.finish()


async def test_an_expected_prompt() -> None:
    """A reply may say what the prompt must contain, anywhere in it."""
    model = ScriptedModel([{"text": "ok", "expect": ["Lyon", "Turin"]}] * 2)
    await complete(model, asking("Lyon or Turin?"))
    with pytest.raises(ModelRefused, match="reply 2: expected the prompt to contain"):
        await complete(model, asking("Lyon?"))
    with pytest.raises(ModelRefused):
        model.finish()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("unavailable: no", ModelUnavailable),
        ("refused: no", ModelRefused),
        ("timeout: no", ModelTimeout),
        ("broken", ModelBroken),
    ],
)
async def test_scripted_errors(error: str, kind: type[Exception]) -> None:
    """A script can fail, after part of its text or at once."""
    model = ScriptedModel([{"text": "a", "error": error, "status": 418}])
    seen: list[Chunk] = []
    with pytest.raises(kind) as caught:
        await complete(model, asking(), seen.append)
    assert [chunk.text for chunk in seen] == ["a"]
    assert vars(caught.value)["status"] == 418


async def test_pieces() -> None:
    """Texts are cut by size, or as the script says."""
    model = ScriptedModel(["abcde", {"chunks": ["x", "yz"]}], chunk_size=2)
    for expected in (["ab", "cd", "e"], ["x", "yz"]):
        seen: list[Chunk] = []
        await complete(model, asking(), seen.append)
        assert [chunk.text for chunk in seen if chunk.text] == expected


def test_a_file(tmp_path: Path) -> None:
    """YAML with blocks, and JSON, are scripts; the model is found by its name."""
    text = """
    - |
      [{"tool": "GOOGLE", "query": "x"}]
    - text: done
      finish_reason: length
      usage: {input_tokens: 3}
      tool_calls:
        - name: add
          arguments: {x: 1}
    """
    (tmp_path / "s.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "s.json").write_text('["\\ta"]', encoding="utf-8")
    model = find_model(f"scripted:{tmp_path / 's.yaml'}")
    assert isinstance(model, ScriptedModel)
    assert model.unused == 2
    assert load_script(tmp_path / "s.json").unused == 1


async def test_the_chunk_size_is_a_setting(tmp_path: Path) -> None:
    """Demos stream a script in small pieces."""
    (tmp_path / "s.yaml").write_text("- abc\n", encoding="utf-8")
    settings = Settings().override({"models.scripted.chunk_size": "1"}, "test")
    seen: list[Chunk] = []
    model = find_model(f"scripted:{tmp_path / 's.yaml'}", settings)
    await complete(model, asking(), seen.append)
    assert len(seen) == 4
    wrong = Settings().override({"models.scripted.chunk_size": "x"}, "test")
    with pytest.raises(ConfigError, match="chunk_size"):
        find_model(f"scripted:{tmp_path / 's.yaml'}", wrong)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a: 1}", "expected a list"),
        ("just text", "expected a list"),
        ("- [1", "not a script"),
        ("- !!python/object/apply:os.getcwd []", "not a script"),
        ("- 5", "reply 1: expected a string or a mapping, got 5"),
        ('- a\n- {"tool": "x"}', 'reply 2: unknown key "tool".*block'),
        ("- {txt: x}", "Did you mean text"),
        ("- {text: 1}", "text: expected a string"),
        ("- {chunks: [1]}", "chunks: expected texts"),
        ("- {chunks: 1}", "chunks: expected a list"),
        ("- {finish_reason: over}", "finish_reason: expected one of stop"),
        ("- {error: 'boom: x'}", "error: expected a word of unavailable"),
        ("- {tool_calls: [{id: a}]}", "expected a key 'name'"),
        ("- {tool_calls: 1}", "reply 1"),
        ("- {usage: {tokens: 1}}", "reply 1"),
        ("- {delay: soon}", "reply 1"),
        ("- {1: x}", "unknown key 1"),
    ],
)
def test_scripts_that_are_wrong(text: str, expected: str, tmp_path: Path) -> None:
    """The file, the reply and the key are named."""
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=expected) as caught:
        load_script(file)
    assert "s.yaml" in str(caught.value)


async def _later(prompt: Prompt) -> str:
    return "later"


@pytest.mark.parametrize(
    ("replies", "told"),
    [
        ([{"tool": "look"}], 'reply 1: unknown key "tool".*write a call as a text of'),
        (["one", _later], "reply 2: expected a string or a mapping, got a function"),
        ([None], "reply 1: expected a string or a mapping, got None"),
        (None, "reply 1: expected a string or a mapping, got None"),
        ({"tool": "look"}, 'reply 1: unknown key "tool"'),
    ],
)
def test_a_list_in_python_is_told_what_it_may_hold(replies: Any, told: str) -> None:
    """Nothing of YAML, which nobody wrote."""
    with pytest.raises(ConfigError, match=told) as caught:
        ScriptedModel(replies)
    assert "may hold texts, ScriptedReply, and mappings" in str(caught.value)
    assert "'- |'" not in str(caught.value)


@pytest.mark.parametrize(
    ("function", "told"), [(_later, "got a coroutine"), (lambda _: None, "got None")]
)
async def test_a_function_that_returns_no_reply_is_told(
    function: Any, told: str
) -> None:
    """An `async def` returns a coroutine, which nobody awaits."""
    with pytest.raises(ConfigError, match=rf"{told}\..* a plain `def`"):
        await complete(ScriptedModel(function), asking())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """Absent, a folder, not text."""
    (tmp_path / "b.yaml").write_bytes(b"- \xff\xfe")
    for name in ("absent.yaml", ".", "b.yaml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_script(tmp_path / name)


# --- recording -----------------------------------------------------------------


async def replayed(path: Path) -> list[Any]:
    model = load_script(path)
    return [await complete(model, asking()) for _ in range(model.unused)]


async def test_a_recording_replays(tmp_path: Path) -> None:
    """What was recorded is said again: text, calls, reasons, usage."""
    file = tmp_path / "deep" / "r.yaml"
    call = NativeCall(id="a", name="add", arguments='{"x": "é"}')
    source = ScriptedModel(
        [
            "[]\n",
            ScriptedReply(text="a\nb ", reasoning="hm", usage=Usage(input_tokens=4)),
            ScriptedReply(tool_calls=(call,), finish_reason="tool_calls"),
        ],
        chunk_size=1,
    )
    recorder = Recorder(source, file)
    said = [await complete(recorder, asking("secret question")) for _ in range(3)]
    assert await replayed(file) == said
    text = file.read_text(encoding="utf-8")
    assert "secret question" not in text
    assert "- |\n  []\n" in text
    assert [path.name for path in file.parent.iterdir()] == ["r.yaml"]
    assert recorder.name == "scripted:"
    await recorder.close()


async def test_a_recorded_error_replays(tmp_path: Path) -> None:
    """So does a failure, with what was said before it."""
    file = tmp_path / "r.yaml"
    source = ScriptedModel([{"text": "half", "error": "broken: gone", "status": 502}])
    with pytest.raises(ModelBroken):
        await complete(Recorder(source, file), asking())
    seen: list[Chunk] = []
    with pytest.raises(ModelBroken, match="gone") as caught:
        await complete(load_script(file), asking(), seen.append)
    assert ([chunk.text for chunk in seen], caught.value.status) == (["half"], 502)


async def test_a_stream_that_is_left_is_not_recorded(tmp_path: Path) -> None:
    """Half a reply that nobody waited for is no reply."""
    recorder = Recorder(ScriptedModel(["ab", "cd"], chunk_size=1), tmp_path / "r.yaml")
    stream = recorder.stream(asking())
    await anext(stream)
    await stream.aclose()
    await complete(recorder, asking())
    assert [c.text for c in await replayed(tmp_path / "r.yaml")] == ["cd"]


async def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """The recording's failure is told; nothing half is left."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    recorder = Recorder(ScriptedModel(["a"]), tmp_path / "file" / "r.yaml")
    with pytest.raises(StorageError, match="cannot be written"):
        await complete(recorder, asking())


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x85\U00010000\U0010ffff \\ud83d\\ude00 \\\U0001f600")
def test_any_text_survives_a_recording(text: str) -> None:
    """Blocks keep every character, or JSON stands in for them."""
    for reply in (text, {"text": text, "finish_reason": "length"}):
        assert yaml.safe_load(entry(reply)) == [reply]


@pytest.mark.parametrize(
    "text",
    [
        "a\n",
        "a",
        "a\n\n",
        "\n a\n",
        "a \nb",
        "\ta\nb",
        "a\r\nb",
        "\x85\n",
        "# x\ny",
        "'",
    ],
)
def test_texts_that_are_hard_to_write(text: str) -> None:
    """Blanks at the ends, tabs, other line ends."""
    assert yaml.safe_load(entry(text)) == [text]


def test_plain_protocol_text_is_a_block() -> None:
    """A recording can be read and edited by a person."""
    message = {"receiver": {"role": "user"}, "content": "é"}
    written = entry(json.dumps(message, ensure_ascii=False, indent=2))
    assert written.startswith("- |")
    assert "\\" not in written


def test_a_recorded_model_is_still_one_that_guesses(tmp_path: Path) -> None:
    """Else a recorded run of the planner would do without asking what it guessed."""

    class Guessing(ScriptedModel):
        guesses = True
        finds_tools = True

    recorded = Recorder(Guessing(["a"]), tmp_path / "script.yaml")
    assert guesses(recorded)
    assert recorded.finds_tools
    plain = Recorder(ScriptedModel(["a"]), tmp_path / "script.yaml")
    assert not guesses(plain)
    assert not plain.finds_tools
