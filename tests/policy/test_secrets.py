"""Secrets by name: who gets the value, and who never does (rule D7)."""

import base64
import html
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest

from neuraxis import CommandError, Context, Session, command
from neuraxis.events import Event, to_json
from neuraxis.journal import open_journal
from neuraxis.messages import Call
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.policy.secrets import NoSecret, Secrets
from neuraxis.settings import load

VALUE = 'p/ss "wörd" +1'
GOT: list[str] = []


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    GOT.clear()
    monkeypatch.setenv("NEURAXIS_SECRET_TOKEN", VALUE)


def forms() -> dict[str, str]:
    raw = VALUE.encode()
    return {
        "plain": VALUE,
        "url": quote(VALUE, safe=""),
        "b64": base64.b64encode(raw).decode(),
        "inside": base64.b64encode(b"user:" + raw + b"!").decode(),
        "inside2": base64.b64encode(b"us:" + raw).decode(),
        "json": json.dumps(VALUE),
        "hex": raw.hex(),
    }


@command(effects="read", secret_ok=["token"])
def login(token: str, name: str = "") -> dict[str, Any]:
    """Logs in and is careless with what it was given."""
    GOT.extend((token, name))
    return {"echo": forms(), "list": [f"token={token}"], token: 1}


@command(effects="read", secret_ok=["token"])
def fails(token: str) -> str:
    """Fails, and says too much."""
    raise CommandError(f"401 for {token}")


@command(effects="read", secret_ok=["token"])
def breaks(token: str) -> str:
    """Raises, and says too much."""
    raise ValueError(f"bad {quote(token, safe='')}")


def talk(
    tmp_path: Path, *calls: dict[str, Any], plugins: Any = None
) -> tuple[str, Any]:
    """Everything that anybody but the command could see, as one text."""
    events: list[Event] = []
    model = ScriptedModel([json.dumps(list(calls)), "done"])
    with Session(
        model=model,
        plugins=plugins or [login, fails, breaks],
        workspace=tmp_path / "w",
        journal=tmp_path / "j.db",
    ) as session:
        answer = session.run_sync("go", events.append)
    journal = open_journal(tmp_path / "j.db")
    stored = [repr(entry.event) for entry in journal.read(session.id)]
    journal.close()
    prompts = [message.content for p in model.prompts for message in p.messages]
    seen = [json.dumps(to_json(event), default=str) for event in events]
    return "\n".join([*stored, *prompts, *seen, repr(answer.calls)]), answer


def leaks(text: str) -> list[str]:
    named = {**forms(), "repr": repr(VALUE)[1:-1], "inside": "", "inside2": ""}
    return [name for name, form in named.items() if form and form in text]


