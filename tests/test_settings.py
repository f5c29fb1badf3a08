"""Settings: one order, and where each value came from."""

import re
from pathlib import Path
from typing import Any

import pytest

from neuraxis import Session
from neuraxis.cli.options import Choices, plugin_sources
from neuraxis.errors import ConfigError
from neuraxis.models.http.settings import options_for
from neuraxis.settings import Settings, check_settings, faults_of, load, user_dir


def _environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"NEURAXIS_HOME": str(tmp_path / "home"), **more}


def test_the_projects_file_wins_over_the_users(tmp_path: Path) -> None:
    """Both files are read; the nearer one wins, and says so."""
    environ = _environ(tmp_path)
    config = user_dir("config", environ)
    config.mkdir(parents=True)
    (config / "neuraxis.toml").write_text(
        'model = "local:"\n[search]\nprovider = "ddgs"\n', encoding="utf-8"
    )
    (tmp_path / "neuraxis.toml").write_text('model = "openai:x"\n', encoding="utf-8")
    settings = load(tmp_path, environ)
    assert settings.get("model") == "openai:x"
    assert settings.values["model"].source == str(tmp_path / "neuraxis.toml")
    assert settings.section("search") == {"provider": "ddgs"}


def test_the_plugins_of_both_files_add_up(tmp_path: Path) -> None:
    """A project that lists one plugin took away all of the user's."""
    environ = _environ(tmp_path)
    config = user_dir("config", environ)
    config.mkdir(parents=True)
    (config / "neuraxis.toml").write_text('plugins = ["a", "b"]\n', encoding="utf-8")
    assert load(tmp_path, environ).get("plugins") == ["a", "b"]
    (tmp_path / "neuraxis.toml").write_text('plugins = "c,a"\n', encoding="utf-8")
    both = load(tmp_path, environ)
    assert both.get("plugins") == ["a", "b", "c", "a"]
    assert plugin_sources(Choices(no_builtin=True), both) == ["a", "b", "c"]
    check_settings(both)
    assert "neuraxis.toml and " in both.values["plugins"].source
    environ["NEURAXIS_PLUGINS"] = "d"
    assert load(tmp_path, environ).get("plugins") == "d"


