"""A hostile MCP server: what it does is reported, and nothing of it is acted upon."""

import asyncio
import json
import logging
import sys
import time
from pathlib import Path

import pytest

from neuraxis import Call, Policy, Session
from neuraxis.bridges import mcp
from neuraxis.errors import ManifestError
from neuraxis.events import ApprovalAsked, CallProgress
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.lock import entry, write_lock

SERVER = Path(__file__).parents[1] / "hostile_server.py"


def hostile(mode, **options):
    return mcp(
        {"command": sys.executable, "args": [str(SERVER), mode]},
        name="hostile",
        **options,
    )


def opened(tmp_path, *plugins, **options):
    return Session(
        model=ScriptedModel([]), plugins=plugins, workspace=tmp_path / "w", **options
    )


async def say(session, watch=None, command="say", **arguments):
    call = Call(
        id=f"c{time.monotonic_ns()}",
        plugin="hostile",
        command=command,
        arguments=arguments or {"text": "hello"},
    )
    return await session.call(call, watch)


async def test_a_server_that_behaves_answers(tmp_path):
    """The hostile tests can fail: the same server, tame, does as it is asked."""
    with opened(tmp_path, hostile("tame")) as session:
        result = await say(session)
    assert (result.status, result.value) == ("done", "said hello")


async def test_a_closed_session_starts_no_server_again(tmp_path):
    """What was closed stays closed: no process is left behind."""
    session = opened(tmp_path, hostile("tame"))
    session.close()
    result = await say(session)
    assert "closed with its session" in result.error.message


async def test_lines_that_are_no_messages_are_passed_over(tmp_path):
    """A server that prints a greeting to standard output is still understood."""
    with opened(tmp_path, hostile("prints")) as session:
        assert (await say(session)).value == "said hello"


async def test_a_description_that_changes_after_it_was_shown_is_refused(
    tmp_path, caplog
):
    """N10: a changed command is refused, a new one is not offered; both are logged."""
    with opened(tmp_path, hostile("changes")) as session:
        assert (await say(session)).status == "done"
        for _ in range(100):
            await asyncio.sleep(0.05)
            if "is refused" in caplog.text and "extra" in caplog.text:
                break
        changed = await say(session)
        assert changed.status == "failed"
        assert "description changed since it was accepted" in changed.error.message
        assert "evil.example" not in changed.error.message
        assert (await say(session, command="again")).status == "done"
        assert (await say(session, command="extra")).error.code == "unknown_command"
    assert "hostile.say: its description changed" in caplog.text
    assert "hostile.extra: new; it is not offered" in caplog.text


async def test_a_resource_that_changes_after_it_was_read_is_told(tmp_path):
    """Once, beside the next answer, and of no address that was not read."""
    with opened(tmp_path, hostile("updates")) as session:
        read = await say(session, command="read_resource", uri="doc://a")
        assert read.value["text"] == "words"
        told = [*read.warnings]
        for _ in range(100):
            if told:
                break
            await asyncio.sleep(0.02)
            told += (await say(session)).warnings
        after = (await say(session)).warnings
    assert told == ["the resource doc://a changed since it was read; read it again"]
    assert list(after) == []


async def test_a_server_is_held_to_the_lock_file(tmp_path):
    """N10: what a server says otherwise than when it was accepted ends the session."""
    lock = tmp_path / "lock.json"
    source = hostile("tame")
    try:
        (plugin,) = source.open_plugins(tmp_path)
    finally:
        source.close_plugins()
    write_lock(lock, {"hostile": entry(plugin.spec)})
    with opened(tmp_path, hostile("tame"), policy=Policy(lock=lock)) as session:
        assert (await say(session)).status == "done"
    with pytest.raises(ManifestError, match=r"not as it was accepted.*description"):
        opened(tmp_path, hostile("colours"), policy=Policy(lock=lock))


async def test_names_of_built_in_commands_are_not_taken(tmp_path):
    """A server's `list_files` has its plugin's name; the built-in one keeps its own."""
    source = hostile("collides")
    with opened(tmp_path, "neuraxis:files", source) as session:
        names = session.registry.tool_names
        assert names["list_files"] == ("files", "list_files")
        assert names["FILEWRITER"] == ("files", "write_file")
        assert names["hostile.list_files"] == ("hostile", "list_files")
        assert session.registry.find(None, "list_files").plugin.name == "files"
    assert source.problems == ["hostile.list_files: its name is taken; it is left out"]


async def test_a_result_of_100_megabytes_ends_the_call_and_not_the_session(tmp_path):
    """The connection is closed, the model is told why, and memory stays bounded."""
    with opened(tmp_path, hostile("huge")) as session:
        result = await say(session)
        assert result.status == "failed"
        assert "it sent a message over 64 MiB" in result.error.message
        assert "not known whether" in result.error.message


async def test_endless_progress_is_bounded(tmp_path):
    """A flood of progress is shown in part, without escape codes, and then ended."""
    seen = []
    with opened(tmp_path, hostile("endless_progress")) as session:
        result = await say(session, seen.append)
    progress = [event for event in seen if isinstance(event, CallProgress)]
    assert "over 20000 notifications" in result.error.message
    assert 0 < len(progress) < 500
    assert all("\x1b" not in event.message for event in progress)


async def test_escape_codes_in_texts_are_taken_out(tmp_path):
    """ANSI and direction marks go; HTML stays text, for nobody renders it."""
    source = hostile("colours")
    with opened(tmp_path, source) as session:
        (plugin,) = session.registry.plugins
        said = json.dumps(
            [
                plugin.spec.description,
                plugin.spec.title,
                plugin.spec.commands[0].description,
            ]
        )
        assert "\\u001b" not in said
        assert "\\u202e" not in said
        assert "<script>" in said
        result = await say(session)
        assert "escape codes" in result.warnings[0]
    assert "invisible characters" in source.problems[0]


