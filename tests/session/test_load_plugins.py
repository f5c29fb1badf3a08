"""Plugins as they are named: what a model could have written is not loaded."""

from __future__ import annotations

import asyncio
import traceback
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Call, Session, agent, command, run_many
from neuraxis.cli.plugin_sources import load_all
from neuraxis.errors import ConfigError, StorageError
from neuraxis.journal import open_journal
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.loader import load_plugin
from neuraxis.policy.secrets import Secrets
from neuraxis.session.load_plugins import build_registry
from neuraxis.settings import Settings
from neuraxis.testing import call, check_plugin


@pytest.mark.parametrize("name", ["~nobody-of-that-name/x", "x" * 5000, "a\0b"])
def test_a_name_that_is_no_path(name: str, tmp_path: Path) -> None:
    """It is told like any other name of nothing, and not as an error of the system."""
    with pytest.raises(ConfigError, match="a known plugin"):
        build_registry([name], tmp_path / "workspace", None)


def test_a_link_into_the_workspace(tmp_path: Path) -> None:
    """Where a plugin really lies counts, not where it is reached."""
    workspace = tmp_path / "workspace"
    (workspace / "mine").mkdir(parents=True)
    link = tmp_path / "plugins"
    link.symlink_to(workspace)
    for source in (link / "mine", str(link / "mine"), workspace):
        with pytest.raises(ConfigError, match="lies in the workspace"):
            build_registry([source], workspace, None)


def test_a_workspace_that_is_a_file(tmp_path: Path) -> None:
    """Told at once, and not by the first command that writes."""
    file = tmp_path / "notes.txt"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"workspace: .*: expected a folder"):
        build_registry([], file, None)


class Held:
    """Holds something, as a connection."""

    closed: list[str] = []  # noqa: RUF012 - shared by the objects of one test

    def __init__(self, name: str = "first") -> None:
        self.name = name

    @command(effects="read")
    def look(self) -> str:
        """Look."""
        return self.name

    def close(self) -> None:
        self.closed.append(self.name)
        if self.name == "bad":
            raise ValueError("own")


class Bad(Held):
    def __init__(self) -> None:
        super().__init__("bad")


class Commanded(Held):
    @command(effects="once")
    def close(self) -> None:
        """Close the shop."""
        self.closed.append("by nobody")


class Pool(Held):
    """Holds what only its own loop can close."""

    loop: Any = None

    @command(effects="read")
    async def look(self) -> str:
        """Look."""
        Pool.loop = asyncio.get_running_loop()
        return self.name

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        if Pool.loop is not None:
            assert Pool.loop is asyncio.get_running_loop()
        self.closed.append("pool")


def _session(*plugins: object) -> Session:
    return Session(ScriptedModel([]), plugins=plugins)


def test_what_a_session_made_it_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; what was handed over belongs to the program."""
    monkeypatch.setattr(Held, "closed", closed := [])
    session = _session(Held)
    assert closed == []
    session.close()
    session.close()
    assert closed == ["first"]
    ready = load_plugin(Held)
    for given in (Held("mine"), Commanded, ready):
        _session(given).close()
    assert closed == ["first"]


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(Pool, "loop", None)
    monkeypatch.setattr(Held, "closed", closed := [])
    return closed


def _looking(*plugins: Any) -> Session:
    model = ScriptedModel(['[{"tool": "look"}]', "ok"])
    return Session(model, plugins=plugins, settings=Settings())


def test_an_async_close_is_awaited_behind_run_sync(closed: list[str]) -> None:
    """In the loop that `run_sync` has."""
    with _looking(Pool) as session:
        session.run_sync("look")
    assert (closed, Pool.loop is None) == (["pool"], False)


async def test_an_async_close_is_awaited_in_async_code(closed: list[str]) -> None:
    """With `async with`, or `aclose`; a plain `with` could not, and says so."""
    async with _looking(Pool) as session:
        await session.run("look")
    assert closed == ["pool"]
    session = _looking(Pool, Bad)
    with pytest.raises(ConfigError, match=r"async with Session\(\.\.\.\)"), session:
        pass
    with pytest.raises(ConfigError, match=r"await session\.aclose"):
        session.close()
    with pytest.raises(ValueError, match="own"):
        await session.aclose()
    assert sorted(closed) == ["bad", "pool", "pool"]


def test_an_async_close_waits_for_the_request(closed: list[str]) -> None:
    """Both where a thread answers it, and where a loop does."""

    def answered(session: Session) -> None:
        session.run_sync("look", lambda event: session.close())

    answered(_looking(Pool))
    assert closed == ["pool"]

    async def watched() -> None:
        session = _looking(Pool)
        async for _ in (run := session.run("look")):
            await session.aclose()
        assert (await run).outcome == "answered"
        await asyncio.sleep(0.01)

    asyncio.run(watched())
    assert closed == ["pool"] * 2


def test_a_plugin_that_is_not_needed_after_all_leaves_nothing_open(
    closed: list[str], recwarn: pytest.WarningsRecorder
) -> None:
    """Where another one cannot be loaded."""
    with pytest.raises(ConfigError, match="no_such"):
        _session(Pool, "no_such")
    assert [str(item.message) for item in recwarn] == []


@pytest.mark.parametrize("way", ["call", "batch", "agent"])
def test_what_makes_a_session_closes_it_in_its_loop(
    way: str, closed: list[str]
) -> None:
    """Without a word of the program's."""
    if way == "call":
        assert call(Pool, "look").value == "first"
    elif way == "agent":
        inner = ScriptedModel(['[{"tool": "look"}]', "seen"])
        helper = agent("helper", "Helps.", model=inner, plugins=[Pool])
        result = call(helper, "helper", {"request": "look"})
        assert result.value == "seen"
    else:

        async def rows() -> None:
            async for item in run_many(lambda row: _looking(Pool), ["look"]):
                assert not item.answer.error

        asyncio.run(rows())
    assert closed == ["pool"]


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_closed_session_is_not_used_any_more(on_disk: bool, tmp_path: Path) -> None:
    """Its plugins are closed; it says what to do instead."""
    journal = open_journal(tmp_path / "j.db") if on_disk else None
    model = ScriptedModel(["ok"] * 9)
    with Session(model, id="s", journal=journal, settings=Settings()) as session:
        session.run_sync("hello")
    calls = [Call(id="b1", plugin=None, command="look")]
    for use in (
        lambda: session.run_sync("x"),
        lambda: session.attach("x"),
        lambda: asyncio.run(session.call_all(calls)),
        lambda: asyncio.run(_run(session)),
    ):
        with pytest.raises(StorageError, match=r"session s was closed; make another"):
            use()
    if journal is not None:
        journal.close()


