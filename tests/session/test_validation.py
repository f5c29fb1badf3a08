"""What a beginner gives a session or writes as settings: told where, what, and how."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from neuraxis import Options, Session, command
from neuraxis.cli.main import cli
from neuraxis.errors import ConfigError
from neuraxis.events import ApprovalAsked
from neuraxis.execution.budget import Budget
from neuraxis.messages import Call, Message
from neuraxis.models.scripted import ScriptedModel
from neuraxis.policy.rules import Policy, Rule
from neuraxis.session.options import SessionArguments
from neuraxis.settings import Settings, check_settings, faults_of, load


@command(effects="read")
def one() -> int:
    """One."""
    return 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "plugins",
            "hello",
            r"expected a list, got 'hello'; write plugins=\['hello'\]",
        ),
        ("plugins", Path("hello"), r"write plugins=\['hello'\]"),
        ("plugins", one, r"got a function; write plugins=\[one\]"),
        ("plugins", re, r"got a module; write plugins=\[re\]"),
        ("plugins", {"one": one}, "expected a list, got a dict"),
        ("plugins", None, "expected a list, got None"),
        ("id", "", "expected the id of a session, a text that can be printed"),
        ("id", "a\0b", r"a text that can be printed, got 'a\\x00b'"),
        ("model", None, "expected a model's name, such as 'local:', a Model, or"),
        ("model", [one], r"a function is a plugin: write plugins=\[one\]"),
        ("model", ScriptedModel, r"the class ScriptedModel; write ScriptedModel\("),
        (
            "model",
            [object()],
            "got an object, which has no name or stream or close; docs",
        ),
        ("dialect", 2, "expected a dialect's name, such as 'intents'"),
        ("workspace", 3, "expected a path, got 3"),
        ("journal", 3, 'a path, "memory", None or a Journal'),
        ("id", 3, "expected the id of a session"),
        ("settings", {"model": "local:"}, "expected a Settings"),
        ("budget", 5, "expected a Budget"),
        ("policy", "allow", r"expected a neuraxis\.Policy"),
        ("approve", True, "expected a function that returns True to approve"),
        ("approve", lambda: True, r"a function of one argument, .* that takes \(\)"),
        ("approve", lambda a, b: True, r"such as `def approve\(asked\)`, .*\(a, b\)"),
        ("options", {"strict": True}, r"expected a neuraxis\.Options, got a dict"),
    ],
)
def test_a_wrong_kind_of_argument_is_told(name: str, value: Any, words: str) -> None:
    """By its name, before anything is loaded; a text is no list of letters."""
    given: dict[str, Any] = {"model": ScriptedModel([]), name: value}
    with pytest.raises(ConfigError, match=f"{name}: .*{words}"):
        Session(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Policy(yes_to="files.*"), "policy.yes_to: expected a list of texts"),
        (Policy(allow_hosts="localhost:80"), "policy.allow_hosts: expected a list of"),
        (Policy(lock="none.json"), "policy.lock: none.json: there is no such file"),
        (Options(always_shown="a"), "options.always_shown: expected a list of texts"),
        (Options(asset_folder=cast("Any", 3)), "options.asset_folder: expected a path"),
        (Options(embed=cast("Any", "small")), "options.embed: expected a function"),
        (Options(catalog_limit=0), "options.catalog_limit: expected a number of char"),
        (
            Options(on_error=cast("Any", "skip")),
            "options.on_error: expected one of fail_fast, continue, retry, got 'skip'",
        ),
    ],
)
def test_a_wrong_kind_within_policy_and_options_is_told(given: Any, words: str) -> None:
    """By the name of its part, before anything is loaded."""
    name = "policy" if isinstance(given, Policy) else "options"
    with pytest.raises(ConfigError, match=words):
        Session(ScriptedModel([]), **{name: given})


def test_a_session_has_few_arguments_and_the_page_has_all() -> None:
    """At most 14, the model first; each stands in the table with its default."""
    names = list(inspect.signature(Session).parameters)
    assert (len(names) <= 14, names[0]) == (True, "model")
    assert {*names} - {"id"} == {*SessionArguments.__annotations__}
    page = (Path(__file__).parents[2] / "docs/sessions.md").read_text(encoding="utf-8")
    for name in (*names, *Options.__struct_fields__, *Policy.__struct_fields__):
        assert f"\n| `{name}` | " in page, name
    for name in names:
        assert f"\n    {name}: " in (inspect.getdoc(Session) or ""), name


def test_going_on_needs_a_journal() -> None:
    """One in memory holds no earlier session."""
    with pytest.raises(ConfigError, match="name the journal that holds it"):
        Session.open("ab12", model=ScriptedModel([]))


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_request_is_told_and_not_asked(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a program and on the command line alike, also beside an attached object."""
    model = ScriptedModel([])
    with Session(model=model) as session:
        with pytest.raises(ConfigError, match="the request is empty: write ") as told:
            session.run_sync(text, attach=[{"a": 1}])
        assert not session.assets.ids
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["run", text], standalone_mode=False)
    assert str(done.exception) == str(told.value)