@pytest.mark.parametrize("tool", ["login", "fails", "breaks"])
def test_only_the_command_sees_the_value(
    tmp_path: Path, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Journal, events, prompts, results, errors, logs: in no form the value."""
    seen, answer = talk(tmp_path, {"tool": tool, "token": "secret://TOKEN"})
    assert [] == leaks(seen + caplog.text)
    assert bool(caplog.text) is (tool == "breaks")
    assert "secret://TOKEN" in seen
    if tool == "login":
        assert VALUE == GOT[0]
        echo = answer.calls[0].value["echo"]
        assert {"plain", "url", "b64", "hex"} == {
            name for name, text in echo.items() if text == "secret://TOKEN"
        }
        body = base64.b64encode(VALUE.encode())[4:-4].decode()
        assert body not in json.dumps(echo)


def test_a_secret_is_a_name_where_it_is_not_allowed(tmp_path: Path) -> None:
    """Another parameter, or a text around it: what was written stays a text."""
    talk(tmp_path, {"tool": "login", "token": "x", "name": "secret://TOKEN"})
    assert ["x", "secret://TOKEN"] == GOT
    GOT.clear()
    talk(tmp_path, {"tool": "login", "token": "Bearer secret://TOKEN"})
    assert "Bearer secret://TOKEN" == GOT[0]


def test_a_result_cannot_name_a_secret(tmp_path: Path) -> None:
    """What a reference leads to is data: it is not resolved again (rule B47)."""

    @command(effects="read")
    def page() -> str:
        """A page that knows our scheme."""
        return "secret://TOKEN"

    talk(
        tmp_path,
        {"tool": "page"},
        {"tool": "login", "token": "{{ previous_result }}"},
        plugins=[page, login],
    )
    assert ["secret://TOKEN"] == GOT[:1]


def test_an_unknown_secret_says_how_to_set_it(tmp_path: Path) -> None:
    """The error names the variable and the file."""
    _, answer = talk(tmp_path, {"tool": "login", "token": "secret://NOPE"})
    assert "NEURAXIS_SECRET_NOPE" in answer.calls[0].error.message
    assert [] == GOT


def test_a_plugins_settings_may_name_secrets(tmp_path: Path) -> None:
    """The config of a context has the value; the spec keeps the name."""

    class Api:
        """An API."""

        @command(effects="read")
        def ask(self, context: Context) -> str:
            """Asks."""
            GOT.append(str(context.config["key"]))
            return f"used {context.config['key']}"

    plugin = plugin_from(Api, config={"key": "secret://TOKEN"})
    seen, _ = talk(tmp_path, {"tool": "ask"}, plugins=[plugin])
    assert [VALUE] == GOT
    assert [] == leaks(seen)
    assert {"key": "secret://TOKEN"} == plugin.spec.config


def test_secrets_in_files_must_be_private(tmp_path: Path) -> None:
    """Mode 600 in the user's folder; a link or a file that others read is refused."""
    environ: Mapping[str, str] = {}
    secrets = Secrets(folder=tmp_path, environ=environ)
    file = tmp_path / "KEY"
    file.write_text("long enough\n", encoding="utf-8")
    file.chmod(0o644)
    with pytest.raises(NoSecret, match="chmod 600"):
        secrets.value("KEY")
    file.chmod(0o600)
    assert "long enough" == secrets.value("KEY")
    (tmp_path / "LINK").symlink_to(file)
    with pytest.raises(NoSecret, match="there is no secret LINK"):
        secrets.value("LINK")
    assert "long enough" not in repr(secrets)


def test_short_secrets_are_refused() -> None:
    """They could not be taken out of a text."""
    with pytest.raises(NoSecret, match="shorter"):
        Secrets(environ={"NEURAXIS_SECRET_A": "abc"}).value("A")


def test_a_secret_is_no_setting() -> None:
    """`doctor` shows all settings."""
    settings = load(None, {"NEURAXIS_SECRET_TOKEN": VALUE, "HOME": "/nowhere"})
    assert VALUE not in repr(settings)


LINES = 'first line\n"second" \\ é\nthird line'


@dataclass
class Holds:
    """An answer of a class of its own."""

    inner: str


ANSWERS: list[Callable[[str], Any]] = [
    lambda token: (part for part in [token]),
    Holds,
    lambda token: [Holds(token)],
    lambda token: Path("/x") / token,
    lambda token: json.dumps({"key": token}),
    lambda token: json.dumps({"key": token}, ensure_ascii=False),
    lambda token: {"bytes": token.encode().hex().upper()},
    lambda token: token.encode(),
]


@pytest.mark.parametrize("answer", ANSWERS)
async def test_no_answer_that_is_said_holds_it(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], Any]
) -> None:
    """A key of several lines; streams and objects are told as JSON, and scrubbed."""
    monkeypatch.setenv("NEURAXIS_SECRET_TOKEN", LINES)

    @command(name="gives", effects="read", secret_ok=["token"])
    def gives(token: str) -> Any:
        """Gives it back."""
        return answer(token)

    with Session(model=ScriptedModel([]), plugins=[gives]) as session:
        result = await session.call(CALL)
        if result.stored:
            kept = session.assets.root("a1")["content"]["response"]
            assert b"secret://TOKEN" == kept
        else:
            assert "secret://TOKEN" in str(result.value)


CALL = Call(
    id="a1", plugin=None, command="gives", arguments={"token": "secret://TOKEN"}
)


@pytest.mark.parametrize("before", ["bad ", "x" * 490])
async def test_an_error_is_scrubbed_before_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Its first line, or its first 500 characters, may end within the secret."""
    monkeypatch.setenv("NEURAXIS_SECRET_TOKEN", LINES)

    @command(name="gives", effects="read", secret_ok=["token"])
    def gives(token: str) -> str:
        """Says too much."""
        raise ValueError(before + token)

    with Session(model=ScriptedModel([]), plugins=[gives]) as session:
        result = await session.call(CALL)
    assert result.error is not None
    assert "first" not in result.error.message


def test_a_secret_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """In words; a pipe in its place is not waited for."""
    file = tmp_path / "KEY"
    file.write_bytes(b"\xff\xfe long enough")
    file.chmod(0o600)
    with pytest.raises(NoSecret, match="not UTF-8 text"):
        Secrets(folder=tmp_path, environ={}).value("KEY")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "PIPE", 0o600)
        with pytest.raises(NoSecret):
            Secrets(folder=tmp_path, environ={}).value("PIPE")


@pytest.mark.parametrize(
    "form",
    [
        html.escape(VALUE),
        html.escape(VALUE, quote=False),
        VALUE.replace('"', "&#34;").replace("ö", "&#246;"),
        VALUE.replace('"', "&quot;").replace("ö", "&#xF6;"),
        "".join(f"&#{ord(sign)};" for sign in VALUE),
        quote(VALUE, safe="").lower(),
        quote_plus(VALUE).lower(),
        json.dumps(VALUE).replace("/", "\\/"),
        json.dumps(VALUE, ensure_ascii=False).replace("/", "\\/"),
        base64.urlsafe_b64encode(VALUE.encode()).decode(),
    ],
)
def test_l_secrets_are_scrubbed_as_programs_write_them(form: str) -> None:
    """L: in HTML, with percent signs in both cases, and with a slash escaped."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_TOKEN": VALUE})
    secrets.value("TOKEN")
    shown = secrets.scrub(f"a {form} b")
    assert form not in shown
    assert "secret://TOKEN" in shown
    assert VALUE.partition(" ")[2] not in html.unescape(unquote(shown))


