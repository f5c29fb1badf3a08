"""`neuraxis run` and what looks at runs: exit codes, files that cannot be, `-`."""

from __future__ import annotations

import json
import re
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from neuraxis import Policy, Session, command
from neuraxis.cli.main import cli
from neuraxis.dialects import DIALECTS
from neuraxis.errors import ConfigError, ModelUnavailable, StorageError
from neuraxis.events import MessageSent, ModelStarted
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel

LISTED = [{"tool": "list_files"}]
UNKNOWN = [{"tool": "list_fils"}]
WRONG = [{"tool": "file_reader", "path": 1}]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def neuraxis(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin, standalone_mode=False)


def run(*arguments: str, replies: list[object], stdin: str = "") -> Result:
    written = [item if isinstance(item, str) else json.dumps(item) for item in replies]
    Path("m.yaml").write_text(json.dumps(written), encoding="utf-8")
    given = ("-m", "scripted:m.yaml", "--journal", "j.db", *arguments)
    return neuraxis("run", *given, stdin=stdin)


@pytest.mark.parametrize("way", ["--quiet", "--json", "--no-early-start"])
@pytest.mark.parametrize(
    ("replies", "code"),
    [
        ([UNKNOWN, "I cannot."], 1),
        ([WRONG, "I cannot."], 1),
        ([LISTED, UNKNOWN, "I cannot."], 1),
        ([UNKNOWN, LISTED, "There."], 0),
        # nobody knows whether it was a call; it was said again
        (['<!-- RESPONSE_START -->[{"tool",]<!-- RESPONSE_END -->', "There."], 0),
        ([UNKNOWN, "<!-- RESPONSE_START -->[{,]<!-- RESPONSE_END -->", "No."], 1),
    ],
)
def test_a_last_call_that_was_refused_is_a_failure(
    here: Path, replies: list[object], code: int, way: str
) -> None:
    """As one that ran and failed: nothing of what the model wanted was done."""
    done = run(way, "go", replies=replies)
    assert (done.return_value, done.exception) == (code, None), done.output


def test_a_plan_that_cannot_be_kept_is_told_before_the_run(here: Path) -> None:
    """Afterwards the calls were made, and their plan is lost."""
    wish = ("--save-plan", "nowhere/p.yaml", "go")
    done = run(*wish, replies=[LISTED, "There."])
    assert isinstance(done.exception, StorageError)
    assert "there is no folder nowhere" in str(done.exception)
    assert not Path("j.db").exists()


def test_a_request_that_is_a_dash_is_standard_input(here: Path) -> None:
    done = run("-", replies=["There."], stdin="from a pipe")
    assert done.return_value == 0
    listed = neuraxis("sessions", "list", "--journal", "j.db", "--json")
    assert json.loads(listed.stdout)[0]["title"] == "from a pipe"


def test_who_only_looks_makes_no_journal(here: Path) -> None:
    """A misspelt name of a file is told, and is not there afterwards."""
    for words in (("list",), ("show", "abc")):
        done = neuraxis("sessions", *words, "--journal", "j.bd")
        assert isinstance(done.exception, ConfigError)
        assert "--journal j.bd: cannot be read: there is no such file" in str(
            done.exception
        )
    done = neuraxis("run", "-c", "--journal", "j.bd", "go")
    assert "holds no session to continue" in str(done.exception)
    assert not Path("j.bd").exists()