async def _run(session: Session) -> Any:
    return await session.run("x")


def test_a_class_of_a_folder_is_closed(tmp_path: Path) -> None:
    """As one that is handed over."""
    folder = tmp_path / "held"
    folder.mkdir()
    (folder / "config.yaml").write_text(
        "name: held\ninfo: {title: Held, description: Holds.}\ncommands:\n"
        "  - {command_name: look, description: Look., effects: read}\n"
    )
    (folder / "plugin.py").write_text(
        "import pathlib\nclass Plugin:\n    def look(self):\n        return 1\n"
        f"    def close(self):\n        pathlib.Path({str(tmp_path / 'closed')!r})"
        ".touch()\n"
    )
    with _session(folder):
        assert not (tmp_path / "closed").exists()
    assert (tmp_path / "closed").exists()


def test_one_that_cannot_be_closed_holds_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error comes out; the others and the journal are closed."""
    monkeypatch.setattr(Held, "closed", closed := [])
    given = {"id": "s1", "journal": tmp_path / "j.db", "plugins": [Bad, Held]}
    session = Session(ScriptedModel([]), **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="own"):
        session.close()
    assert closed == ["bad", "first"]
    with pytest.raises(ConfigError, match="no_such"):
        _session(Bad, Held, "no_such")
    assert closed == ["bad", "first"] * 2


_NEEDS_KEY = """
class Plugin:
    def __init__(self, config):
        self.config = config
        if config["url"] == "wrong":
            raise ValueError("no such key: " + config["token"])
        if config["url"] == "behind":
            raise ValueError("no server\\nfor the key " + config["token"])
        if config["url"] == "chained":
            try:
                raise KeyError(config["token"])
            except KeyError as error:
                raise ValueError("no server") from error

    def ask(self, *_):
        return str(len(self.config["token"]))

    def close(self):
        print("closed")
"""


def _needs_key(folder: Path, url: str = "right") -> str:
    made = folder / "crm"
    made.mkdir()
    (made / "plugin.py").write_text(_NEEDS_KEY, encoding="utf-8")
    text = (
        "name: crm\ninfo: {title: crm}\nconfig:\n"
        f"  token: secret://CRM_TOKEN\n  url: {url}\n"
        "commands:\n  - command_name: ask\n    effects: read\n"
        "    parameter: {type: object}\n    response: {type: string}\n"
    )
    (made / "config.yaml").write_text(text, encoding="utf-8")
    return str(made)


def test_a_constructor_is_given_its_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the plugin's own code; a missing one is told with its variable."""
    source = _needs_key(tmp_path)
    with pytest.raises(ConfigError, match="NEURAXIS_SECRET_CRM_TOKEN"):
        Session(ScriptedModel([]), plugins=[source])
    monkeypatch.setenv("NEURAXIS_SECRET_CRM_TOKEN", "hunter2-hunter2")
    result = call(source, "ask")
    assert result.value == "15"
    assert "hunter2" not in str(load_plugin(source).spec)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("wrong", "no such key: secret://CRM_TOKEN"),
        ("behind", "ValueError: no server"),
        ("chained", "ValueError: no server"),
    ],
)
def test_the_error_of_a_constructor_holds_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, words: str
) -> None:
    """Nor does its cause, which a traceback would show."""
    monkeypatch.setenv("NEURAXIS_SECRET_CRM_TOKEN", "hunter2-hunter2")
    with pytest.raises(ConfigError, match=words) as told:
        Session(ScriptedModel([]), plugins=[_needs_key(tmp_path, url)])
    assert "hunter2" not in "".join(traceback.format_exception(told.value))


def test_no_secret_is_read_that_no_constructor_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a command may need it; until then no result is searched for it."""
    folder = Path(_needs_key(tmp_path))
    codes = (
        "def ask(*_): return 'ok'",
        "class Plugin:\n    def ask(self, *_): return 'ok'",
        "class Old:\n    def command(self, *_): return 'ok'",
    )
    for code in codes:
        (folder / "plugin.py").write_text(code, encoding="utf-8")
        assert call(str(folder), "ask").value == "ok"
        secrets = Secrets(environ={"NEURAXIS_SECRET_CRM_TOKEN": "hunter2-hunter2"})
        load_plugin(folder, secrets=secrets)
        assert not secrets.active


def test_what_only_looks_closes_the_plugin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And needs no secret."""
    source = _needs_key(tmp_path)
    load_all([source])
    assert capsys.readouterr().err == "closed\n"
    check_plugin(source)
    assert capsys.readouterr().out == "closed\n"