def _net(value: str) -> str:
    """As .NET escapes JSON: in capitals, and more signs than it must."""
    return "".join(c if c.isalnum() else f"\\u{ord(c):04X}" for c in value)


def _in_lines(value: str) -> str:
    return base64.encodebytes(b"user:" + value.encode() * 4).decode()


WRITERS: list[Callable[[str], str]] = [
    lambda value: json.dumps(value).replace("<", "\\u003c").replace("&", "\\u0026"),
    lambda value: json.dumps(value).replace("\\u00fc", "\\u00FC"),
    lambda value: json.dumps(json.dumps({"k": value})),
    lambda value: quote(json.dumps(value)),
    lambda value: html.escape(json.dumps(value, ensure_ascii=False)),
    lambda value: html.escape(value).replace("/", "&#x2F;").replace("+", "&plus;"),
    lambda value: "".join(f"&#{ord(c):05};" for c in value),
    lambda value: quote_plus(quote_plus(value)),
    lambda value: "".join(f"\\x{byte:02X}" for byte in value.encode()),
    lambda value: repr(value.encode()),
    _in_lines,
    lambda value: json.dumps(_in_lines(value).replace("\n", "\r\n ")),
]


@pytest.mark.parametrize("write", [*WRITERS, _net])
@pytest.mark.parametrize(
    "value",
    [
        "wJalrXUt/K7MD+bPx<YEX&AMPLE'KEY",
        'kes"trel-481516',
        "schl\u00fcssel-481516",
        "C:\\new\\table\\",
        "a&lt;b%41c\\u0041d%",
        "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----",
        "-----BEGIN KEY-----\nMIIEpAIBA\n+AKCAQEA\n b-----END KEY-----",
    ],
)
def test_a_secret_is_scrubbed_in_all_spellings(
    value: str, write: Callable[[str], str]
) -> None:
    """Listed spellings missed those of Go, .NET, of JSON in JSON, base64 in lines."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_KEY": value})
    secrets.value("KEY")
    written = write(value)
    shown = secrets.scrub(f"is {written} is")
    assert "secret://KEY" in shown
    assert len(shown.replace("secret://KEY", "")) < 45
    assert shown.startswith("is ")
    assert shown.endswith(" is")


def test_scrubbing_leaves_the_rest_of_a_text() -> None:
    """Escapes beside a secret stay as they were; other characters fit as well."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_KEY": "key-\U0001f511-481516"})
    secrets.value("KEY")
    text = json.dumps(["a\n\u00fc%41 b+c", "key-\U0001f511-481516", "&lt;\r\n  d"])
    assert secrets.scrub(text) == text.replace(
        "key-\\ud83d\\udd11-481516", "secret://KEY"
    )


def test_l_a_secret_of_digits_is_scrubbed_as_a_number() -> None:
    """L: a command that reads it as a number may answer it as one."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_PIN": "48159263"})
    secrets.value("PIN")
    shown = secrets.scrub({"pin": 48159263, "as": [48159263.0], "other": 4815})
    assert shown == {"pin": "secret://PIN", "as": ["secret://PIN"], "other": 4815}
    assert secrets.scrub(True) is True


@pytest.mark.parametrize("of", [-1, -1.0, 1.0])
@pytest.mark.parametrize("more", [0, 0.5, 0.25])
@pytest.mark.parametrize("value", ["4815162342", "-4815162342", "+4815162342"])
def test_l_a_secret_number_is_scrubbed_with_sign_and_fraction(
    value: str, of: float, more: float
) -> None:
    """L: a price or a negative number of it tells the same digits."""
    secrets = Secrets(environ={"NEURAXIS_SECRET_PIN": value})
    secrets.value("PIN")
    assert secrets.scrub(of * (4815162342 + more)) == "secret://PIN"
    assert secrets.scrub([481516234, 48151623420, 0.5]) == [481516234, 48151623420, 0.5]
    inf = float("inf")
    assert secrets.scrub([inf, -inf]) == [inf, -inf]