def test_the_environment_wins_over_files_and_the_command_line_over_all(
    tmp_path: Path,
) -> None:
    """Decision 13, with the variable's name as the source."""
    (tmp_path / "neuraxis.toml").write_text(
        '[search]\nprovider = "ddgs"\n', encoding="utf-8"
    )
    environ = _environ(tmp_path, NEURAXIS_SEARCH__PROVIDER="google")
    settings = load(tmp_path, environ)
    assert settings.get("search.provider") == "google"
    assert "NEURAXIS_SEARCH__PROVIDER" in settings.values["search.provider"].source
    chosen = settings.override({"search.provider": "x", "model": None}, "command line")
    assert chosen.get("search.provider") == "x"
    assert "model" not in chosen.values


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """A beginner's typo: file, line and column are told."""
    (tmp_path / "neuraxis.toml").write_text("model = \n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"neuraxis\.toml: not valid TOML.*line 1"):
        load(tmp_path, _environ(tmp_path))


def test_why_a_projects_file_may_not_set_a_key_is_said(tmp_path: Path) -> None:
    """Of instructions, that they hold the project back made no sense."""
    file = tmp_path / "neuraxis.toml"
    file.write_text('instructions = "x"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="since the model treats it as your own"):
        load(tmp_path, _environ(tmp_path))


def test_a_projects_file_may_not_loosen_what_holds_it_back(tmp_path: Path) -> None:
    """A file that a script may have written cannot switch the sandbox off."""
    (tmp_path / "neuraxis.toml").write_text(
        '[sandbox]\nmode = "none"\n', encoding="utf-8"
    )
    with pytest.raises(ConfigError, match=r"sandbox\.mode may not be set"):
        load(tmp_path, _environ(tmp_path))
    environ = _environ(tmp_path, NEURAXIS_SANDBOX__MODE="bubblewrap")
    assert load(None, environ).get("sandbox.mode") == "bubblewrap"


@pytest.mark.parametrize(
    "text",
    [
        '[search]\nkey_env = "AWS_SECRET_ACCESS_KEY"\n',
        '[search]\ngoogle_url = "https://evil.example"\n',
        '"search.key_env" = "X"\n',
        '[models."gpt-4.1"]\nkey_env = "X"\n',
        '[gemini]\nkey_env = "X"\n',
    ],
)
def test_a_projects_file_may_not_choose_what_key_is_sent_where(
    tmp_path: Path, text: str
) -> None:
    """Or any secret of the environment could be sent to anybody."""
    (tmp_path / "neuraxis.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="may not be set in a project's file"):
        load(tmp_path, _environ(tmp_path))


@pytest.mark.parametrize("key", ["workspace", "search.folder"])
@pytest.mark.parametrize("value", ["/", "..", "~", "a/../../b", "link", "a\0b"])
def test_a_projects_file_stays_in_the_project(
    tmp_path: Path, key: str, value: str
) -> None:
    """Commands write to the workspace, and documents are told to the model."""
    project = tmp_path / "project"
    (project / "inside").mkdir(parents=True)
    (project / "link").symlink_to(tmp_path)
    file = project / "neuraxis.toml"
    text = value.replace("\0", "\\u0000")
    file.write_text(f'"{key}" = "{text}"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=f"{key}: expected a folder inside"):
        load(project, _environ(tmp_path))
    file.write_text(f'"{key}" = "inside/new"\n', encoding="utf-8")
    settings = load(project, _environ(tmp_path))
    assert settings.get(key) == "inside/new"
    assert settings.is_of_project(key)
    name = f"NEURAXIS_{key.upper().replace('.', '__')}"
    settings = load(project, _environ(tmp_path, **{name: "/"}))
    assert not settings.is_of_project(key)


def test_the_users_own_file_is_no_projects_file(tmp_path: Path) -> None:
    """Also where they stand in the folder it is in."""
    environ = _environ(tmp_path)
    config = user_dir("config", environ)
    config.mkdir(parents=True)
    file = config / "neuraxis.toml"
    file.write_text('[sandbox]\nmode = "docker"\n', encoding="utf-8")
    settings = load(config, environ)
    assert settings.get("sandbox.mode") == "docker"
    assert not settings.is_of_project("sandbox.mode")


def test_a_file_without_end_is_told(tmp_path: Path) -> None:
    """Thousands of brackets in each other are no settings and no traceback."""
    (tmp_path / "neuraxis.toml").write_text(f"a = {'[' * 50_000}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"neuraxis\.toml"):
        load(tmp_path, _environ(tmp_path))


def test_a_file_as_some_editors_save_it(tmp_path: Path) -> None:
    """A byte order mark is no mistake; another encoding is one that can be mended."""
    file = tmp_path / "neuraxis.toml"
    file.write_bytes(b'\xef\xbb\xbfmodel = "local:"\n')
    assert load(tmp_path).get("model") == "local:"
    file.write_bytes('model = "l\xf6cal:"\n'.encode("latin-1"))
    with pytest.raises(ConfigError, match="it is not UTF-8 text; save it as UTF-8"):
        load(tmp_path)


def test_the_models_file_is_named_by_its_variable_only(tmp_path: Path) -> None:
    """In a file of settings nobody would read it, and so it is refused."""
    (tmp_path / "neuraxis.toml").write_text('weights = "m.gguf"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=r"weights: no setting .* NEURAXIS_WEIGHTS"):
        check_settings(load(tmp_path, _environ(tmp_path)))
    (tmp_path / "neuraxis.toml").unlink()
    named = load(tmp_path, _environ(tmp_path, NEURAXIS_WEIGHTS="m.gguf"))
    assert faults_of(named, variables=True) == []
    misspelt = load(tmp_path, _environ(tmp_path, NEURAXIS_WEIGHT="m.gguf"))
    (fault,) = faults_of(misspelt, variables=True)
    assert "Did you mean weights?" in fault


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("sandbox.seconds", "five", "a number from 1"),
        ("sandbox.seconds", True, "a number from 1"),
        ("sandbox.memory", float("inf"), "a number from 1"),
        ("search.results", 900, "a number from 1 to 50"),
        ("sandbox.network", "yes", "true or false"),
        ("sandbox.mode", "jail", "one of auto, "),
        ("search.provider", "bing", "one of google, "),
    ],
)
def test_a_wrong_value_is_told_at_load_with_its_source(
    tmp_path: Path, key: str, value: Any, expected: str
) -> None:
    """Of a program and of a variable, as of a file: before anything runs."""
    of_program = Settings().override({key: value}, "program")
    with pytest.raises(ConfigError, match=rf"^program: {key}: expected {expected}"):
        Session("local:", settings=of_program)
    name = f"NEURAXIS_{key.upper().replace('.', '__')}"
    of_variable = load(None, _environ(tmp_path, **{name: str(value)}))
    if value is not True:  # its text is a mistake of another kind
        with pytest.raises(ConfigError, match=f"variable {name}: {key}: expected"):
            check_settings(of_variable)


def test_the_words_of_settings_are_those_that_are_read() -> None:
    """One list is checked at load, the other where the setting is used."""
    from neuraxis import settings
    from neuraxis.builtin.web_search.plugin import PROVIDERS
    from neuraxis.sandbox.process.select import MODES

    words = settings._WORDS
    assert sorted(words["search.provider"]) == sorted(PROVIDERS)
    assert sorted(words["sandbox.mode"]) == sorted(MODES)


def test_the_options_of_models_are_those_that_are_read() -> None:
    """One list is checked at load, the other where a model is made."""
    from neuraxis import settings
    from neuraxis.models.http.settings import _READERS, _TREES

    assert {*_READERS, *_TREES} < {*settings.MODEL_OPTIONS}
    assert settings._MODEL_TREES == _TREES


def test_values_that_are_texts_in_a_variable_are_taken(tmp_path: Path) -> None:
    """A variable has no other type."""
    more = {
        "NEURAXIS_SANDBOX__SECONDS": "5",
        "NEURAXIS_SANDBOX__NETWORK": "true",
        "NEURAXIS_LOCAL__STATES_MB": "0",
    }
    check_settings(load(None, _environ(tmp_path, **more)))


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("sandbx.seconds", "Did you mean sandbox.seconds?"),
        ("sandbox.secnds", "Did you mean sandbox.seconds?"),
        ("files.file_byts", "Did you mean files.file_bytes?"),
        ("models.shop.temprature", "Did you mean temperature?"),
        ("temperature", "there is no such setting"),
    ],
)
def test_a_misspelt_key_of_a_program_is_refused(key: str, told: str) -> None:
    """With the nearest; it would have no effect."""
    with pytest.raises(ConfigError, match=re.escape(told)):
        check_settings(Settings().override({key: 3}, "program"))


@pytest.mark.parametrize(
    "given",
    [
        {"models.gpt-4.1.temperature": 0.3},
        {'models."gpt-4.1".temperature': 0.3},
        {"models.gpt-4.1": {"temperature": 0.3}},
        {"models": {"gpt-4.1": {"temperature": 0.3}}},
    ],
)
def test_a_program_may_write_settings_as_toml_does(given: dict[str, Any]) -> None:
    """Tables and quoted keys mean what they mean in a file."""
    chosen = Settings().override(given, "program")
    check_settings(chosen)
    assert options_for("gpt-4.1", chosen).temperature == 0.3


def test_a_key_that_is_no_toml_is_refused() -> None:
    """As a file would be."""
    with pytest.raises(ConfigError, match="not a key of TOML"):
        Settings().override({'models."x': 1}, "program")


def test_one_underscore_for_two_names_the_option() -> None:
    """The most likely slip with a variable led to a setting that does not exist."""
    given = {"NEURAXIS_TABLES_ROWS": "5"}
    settings = load(Path("/nowhere"), given)
    (fault,) = faults_of(settings, variables=True)
    assert "Did you mean tables.rows (NEURAXIS_TABLES__ROWS)?" in fault