async def test_the_words_of_a_failed_call_are_made_safe(tmp_path):
    """A server's error reaches the model as one line without escape codes."""
    with opened(tmp_path, hostile("fails")) as session:
        result = await say(session)
    assert result.status == "failed"
    assert "It failed red" in result.error.message
    assert "\x1b" not in result.error.message


async def test_sampling_in_a_loop_is_refused(tmp_path):
    """Nobody gave a model: each request is refused, and the model is told how many."""
    asked = []
    with opened(tmp_path, hostile("asks"), approve=asked.append) as session:
        result = await say(session)
    assert json.loads(result.value)["refused"] == 20
    assert asked == []


async def test_sampling_with_a_model_asks_the_person_each_time(tmp_path):
    """The model is asked after a yes only, and at most five times in one call."""
    asked = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return len(asked) == 1

    model = ScriptedModel(["a text"])
    source = hostile("asks", sampling=model)
    with opened(tmp_path, source, approve=approve) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert (said["refused"], said["last"]["content"]["text"]) == (19, "a text")
    assert len(model.prompts) == 1
    assert len(asked) <= 5
    assert asked[0].call["command"] == "sampling"
    assert "20 questions; 19 were refused" in result.warnings[0]


async def test_a_form_is_put_to_the_person_and_a_yes_fills_in_its_defaults(tmp_path):
    """Elicitation: the question shows the server's words without escape codes."""
    asked = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(question)
        return True

    with opened(tmp_path, hostile("elicits"), approve=approve) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert said["last"] == {"action": "accept", "content": {"name": "Ada"}}
    assert said["refused"] == 15  # five questions in one call, and no more
    assert "\x1b" not in asked[0].call["arguments"]["message"]


async def test_without_anybody_to_ask_a_form_is_declined(tmp_path):
    """Elicitation is refused where nobody can be asked."""
    with opened(tmp_path, hostile("elicits")) as session:
        result = await say(session)
    assert json.loads(result.value)["refused"] == 20


async def test_a_program_may_answer_forms_itself(tmp_path):
    """`answer=` fills the form; what does not fit its schema is not sent."""
    given = iter([{"name": "Bob"}, {"name": 5}, None])
    source = hostile("elicits", answer=lambda question: next(given, None))
    with opened(tmp_path, source) as session:
        result = await say(session)
    said = json.loads(result.value)
    assert said["last"]["action"] == "cancel"
    assert said["refused"] == 18


async def test_hints_of_a_server_do_not_make_the_policy_laxer(tmp_path):
    """`readOnlyHint` is a claim: the effect stays `once`, the answer untrusted."""
    with opened(tmp_path, hostile("claims")) as session:
        effects = session.registry.find("hostile", "say").spec.effects
        assert (effects.kind, effects.destructive, effects.open_world) == (
            "once",
            True,
            True,
        )
    with opened(tmp_path, hostile("claims", effects={"s*": "read"})) as session:
        effects = session.registry.find("hostile", "say").spec.effects
        assert (effects.kind, effects.open_world) == ("read", True)
        await say(session)
        (label,) = session.origins.results.values()
        assert [origin.open_world for origin in label] == [True]


async def test_bad_tools_hide_no_others(tmp_path):
    """Each bad definition is named with its reason; the rest can be called."""
    source = hostile("bad_tools")
    with opened(tmp_path, source) as session:
        (plugin,) = session.registry.plugins
        assert list(plugin.commands) == ["say", "again", "secret"]
        assert (await say(session)).status == "done"
        schema = plugin.commands["secret"].spec.parameters
        assert "x-secret-ok" not in json.dumps(schema)
    told = "\n".join(source.problems)
    for name in ("no_schema", "wrong", "remote", "tool 7", "tool 8"):
        assert name in told


async def test_a_dead_server_hides_no_other(tmp_path, caplog):
    """It is reported, on the log as well, and the others work."""
    dead = mcp("no-such-program-at-all", name="dead")
    with opened(tmp_path, dead, hostile("tame")) as session:
        assert (await say(session)).status == "done"
        assert [p.spec.name for p in session.registry.listed] == ["hostile"]
    assert "there is no program 'no-such-program-at-all'" in dead.problems[0]
    assert "no-such-program-at-all" in caplog.text


async def test_a_server_that_dies_is_started_again(tmp_path):
    """The call that was cut off is not repeated; the next one finds a new server."""
    with opened(tmp_path, hostile("dies")) as session:
        first = await say(session)
        assert "broke off" in first.error.message
        assert "not known whether" in first.error.message
        second = await say(session)
        assert "broke off" in second.error.message  # it was there again


async def test_a_call_that_takes_too_long_is_cancelled(tmp_path):
    """A slow server holds neither its call nor the end of the session."""
    with opened(tmp_path, hostile("slow")) as session:
        call = asyncio.create_task(say(session))
        await asyncio.sleep(0.3)
        call.cancel()
        started = time.monotonic()
        await asyncio.gather(call, return_exceptions=True)
        assert call.cancelled()
        assert time.monotonic() - started < 2


def test_a_log_line_of_a_server_is_made_safe(tmp_path, caplog):
    """What is logged of a server has no escape codes."""
    with caplog.at_level(logging.WARNING):
        source = mcp(
            {
                "command": sys.executable,
                "args": ["-c", "import sys; print('\\x1b[31mno', file=sys.stderr)"],
            },
            name="rude",
        )
        source.open_plugins(tmp_path)
        source.close_plugins()
    assert "it said: no" in caplog.text
    assert "\x1b" not in caplog.text
