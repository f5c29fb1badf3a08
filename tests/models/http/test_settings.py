"""Where a server, its key and its options come from, and who may name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from neuraxis.errors import ConfigError, ModelUnavailable
from neuraxis.models import find_model
from neuraxis.models.http.settings import (
    DEFAULT_URL,
    Options,
    base_url,
    chat_url,
    is_loopback,
    named_endpoint,
    options_for,
    url_endpoint,
)
from neuraxis.settings import Settings, load, user_dir

KEY = "sk-0123456789"


def own(**values: Any) -> Settings:
    """Settings from the command line; two underscores are a dot."""
    flat = {name.replace("__", "."): value for name, value in values.items()}
    return Settings().override(flat, "command line")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        (" https://h/v1/ ", "https://h/v1"),
        ("https://h/api/v1/chat/completions", "https://h/api/v1"),
        ("https://h/v1?api-version=1", "https://h/v1?api-version=1"),
        ("http://[::1]:80/v1#m", "http://[::1]:80/v1"),
    ],
)
def test_base_urls(given: str, expected: str) -> None:
    """People write the address in many ways."""
    assert base_url(given, "test") == expected


def test_the_query_stays() -> None:
    """Azure names its version in the query."""
    assert chat_url("https://h/v1?a=b") == "https://h/v1/chat/completions?a=b"


@pytest.mark.parametrize("given", ["h/v1", "ftp://h", "http://", "http://[::1", "h:80"])
def test_what_is_no_url(given: str) -> None:
    """The setting is named."""
    with pytest.raises(ConfigError, match=r"^here: "):
        base_url(given, "here")


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("app.localhost", True),
        ("127.3.2.1", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("localhost.example.com", False),
        ("127.0.0.1.example.com", False),
    ],
)
def test_loopback(host: str, expected: bool) -> None:
    """Names that only look like this machine are not it."""
    assert is_loopback(host) == expected


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's own server and variable; the key is read when it is needed."""
    endpoint = named_endpoint("m", Settings())
    assert (endpoint.url, endpoint.key_env) == (DEFAULT_URL, "OPENAI_API_KEY")
    with pytest.raises(ModelUnavailable, match="OPENAI_API_KEY"):
        endpoint.key()
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert endpoint.key() == KEY


def test_the_order_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's own setting, then the general one, then the foreign variable."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env/v1")
    assert named_endpoint("m", Settings()).url == "http://env/v1"
    general = own(openai__base_url="http://general/v1")
    assert named_endpoint("m", general).url == "http://general/v1"
    both = general.override({"models.m.base_url": "http://own/v1"}, "command line")
    assert named_endpoint("m", both).url == "http://own/v1"
    assert named_endpoint("n", both).url == "http://general/v1"


def test_other_hosts_need_no_key() -> None:
    """Only OpenAI's own server is known to need one."""
    assert named_endpoint("m", own(openai__base_url="http://h/v1")).key() == ""