@pytest.mark.parametrize("text", [None, b"hi", ["hi"], 3])
def test_a_request_is_a_text(text: Any) -> None:
    """Told at once, and the session can still be asked."""
    with Session(model=ScriptedModel(["done"])) as session:
        with pytest.raises(ConfigError, match="the request: expected a string, got "):
            session.run_sync(text)
        assert session.run_sync("hi").text == "done"


def test_a_run_that_is_taken_for_its_answer_says_how_it_is_used() -> None:
    """An error or a print shows it; the warning would only say it again."""
    run = Session(model=ScriptedModel([])).run("hi")
    with pytest.raises(TypeError, match=r"`await` it, .* use session\.run_sync"):
        list(run)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "item", [{"role": "user", "content": "hey"}, "hey"], ids=["mapping", "text"]
)
def test_what_a_program_puts_into_the_history_is_a_message(item: Any) -> None:
    """Told at the start of the run, and not deep inside."""
    with Session(model=ScriptedModel(["done"])) as session:
        session.history.append(item)
        with pytest.raises(ConfigError, match=r"history: expected each item as a Mess"):
            session.run_sync("hi")
        session.history[-1:] = [Message(role="user", content="hey")]
        assert session.run_sync("hi").text == "done"


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Policy(rules=[Rule(verdict="deny", target=cast("Any", one))]), "rules: targe"),
        (Policy(yes_to=[cast("Any", one)]), "yes_to"),
    ],
)
def test_a_function_is_no_pattern(policy: Policy, told: str) -> None:
    """Told with the pattern that is meant."""
    told = rf'policy\.{told}.*: expected a string, such as "one\.\*", got a function'
    with pytest.raises(ConfigError, match=told):
        Session(ScriptedModel([]), plugins=[one], policy=policy)


def test_a_pattern_of_an_argument_is_a_text() -> None:
    """A number would fail at the first call."""
    rule = Rule(verdict="deny", target="one.*", arguments={"x": cast("Any", 3)})
    with pytest.raises(ConfigError, match="arguments: x: expected a string, got 3"):
        Session(ScriptedModel([]), plugins=[one], policy=Policy(rules=[rule]))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('modl = "local:"', "modl: there is no such setting. Did you mean model?"),
        ('[openai]\nbase_ulr = "x"', r"openai\.base_ulr: .* mean openai\.base_url\?"),
        ('[search]\nprovidr = "x"', "search.providr: there is no such setting"),
        ('openai = "x"', r"openai: expected a table, written \[openai\]"),
        ('[model]\nname = "x"', "model.name: expected no table of that name"),
        ("model = 3", "model: expected a string in quotes, got 3"),
        ('dialect = ["intents"]', "dialect: expected a string in quotes, got a list"),
        ("journal = true", "journal: expected a string in quotes, got True"),
        ("plugins = 3", "plugins: expected a list of texts in quotes, got 3"),
        ("[models.m]\ntemprature = 1", r"models\.m\.temprature: .* mean temperature\?"),
        ('[models."gpt-4.1"]\nx = 1', r"models\.gpt-4\.1\.x: unknown option\."),
        ('[models.m]\nextra = "a"', r"models\.m\.extra: expected a table, written \["),
        ('[models.m]\nseed = "x"', r"models\.m\.seed: expected a number from 0"),
        ("[models.m]\nvision = 3", r"models\.m\.vision: expected true or false"),
        ('[secrets]\nk = "v"', r"secrets\.k: expected no secret in a settings file"),
        ('plugins = ["a", 4]', "plugins: expected a list of texts in quotes, got 4"),
        ('plugins = {a = "x"}', "plugins.a: expected no table of that name"),
    ],
)
def test_what_a_file_of_settings_cannot_mean(
    tmp_path: Path, text: str, words: str
) -> None:
    """A misspelt key or a wrong value is told with its file, never left unread."""
    (tmp_path / "neuraxis.toml").write_text(text, encoding="utf-8")
    settings = load(tmp_path, {"HOME": "/nowhere"})
    with pytest.raises(ConfigError, match=rf"neuraxis\.toml: {words}"):
        check_settings(settings)
    with pytest.raises(ConfigError, match=words):
        Session(model=ScriptedModel([]), settings=settings)