def test_sessions_of_a_new_user_are_none(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURAXIS_JOURNAL", str(here / "none.db"))
    done = neuraxis("sessions", "list")
    assert (done.return_value, done.stdout) == (0, "")
    assert "there are no sessions yet" in done.stderr
    assert not (here / "none.db").exists()


def test_a_journal_in_the_home_folder_is_there(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a settings file no shell has read the `~`."""
    monkeypatch.setenv("HOME", str(here))
    Path("m.yaml").write_text('["There."]', encoding="utf-8")
    Path("neuraxis.toml").write_text('journal = "~/own.db"\n', encoding="utf-8")
    assert neuraxis("run", "-m", "scripted:m.yaml", "go").return_value == 0
    assert (here / "own.db").is_file()
    assert not Path("~").exists()


def test_a_plugin_of_the_settings_is_shown(here: Path) -> None:
    """By its name, as `plugins list` lists it."""
    assert neuraxis("plugins", "new", "my-own").return_value == 0
    Path("neuraxis.toml").write_text('plugins = ["my-own"]\n', encoding="utf-8")
    done = neuraxis("plugins", "show", "my_own")
    assert (done.return_value, done.stdout.startswith("name: my_own")) == (0, True)
    # the folder is what can be checked
    begun = Path("my-own/config.yaml").read_text(encoding="utf-8")
    assert "neuraxis plugins check my-own\n" in begun


def test_a_description_that_is_cut_shows_it(here: Path) -> None:
    rows = json.loads(neuraxis("plugins", "list", "--json").stdout)
    long = [row for row in rows if len(row["description"]) > 100]
    assert 0 < len(long) < len(rows)
    assert neuraxis("plugins", "list").stdout.count("… (") == len(long)


def test_a_session_goes_on_by_the_beginning_of_its_id(here: Path) -> None:
    """As `sessions show` takes it; never another one than was meant."""
    assert run("one", replies=["There."]).return_value == 0
    listed = neuraxis("sessions", "list", "--journal", "j.db", "--json")
    (info,) = json.loads(listed.stdout)
    for given in (info["session"][:8], info["session"]):
        assert run("-s", given, "more", replies=["There."]).return_value == 0
    listed = neuraxis("sessions", "list", "--journal", "j.db", "--json")
    (after,) = json.loads(listed.stdout)
    assert after["events"] > info["events"]
    done = run("-s", "zz", "more", replies=["There."])
    assert "no session begins with 'zz'" in str(done.exception)
    assert run("two", replies=["There."]).return_value == 0
    done = run("-s", "", "more", replies=["There."])
    assert "several sessions begin with ''" in str(done.exception)


def test_a_model_that_does_not_answer_is_a_failure(here: Path) -> None:
    """One that cannot be asked at all has a code of its own, as in a run."""
    Path("m.yaml").write_text("[]", encoding="utf-8")
    done = neuraxis("models", "test", "scripted:m.yaml")
    assert (done.return_value, done.exception) == (1, None), done.output
    assert done.stderr.startswith("neuraxis: ")
    asked = neuraxis("models", "test", "openai:gpt-x")
    assert isinstance(asked.exception, ModelUnavailable)
    planner = neuraxis("models", "test", "local:")
    assert planner.return_value == 1
    assert "no language model" in planner.stderr
    assert "neuraxis models test local:smollm2" in planner.stderr


def test_a_lock_of_one_plugin_leaves_the_built_in_ones(here: Path) -> None:
    """They come with the package; -p names a plugin as in `call`."""
    assert neuraxis("plugins", "new", "own").return_value == 0
    done = neuraxis("plugins", "lock", "-p", "own")
    assert done.stdout == "neuraxis.lock.json: 1 plugin, new: own\n"
    called = neuraxis("call", "-p", "own", "greet", "--person", "Ada")
    assert (called.return_value, "Hello, Ada!" in called.stdout) == (0, True)
    assert neuraxis("call", "--help").return_value == 0


def test_a_folder_with_a_built_in_name_is_not_locked_by_the_way(here: Path) -> None:
    """Neither called nor accepted, until the user names it."""
    assert neuraxis("plugins", "new", "files").return_value == 0
    assert neuraxis("plugins", "lock").return_value == 0
    call = ("call", "--no-builtin", "-p", "files", "greet", "--person", "Ada")
    assert "is not in neuraxis.lock.json. To accept" in str(neuraxis(*call).exception)
    done = neuraxis("plugins", "lock", "files")
    assert done.return_value == 1
    assert "the name of a built-in plugin" in done.stderr
    assert "is not in neuraxis.lock.json. To accept" in str(neuraxis(*call).exception)
    assert neuraxis("plugins", "lock", "files", "--accept", "files").return_value == 0
    assert neuraxis(*call).return_value == 0


def test_a_change_is_accepted_by_a_line_that_can_be_typed(here: Path) -> None:
    """The lock says it."""
    assert neuraxis("plugins", "new", "own").return_value == 0
    assert neuraxis("plugins", "lock", "own").stderr == ""
    manifest = Path("own/config.yaml")
    text = manifest.read_text(encoding="utf-8")
    changed = text.replace("Make a greeting", "Greet")
    manifest.write_text(changed, encoding="utf-8")
    done = neuraxis("plugins", "lock", "own")
    assert done.return_value == 1
    assert "neuraxis plugins lock own --accept own" in done.stderr
    assert neuraxis("plugins", "lock", "own", "--accept", "own").return_value == 0
    assert neuraxis("plugins", "lock").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("-m", "scripted:no.yaml"), "no.yaml"),
        (("--output", "no.yaml"), "--output no.yaml"),
        (("--template", "no.yaml"), "--template no.yaml"),
        (("--instructions", "@no.yaml"), "instructions: no.yaml"),
    ],
)
def test_a_missing_file_is_told_in_one_form(
    here: Path, arguments: tuple[str, ...], place: str
) -> None:
    done = neuraxis("run", *arguments, "go")
    told = f"{place}: cannot be read: there is no such file"
    assert str(done.exception) == told, done.output


def test_undo_finds_the_last_run_that_changed_a_file(here: Path) -> None:
    """A later session that changed none, or wrote the same bytes, does not hide it."""
    write = [{"tool": "FILEWRITER", "file_path": "a.md", "contents": "x"}]
    run("hello", replies=["Hello."])
    nothing = neuraxis("undo", "--journal", "j.db")
    said = "nothing to undo: no run in the journal j.db changed a file\n"
    assert nothing.stderr == said
    run("write a.md", replies=[write, "Written."])
    own = json.loads(neuraxis("sessions", "list", "--journal", "j.db", "--json").stdout)
    run("hello", replies=["Hello."])
    run("write it again", replies=[write, "Written."])
    undone = neuraxis("undo", "--journal", "j.db")
    assert undone.stderr == f'undoing "write a.md" of session {own[0]["session"]}\n'
    assert undone.stdout == "removed: a.md\n"
    again = neuraxis("undo", "--journal", "j.db")
    said = "each run in the journal j.db that changed a file is undone"
    assert again.stderr == f"nothing to undo: {said}\n"


def test_undo_says_what_it_undoes_before_it_asks(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the lines that would be lost; what the run found is not lost."""
    monkeypatch.setattr("neuraxis.cli.approve.is_somebody_there", lambda: True)
    (here / "neuraxis-workspace").mkdir()
    file = here / "neuraxis-workspace" / "a.md"
    file.write_text("old\n", encoding="utf-8")
    write = [{"tool": "FILEWRITER", "file_path": "a.md", "contents": "new"}]
    yes = ("--yes-to", "files.*")
    run(*yes, "write a.md", replies=[write, "Written."])
    file.write_text("old\nmine\x1b[2J\n", encoding="utf-8")
    undone = neuraxis("undo", "--journal", "j.db", stdin="n\n")
    heading, *lost, asked = undone.stderr.splitlines()
    assert heading.startswith('undoing "write a.md" of session ')
    assert lost == ["    lines lost from a.md (1 of 2):", "    - mine"]
    assert asked.startswith("a.md was changed after the run. Undo it all the same? [")
    assert file.read_text("utf-8").startswith("old\nmine")
    undone = neuraxis("undo", "--journal", "j.db", stdin="")  # Ctrl-D is a no
    assert undone.stdout.startswith("kept, changed after the run")
    undone = neuraxis("undo", "--journal", "j.db", stdin="y\n")
    assert undone.stderr.count("undoing ") == 1
    assert file.read_text("utf-8") == "old\n"


def test_undo_leaves_a_folder_that_is_not_the_workspace_here(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removed a file elsewhere; now that takes the session's id."""
    write = [{"tool": "FILEWRITER", "file_path": "a.md", "contents": "x"}]
    run("write a.md", replies=[write, "Written."])
    (here / "other").mkdir()
    monkeypatch.chdir(here / "other")
    undone = neuraxis("undo", "--journal", "../j.db")
    there = here / "neuraxis-workspace"
    assert f"changed a file here; one changed {there}: neuraxis undo -s" in (
        undone.stderr
    )
    assert (there / "a.md").exists()
    own = undone.stderr.split()[-1]
    undone = neuraxis("undo", "--journal", "../j.db", "-s", own)
    assert undone.stderr.startswith(f"the files are in {there}\nundoing ")
    assert not (there / "a.md").exists()


def test_undo_goes_back_in_the_order_of_the_changes(here: Path) -> None:
    """Whichever session was used last: an undone run is written there, too."""

    def write(name: str, *options: str) -> None:
        call = [{"tool": "FILEWRITER", "file_path": name, "contents": "x"}]
        assert run(*options, f"write {name}", replies=[call, "Written."]).exit_code == 0

    write("a.md")
    own = json.loads(neuraxis("sessions", "list", "--journal", "j.db", "--json").stdout)
    write("b.md")
    write("c.md", "--session", own[0]["session"])
    undone = [neuraxis("undo", "--journal", "j.db").stdout for _ in range(3)]
    assert undone == [f"removed: {name}.md\n" for name in "cba"]


def test_attack16_a2_undo_brings_back_what_was_saved_during_the_run(here: Path) -> None:
    """A file that the run made and deleted, with a person's edit in between."""
    workspace = here / "neuraxis-workspace"
    workspace.mkdir()

    @command(effects="read")
    def person() -> str:
        """The person saves the file meanwhile."""
        (workspace / "a.md").write_text("mine", encoding="utf-8")
        return "ok"

    calls: list[dict[str, str]] = [
        {"tool": "FILEWRITER", "file_path": "a.md", "contents": "x"},
        {"tool": "person"},
        {"tool": "delete_file", "file_path": "a.md"},
    ]
    with Session(
        ScriptedModel([*(json.dumps([call]) for call in calls), "Done."]),
        plugins=["neuraxis:files", person],
        workspace=workspace,
        journal=here / "j.db",
        policy=Policy(yes_to=["files.delete_file"]),
    ) as session:
        session.run_sync("make a.md")
    assert not (workspace / "a.md").exists()
    undone = neuraxis("undo", "--journal", "j.db")
    told = "restored: a.md (as somebody left it during the run)\n"
    assert (undone.stdout, undone.return_value) == (told, 0)
    assert (workspace / "a.md").read_text("utf-8") == "mine"


def test_sessions_are_shown_with_local_times_and_short_fields(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is empty, a default or for programs only is left out."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        run("hello", replies=["Hello."])
        heading, row = neuraxis(
            "sessions", "list", "--journal", "j.db"
        ).stdout.splitlines()
        now = time.strftime("%Y-%m-%d %H:")
        shown = neuraxis("sessions", "show", row[:8], "--journal", "j.db").stdout
    finally:
        monkeypatch.undo()
        time.tzset()
    assert " ".join(heading.split()) == "session last used events state first request"
    assert now in row
    lines = shown.splitlines()
    assert lines[0].startswith(f"session {row.split()[0]}, begun {now}")
    assert lines[1].split()[2] == "session_started"
    assert "key=" not in shown
    assert "input_tokens" not in shown
    assert re.search(r"outcome=\"answered\"  text=\"Hello.\"  took=\d+ ms$", shown)


def test_options_that_would_do_nothing_are_told(here: Path) -> None:
    """What is misspelt is refused; a pattern may be for an agent's plugins."""
    done = run("--allow-host", "http://127.0.0.1/x", "go", replies=["There."])
    assert str(done.exception) == (
        "policy.allow_hosts (--allow-host): expected HOST or HOST:PORT, got "
        "'http://127.0.0.1/x'"
    )
    done = run("--yes-to", "files.write_fil", "go", replies=["There."])
    told = str(done.exception)
    assert told.startswith("--yes-to files.write_fil matches no command, so it would")
    assert "expected plugin.command: files.write_file" in told
    for pattern in ("delete_file", "file.delete_file"):
        done = run("--yes-to", pattern, "-q", "go", replies=["There."])
        assert done.stderr == (
            f"neuraxis: --yes-to {pattern}: it matches no command here. Did you mean "
            "files.delete_file?\n"
        )
    done = run("--yes-to", "crm.move", "go", replies=["There."])
    assert done.stderr.startswith(
        "neuraxis: --yes-to crm.move: it matches no command here."
    )
    assert done.return_value == 0
    done = run("--yes-to", "files.*", "-q", "go", replies=["There."])
    assert done.stderr == ""


def test_the_dialects_of_the_command_line_are_all_dialects() -> None:
    option = next(each for each in cli.commands["run"].params if each.name == "dialect")
    assert option.type.choices == DIALECTS


def listed() -> list[dict[str, str]]:
    done = neuraxis("sessions", "list", "--journal", "j.db", "--json")
    return json.loads(done.stdout)


def remove(*arguments: str, stdin: str = "") -> Result:
    return neuraxis("sessions", "delete", "--journal", "j.db", *arguments, stdin=stdin)


def test_a_session_is_deleted_by_its_id(here: Path) -> None:
    """Without a person, only with --yes; its objects go, too."""
    assert run("one", replies=["There."]).return_value == 0
    own = listed()[0]["session"]
    asked = remove(own[:8])
    assert "write --yes" in str(asked.exception)
    wrong = remove("--yes", f"x{own}")
    assert f"Did you mean {own}?" in str(wrong.exception)
    assert [row["session"] for row in listed()] == [own]
    done = remove("--yes", own[:8])
    assert (done.return_value, done.stdout) == (0, f"deleted: {own}\n")
    assert listed() == []


def test_the_earlier_names_of_session_commands_work(here: Path) -> None:
    """`ls` and `rm`, which the help and completion do not show."""
    assert run("one", replies=["There."]).return_value == 0
    journal = ("--journal", "j.db")
    shown = neuraxis("sessions", "ls", *journal).stdout
    assert shown == neuraxis("sessions", "list", *journal).stdout != ""
    own = listed()[0]["session"]
    assert neuraxis("sessions", "rm", "--yes", own, *journal).return_value == 0
    assert listed() == []
    told = neuraxis("sessions", "--help").stdout
    assert ("  list ", "  delete ") == tuple(
        name for name in ("  ls ", "  rm ", "  list ", "  delete ") if name in told
    )


def test_a_person_is_asked_before_a_session_is_deleted(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any answer but yes keeps it."""
    assert run("one", replies=["There."]).return_value == 0
    own = listed()[0]["session"]
    monkeypatch.setattr("neuraxis.cli.approve.is_somebody_there", lambda: True)
    kept = remove(own, stdin="n\n")
    assert "was not deleted" in str(kept.exception)
    assert "one) for good?" in kept.stderr
    assert len(listed()) == 1
    assert remove(own, stdin="y\n").return_value == 0
    assert listed() == []


@pytest.mark.parametrize("way", [("run", "-c", "two"), ("run", "-s", "", "two")])
def test_a_continued_session_keeps_its_model(here: Path, way: tuple[str, ...]) -> None:
    """Not the default of the settings; it is said, and -m names another."""
    Path("neuraxis.toml").write_text('model = "local:"', encoding="utf-8")
    assert run("one", replies=["There."]).return_value == 0
    own = listed()[0]["session"]
    done = neuraxis(way[0], "--journal", "j.db", *way[1:])
    assert (done.return_value, done.stdout) == (0, "There.\n"), done.output
    assert f"continuing session {own} with scripted:m.yaml\n" in done.stderr
    quiet = neuraxis(way[0], "-q", "--journal", "j.db", *way[1:])
    assert quiet.stderr == ""
    Path("n.yaml").write_text('["Other."]', encoding="utf-8")
    other = ("-m", "scripted:n.yaml", "--journal", "j.db")
    assert neuraxis(way[0], *other, *way[1:]).stdout == "Other.\n"
    assert neuraxis(way[0], "--journal", "j.db", *way[1:]).stdout == "Other.\n"


def test_a_continued_session_whose_model_is_gone_says_so(here: Path) -> None:
    """Nothing else is asked in its place."""
    assert run("one", replies=["There."]).return_value == 0
    Path("m.yaml").unlink()
    done = neuraxis("run", "--journal", "j.db", "-c", "two")
    assert isinstance(done.exception, ConfigError)
    assert "was run with the model 'scripted:m.yaml'" in str(done.exception)
    assert "name one with -m" in str(done.exception)


def test_sessions_list_shows_the_last_twenty(here: Path) -> None:
    """And how many more there are; --all and --json give all."""
    with closing(open_journal("j.db")) as journal:
        for number in range(23):
            said = MessageSent(sender="user", receiver="model", content="Hi")
            journal.append(f"s{number}", said)
    short = neuraxis("sessions", "list", "--journal", "j.db").stdout.splitlines()
    assert (len(short), short[-1]) == (22, "… and 3 more: --all")
    whole = neuraxis("sessions", "list", "--journal", "j.db", "--all").stdout
    assert len(whole.splitlines()) == 24
    assert len(listed()) == 23


def continued(model: str, *settings: str) -> Result:
    """`run -c` of a session that asked a model."""
    with closing(open_journal("j.db")) as journal:
        journal.append("s1", ModelStarted(turn=1, model=model))
    return neuraxis("run", "--journal", "j.db", "-c", *settings, "two")


def test_a_session_with_failover_is_not_continued_with_another_model(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of several models together are the name of none."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    done = continued("openai:gpt-5-mini, else anthropic:claude-x")
    assert isinstance(done.exception, ConfigError)
    assert "several models (openai:gpt-5-mini, else ant" in str(done.exception)
    assert "name one with -m" in str(done.exception)


def test_a_continued_session_is_told_to_name_its_server_again(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal holds the model's name only."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    told = "with openai:gpt-x; give --base-url again if it had one\n"
    assert told in continued("openai:gpt-x").stderr
    again = continued("openai:gpt-x", "--base-url", "http://127.0.0.1:9/v1")
    assert "with openai:gpt-x\n" in again.stderr


def test_each_built_in_kind_of_model_has_its_words(here: Path) -> None:
    """No kind that ships with Neuraxis is listed as from elsewhere."""
    assert "from an installed package" not in neuraxis("models", "list").stdout