def test_a_key_with_a_line_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It could forge a header; the error does not show it."""
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\r\nx-evil: 1")
    with pytest.raises(ModelUnavailable) as caught:
        find_model("openai:m")
    assert KEY not in str(caught.value)


def test_the_key_is_nowhere_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the model's text form nor what it holds has the key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = find_model("openai:m")
    assert KEY not in repr(model) + repr(vars(model)) + model.name


def test_url_models_get_the_general_key_only_at_the_general_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that someone pastes cannot carry the key away."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert url_endpoint("https://elsewhere/v1", "m", Settings()).key() == ""
    assert url_endpoint("http://api.openai.com/v1", "m", Settings()).key_env == ""
    assert url_endpoint("https://api.openai.com/v1", "m", Settings()).key() == KEY
    assert url_endpoint("https://api.openai.com:443/v1", "m", Settings()).key() == KEY
    named = own(models__m__key_env="OPENAI_API_KEY")
    assert url_endpoint("https://elsewhere/v1", "m", named).key() == KEY


def workspace(tmp_path: Path, text: str) -> Settings:
    (tmp_path / "neuraxis.toml").write_text(text, encoding="utf-8")
    return load(tmp_path)


def test_a_workspace_cannot_send_the_key_away(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A checkout from anywhere may name a server, but it gets no key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = workspace(tmp_path, '[openai]\nbase_url = "https://evil.example/v1"\n')
    endpoint = named_endpoint("m", settings)
    assert (endpoint.url, endpoint.key()) == ("https://evil.example/v1", "")
    assert "a project's file" in endpoint.keyless_because
    assert url_endpoint("https://evil.example/v1", "m", settings).key() == ""


def test_a_workspace_cannot_name_a_variable(tmp_path: Path) -> None:
    """Or it could have any secret of the environment sent."""
    with pytest.raises(ConfigError, match="it says which key is sent"):
        workspace(tmp_path, '[openai]\nkey_env = "AWS_SECRET_ACCESS_KEY"\n')


def test_a_workspace_cannot_name_a_models_server_by_its_url(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The key that the user has for a model of that name stays here."""
    monkeypatch.setenv("MY_KEY", KEY)
    own = user_dir("config") / "neuraxis.toml"
    own.parent.mkdir(parents=True)
    own.write_text(
        '[models.m]\nkey_env = "MY_KEY"\nbase_url = "https://mine.example/v1"\n',
        encoding="utf-8",
    )
    settings = workspace(tmp_path, 'model = "https://evil.example/v1#m"\n')
    endpoint = url_endpoint("https://evil.example/v1", "m", settings)
    assert (endpoint.key_env, endpoint.key()) == ("", "")
    assert "a project's file" in endpoint.keyless_because
    mine = url_endpoint("https://mine.example/v1", "m", settings)
    assert mine.key() == KEY
    same = workspace(tmp_path, 'model = "https://mine.example/v1#m"\n')
    assert url_endpoint("https://mine.example/v1", "m", same).key() == KEY


def test_a_workspace_may_name_a_server_without_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor does a port of this machine get the key: anyone may listen there."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    settings = workspace(tmp_path, '[openai]\nbase_url = "http://localhost:1/v1"\n')
    endpoint = named_endpoint("m", settings)
    assert (endpoint.url, endpoint.key()) == ("http://localhost:1/v1", "")
    assert find_model("openai:m", settings).name == "openai:m"


def test_the_users_own_file_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may name a server and a key: the person whose settings they are."""
    monkeypatch.setenv("MINE", KEY)
    folder = user_dir("config")
    folder.mkdir(parents=True)
    (folder / "neuraxis.toml").write_text(
        '[openai]\nbase_url = "https://h/v1"\nkey_env = "MINE"\n', encoding="utf-8"
    )
    assert named_endpoint("m", load()).key() == KEY


def test_the_environment_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """NEURAXIS_OPENAI__BASE_URL and NEURAXIS_OPENAI__KEY_ENV are the person's too."""
    monkeypatch.setenv("MINE", KEY)
    monkeypatch.setenv("NEURAXIS_OPENAI__BASE_URL", "https://h/v1")
    monkeypatch.setenv("NEURAXIS_OPENAI__KEY_ENV", "MINE")
    assert named_endpoint("m", load()).key() == KEY


def test_options() -> None:
    """Numbers, also as texts; `extra.*` is a tree; others' are not read."""
    values = {
        "models.gpt-4.temperature": "0.5",
        "models.gpt-4.max_tokens": 100,
        "models.gpt-4.seed": "7",
        "models.gpt-4.extra.chat_template_kwargs.enable_thinking": False,
        "models.gpt-4.extra.top_k": 3,
        "models.gpt-4.base_url": "http://h",
        "models.gpt-4.1.temperature": 0.9,
    }
    settings = Settings().override(values, "test")
    assert options_for("gpt-4", settings) == Options(
        temperature=0.5,
        max_tokens=100,
        seed=7,
        extra={"chat_template_kwargs": {"enable_thinking": False}, "top_k": 3},
    )
    assert options_for("gpt-4.1", settings) == Options(temperature=0.9)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("temprature", 1, "Did you mean temperature"),
        ("temperature", "warm", "expected a number"),
        ("temperature", True, "expected a number"),
        ("stall_timeout", -1, "at least 0"),
        ("stall_timeout", "nan", "expected a number"),
        ("max_tokens", 1.5, "expected an integer"),
        ("seed", "1e999", "expected a number"),
    ],
)
def test_options_that_are_wrong(key: str, value: Any, expected: str) -> None:
    """The whole key is named, and what was expected."""
    settings = Settings().override({f"models.m.{key}": value}, "test")
    with pytest.raises(ConfigError, match=rf"models\.m\.{key}.*{expected}"):
        options_for("m", settings)