def test_settings_that_are_right_and_those_of_plugins(tmp_path: Path) -> None:
    """A section that is none of ours is a plugin's, which knows what stands in it."""
    (tmp_path / "neuraxis.toml").write_text(
        'model = "local:"\nplugins = ["a"]\n[openai]\nbase_url = "http://x/v1"\n'
        "[models.x]\ntemperature = 1\n[tables]\nrows = 5\n[weather]\nunit = 'C'\n",
        encoding="utf-8",
    )
    check_settings(load(tmp_path, {"HOME": "/nowhere"}))


def test_variables_of_others_end_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that looks like a slip is a warning, once in a process."""
    environ = {"NEURAXIS_MODLE": "x", "NEURAXIS_OTHER": "y"}
    settings = load(tmp_path, {**environ, "NEURAXIS_UPDATE_GOLDEN": "1"})
    (fault,) = faults_of(settings, variables=True)
    assert "NEURAXIS_MODLE" in fault
    assert "Did you mean model?" in fault
    for _ in range(2):
        Session(model=ScriptedModel([]), settings=settings)
    assert caplog.messages == [fault]


def test_the_documented_settings_are_known() -> None:
    """What docs/settings.md lists is never called unknown."""
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    rows = [
        line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")
    ]
    keys = [
        key
        for row in rows
        if not row.startswith("| `models.")
        for key in re.findall(r"`([a-z_.]+)`", row.split("|")[1])
    ]
    assert "search.provider" in keys
    settings = Settings().override(dict.fromkeys(keys, "x"), "neuraxis.toml")
    assert [told for told in faults_of(settings) if "no such setting" in told] == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            Policy(default=cast("Any", "alow")),
            'expected one of "allow", "ask", "by_origin", "deny", "mild"',
        ),
        (Policy(undeclared=cast("Any", "no")), 'expected one of "inside", "outside"'),
        (Policy(rules=cast("Any", Rule(verdict="deny"))), "expected a list of rules"),
        (Policy(rules=cast("Any", ["deny"])), "expected a list of Rule, got 'deny'"),
        (
            Policy(rules=[Rule(verdict=cast("Any", "no"))]),
            'expected one of "allow", "ask", "deny"',
        ),
        (
            Policy(rules=[Rule(verdict="deny", effects=cast("Any", "once"))]),
            "expected a set",
        ),
        (
            Policy(rules=[Rule(verdict="deny", effects=frozenset(cast("Any", ["x"])))]),
            'expected one of "idempotent", "none", "once", "read"',
        ),
    ],
)
def test_a_policy_with_a_word_that_is_none_of_ours(policy: Policy, words: str) -> None:
    """It would allow what it was meant to stop; told before anything is loaded."""
    with pytest.raises(ConfigError, match=words):
        Session(model=ScriptedModel([]), policy=policy)


def test_a_right_policy_and_a_budget_that_is_none() -> None:
    """Each verdict and effect passes; a limit that is no number is named."""
    rules = [Rule(verdict="ask", effects=frozenset({"once", "read"}), target="a.*")]
    Session(model=ScriptedModel([]), policy=Policy(rules=rules, default="deny"))
    budget = Budget(steps=cast("Any", "10"))
    with pytest.raises(ConfigError, match=r"budget\.steps: expected a number"):
        Session(model=ScriptedModel([]), budget=budget)


def test_a_plain_function_may_answer_a_question() -> None:
    """It is run in a thread, so that it may wait for a person."""
    asked: list[str] = []

    def approve(question: ApprovalAsked) -> bool:
        asked.append(threading.current_thread().name)
        return True

    @command(effects="once")
    def pay() -> str:
        """Pay."""
        return "paid"

    session = Session(
        model=ScriptedModel([]),
        plugins=[pay],
        policy=Policy(default="ask"),
        approve=approve,
    )
    call = Call(id="c1", plugin=None, command="pay")
    assert asyncio.run(session.call(call)).value == "paid"
    assert len(asked) == 1
    assert asked != [threading.main_thread().name]


def test_a_question_that_expired_holds_nothing_up() -> None:
    """Who was asked may never answer; the session and the process end all the same."""
    answer = threading.Event()

    def approve(_: ApprovalAsked) -> bool:
        return answer.wait(30)

    session = Session(
        model=ScriptedModel(['[{"tool": "one"}]', "ok"]),
        plugins=[one],
        policy=Policy(default="ask"),
        approve=approve,
    )
    session.approvals.expires = 0.05
    started = time.perf_counter()
    with session:
        (result,) = session.run_sync("go").calls
    assert time.perf_counter() - started < 10
    answer.set()
    assert result.status == "failed"


_CALL = Call(id="a1", plugin=None, command="one")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"tool": "one", "x": 2},
            r"call: expected a Call, got a dict; write Call\(id='a1', plugin=None, "
            r"command='one', arguments={'x': 2}\), from neuraxis import Call",
        ),
        ("one", r"got 'one'; write Call\(id='a1', .* command='one', arguments=\.\.\."),
        (None, r"got None; write Call\(id='a1'.* command='TOOL'"),
        ([_CALL], r"got a list; for several calls write session\.call_all"),
        (Call(id=cast("str", 1), plugin=None, command="one"), r"Call\.id: expected a"),
        (Call(id="a1", plugin=cast("str", ["x"]), command="one"), r"Call\.plugin: exp"),
        (Call(id="a1", plugin=None, command="one", name=cast("str", 1)), r"Call\.name"),
        (
            Call(id="a1", plugin=None, command="one", max_items=cast("int", "3")),
            r"Call\.max_items: expected a whole number, or None, got '3'",
        ),
        (
            Call(id="a1", plugin=None, command=cast("str", one)),
            r"Call\.command: expected a string, got a function",
        ),
    ],
)
def test_a_call_of_a_wrong_kind(given: Any, words: str) -> None:
    """What to write instead, in `call`, `call_all` and `check`; nothing was begun."""
    session = Session(model=ScriptedModel([]), plugins=[one])
    with pytest.raises(ConfigError, match=words):
        asyncio.run(session.call(given))
    with pytest.raises(ConfigError, match=words):
        asyncio.run(session.call_all([_CALL, given]))
    with pytest.raises(ConfigError, match=words):
        session.check([_CALL, given])
    assert not session.journal.read(session.id)


@pytest.mark.parametrize(
    "given", [_CALL, {"tool": "one"}, "one", None, (item for item in [_CALL])]
)
def test_no_list_of_calls(given: Any) -> None:
    """One call, a generator, a mapping: a list is asked for."""
    session = Session(model=ScriptedModel([]), plugins=[one])
    for run in (session.check, lambda calls: asyncio.run(session.call_all(calls))):
        with pytest.raises(ConfigError, match="calls: expected a list of Call, got"):
            run(given)


def test_how_a_call_is_watched_and_goes_on() -> None:
    """The other arguments of what a session runs."""
    session = Session(model=ScriptedModel(["hi"]), plugins=[one])
    wrong: Any = 5
    with pytest.raises(ConfigError, match="watch: expected a function that takes an"):
        asyncio.run(session.call(_CALL, wrong))
    with pytest.raises(ConfigError, match="watch: expected a function that takes an"):
        session.run_sync("go", wrong)
    with pytest.raises(ConfigError, match="on_error: expected one of fail_fast, cont"):
        asyncio.run(session.call_all([_CALL], on_error=cast("Any", "skip")))
    with pytest.raises(ConfigError, match="description: expected a string, got 5"):
        session.attach("a note", wrong)


def test_a_run_taken_for_its_answer() -> None:
    """`session.run(...).text`, and a plain `for`: what to write."""
    session = Session(model=ScriptedModel(["hi"]))
    run: Any = session.run("go")
    for word in ("text", "calls"):
        with pytest.raises(AttributeError, match=rf"'{word}' .* session\.run_sync"):
            getattr(run, word)
    with pytest.raises(AttributeError, match="a Run has no 'txt'"):
        _ = run.txt
    with pytest.raises(TypeError, match="`async for` its events; elsewhere use"):
        list(run)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tools", "plugins"),
        ("instruction", "instructions"),
        ("output_type", "output"),
        ("strict", r"options=Options\(strict=\.\.\.\)"),
    ],
)
def test_an_argument_that_does_not_exist(name: str, meant: str) -> None:
    """What it is called here, for whoever comes from elsewhere."""
    given: dict[str, Any] = {name: []}
    wanted = rf"no argument '{name}'\. Did you mean {meant}\? Arguments are: approve,"
    with pytest.raises(TypeError, match=wanted):
        Session(**given)
    with pytest.raises(TypeError, match=wanted):
        Session.open("x", journal="x.db", **given)


def test_a_session_shows_its_arguments() -> None:
    """As `help(Session)` and an editor read them."""
    assert "plugins" in inspect.signature(Session).parameters


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: Budget(**cast("Any", {"max_calls": 3})),
            r"Budget: there is no argument 'max_calls'\. Did you mean model_calls\? "
            "Arguments are: model_calls, ",
        ),
        (lambda: Rule(**cast("Any", {"action": "deny"})), "Rule: .*'action'.*verdict"),
        (lambda: Rule(**cast("Any", {})), "Rule: Missing required argument 'verdict'"),
        (lambda: Options(**cast("Any", {"stict": True})), r"Options: .*mean strict\?"),
        (lambda: Policy(**cast("Any", {"rule": []})), r"Policy: .*mean rules\?"),
        (lambda: Budget(*cast("Any", [3])), r"Budget: .*Budget\(model_calls=\.\.\.\)"),
        (lambda: Session(*cast("Any", ["local:", []])), r"such as plugins=\[\.\.\.\]"),
    ],
)
def test_a_name_that_is_none_is_told_with_the_nearest(
    make: Callable[[], Any], told: str
) -> None:
    """Whose it is, and which there are."""
    with pytest.raises(TypeError, match=told):
        make()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"budget": Budget(seconds=-3)}, r"budget\.seconds: .*0 or above, got -3"),
        ({"prompt_tokens": "4k"}, r"prompt_tokens: .*whole number above 0, or None"),
        ({"prompt_tokens": 0}, "prompt_tokens: expected a whole number above 0"),
        ({"approval_seconds": "a week"}, r"approval_seconds: expected a number"),
        ({"strict": "no"}, r"options\.strict: expected True or False, got 'no'"),
    ],
)
def test_a_value_out_of_range_is_told(given: dict[str, Any], told: str) -> None:
    """With the range, and before the first run."""
    if "budget" not in given:
        given = {"options": Options(**given)}
    with pytest.raises(ConfigError, match=told):
        Session(ScriptedModel([]), **given)


def test_an_async_watch_is_refused() -> None:
    """Nobody would await what it returns."""

    async def watch(event: object) -> None:
        pass

    class Watcher:
        async def __call__(self, event: object) -> None: ...

    for given in (watch, Watcher()):
        with (
            Session(ScriptedModel(["x"]), plugins=[one]) as session,
            pytest.raises(ConfigError, match="watch: expected a plain `def`"),
        ):
            session.run_sync("q", watch=cast("Any", given))


def test_a_yes_or_no_that_is_none_is_refused() -> None:
    """Any text counts as True."""
    with Session(ScriptedModel([]), plugins=[one]) as session:
        with pytest.raises(ConfigError, match="happened: expected True or False"):
            session.settle("a1", cast("Any", "no"))
        with pytest.raises(ConfigError, match="changed_since: expected True or False"):
            session.undo(changed_since=cast("Any", "no"))


def test_a_workspace_that_cannot_be_made_names_the_argument(tmp_path: Path) -> None:
    """The program's, and the command line's."""
    (tmp_path / "file").touch()
    session = Session(ScriptedModel(["Hi."]), workspace=tmp_path / "file" / "w")
    with session, pytest.raises(ConfigError, match=r"workspace= \(--workspace\)"):
        session.run_sync("Hello")
