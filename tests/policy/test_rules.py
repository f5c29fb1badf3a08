"""The small parts that the rules stand on: words, marks, settings."""

from typing import Any

import pytest

from neuraxis import Policy, Session, command
from neuraxis.errors import ConfigError, ManifestError
from neuraxis.models.scripted import ScriptedModel
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.policy.provenance.words import is_own, place_of
from neuraxis.policy.rules import DEFAULT, EVERYTHING, Rule, policy_from
from neuraxis.schema.annotations import marks_of, trusted_fields
from neuraxis.specs import CommandSpec

SAID = (
    "Mail the page at example.org/a to Ada (Ada@x.test), write it to notes/page.md, "
    "pay 12.50 € or 1,300, see https://x.test/Tea_(drink), and “best tea”. Straße 7"
)


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        ("Ada@x.test", True),
        ("ada@x.test", False),
        ("da@x.test", False),
        ("x.test", False),
        ("Ada", True),
        ("ADA", True),
        ("da", False),
        ("Mail the page", True),
        ("Mail page", False),
        ("notes/page.md", True),
        ("page.md", False),
        ("/", False),
        (".", False),
        ("://", False),
        ("strasse", False),
        ("Strasse", False),
        ("Straße", True),
        ("Ada\u200b", False),
        (12.5, True),
        (1300, True),
        (7, True),
        (13, False),
        ("7", False),
        (True, False),
        (None, False),
        ("", False),
        ("x" * 3000, False),
    ],
)
def test_what_is_the_users_own_word_H4(value: Any, stands: bool) -> None:
    """Whole tokens after NFC; addresses and paths as a whole and with their case."""
    assert stands is is_own(value, [SAID])


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        ("example.org/a", True),
        ("https://example.org/a", True),
        ("http://example.org/a", False),
        ("example.org", False),
        ("example.org/A", False),
        ("https://x.test/Tea_(drink)", True),
        ("https://x.test/Tea", False),
        ("https://X.test/Tea_(drink)", False),
        ("best tea", True),
        ("best", False),
        ("the page", False),
        ("Ada", False),
        (" example.org/a", False),
        (7, False),
    ],
)
def test_which_addresses_are_the_users_own(value: Any, stands: bool) -> None:
    """Character for character; a text only where it was quoted."""
    assert stands is (place_of(value, SAID) >= 0)


def test_a_decomposed_letter_is_the_same_after_nfc() -> None:
    """As a keyboard of macOS writes it; the value itself is composed."""
    assert is_own("Café", ["to the Cafe\u0301"])
    assert not is_own("Cafe\u0301", ["to the Café"])


MANIFEST = """\
name: mail
info: {title: Mail, description: Mail.}
commands:
  - command_name: send
    description: Sends.
    effects: {kind: once, open_world: true}
    parameter:
      type:
        to: {type: "List[str]", trusted_only: true}
        link: {type: string, sends_out: true}
        file: {type: string, names_file: read}
        key: {type: string, secret_ok: true}
    response:
      type:
        id: {type: string, trusted: true}
        text: {type: string}
"""


def test_marks_of_a_manifest_and_of_a_function() -> None:
    """Both say the same; the YAML of either says it again."""

    @command(
        effects={"kind": "once", "open_world": True},
        trusted_only=["to"],
        sends_out=["link"],
        names_file={"file": "read"},
        secret_ok=["key"],
    )
    def send(to: list[str], link: str, file: str, key: str) -> None:
        """Sends."""

    spec, _ = parse_manifest(MANIFEST)
    again, _ = parse_manifest(to_yaml(spec))
    for found in (spec, again, plugin_from(send).spec):
        marks = marks_of(found.commands[0].parameters)
        assert {("to",), ("key",)} == set(marks.trusted_only)
        assert (("link",),) == marks.sends_out
        assert ((("file",), "read"),) == marks.files
        assert (("key",),) == marks.secret_ok
        assert found.commands[0].effects.declared
    assert (("id",),) == trusted_fields(spec.commands[0].response)


def test_wrong_marks_are_told() -> None:
    """A word that is none, a parameter that is not there."""
    with pytest.raises(ManifestError, match="names_file"):
        parse_manifest(MANIFEST.replace("names_file: read", "names_file: eat"))

    @command(trusted_only=["nobody"])
    def send(to: str) -> None:
        """Sends."""

    with pytest.raises(ManifestError, match="there is no parameter 'nobody'"):
        plugin_from(send)


def test_the_policy_of_the_settings() -> None:
    """Nothing said: the default; rules are read whole; a wrong word is told."""
    assert policy_from({}) == DEFAULT
    assert policy_from({"default": "allow"}) == EVERYTHING
    assert policy_from({"undeclared": "outside"}).undeclared == "outside"
    hosts = ["intranet", "10.0.0.5:8080"]
    for given in (hosts, ",".join(hosts), ", ".join(hosts)):  # a file's, a variable's
        assert list(policy_from({"allow_hosts": given}).allow_hosts) == hosts
    assert list(policy_from({"yes_to": "a.b, c.*"}).yes_to) == ["a.b", "c.*"]
    assert policy_from({"yes_to": "", "allow_hosts": ""}) == DEFAULT
    rule = {"verdict": "deny", "target": "mail.*", "effects": ["once"]}
    (read,) = policy_from({"rules": [rule]}).rules
    assert ("deny", "mail.*", {"once"}) == (read.verdict, read.target, read.effects)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"default": "perhaps"}, 'default: expected one of .*"by_origin"'),
        ({"rules": "deny"}, "rules: expected List"),
        (
            {"rules": [{"verdict": "no"}]},
            r'rules\[0\]\.verdict: expected one of "allow"',
        ),
        (
            {"rules": [{"verdict": "deny", "effects": ["some"]}]},
            r'effects\[0\]: expected one of "idempotent"',
        ),
        (
            {"rules": [{"verdict": "deny", "tool": "x"}]},
            r"rules\[0\]\.tool: expected only these keys: verdict",
        ),
        ({"rules": [{}]}, "verdict: expected .*required.*, got nothing"),
        (
            {"rules": [{"verdict": "deny", "arguments": "x"}]},
            "arguments: expected Dict",
        ),
        (
            {"sandbox": "none"},
            "sandbox: expected only these keys: rules, default, undeclared",
        ),
        ({"undeclared": "yes"}, 'undeclared: expected one of "inside", "outside"'),
        ({"yes_to": 3}, "yes_to: expected List"),
    ],
)
def test_a_wrong_policy_is_told(section: dict[str, Any], told: str) -> None:
    """A policy that is not understood is no policy: the session does not start."""
    with pytest.raises(ConfigError, match=rf"^policy.*{told}"):
        policy_from(section)


@pytest.mark.parametrize("target", ["pay", "Pay.*", "pay.refund"])
def test_a_rule_that_fits_no_command_of_its_plugin_is_refused(target: str) -> None:
    """It would allow what it was meant to stop."""

    @command(effects="once")
    def pay(to: str) -> str:
        """Pay."""
        return to

    policy = Policy(rules=[Rule(verdict="deny", target=target)])
    with pytest.raises(ConfigError, match=r"expected plugin\.command: pay\.pay"):
        Session(model=ScriptedModel([]), plugins=[pay], policy=policy)


def test_rules_for_plugins_that_are_not_here_are_kept() -> None:
    """One policy serves many sessions."""
    rules = [Rule(verdict="deny", target=one) for one in ("mail.*", "*.send", "*")]
    Session(model=ScriptedModel([]), policy=Policy(rules=rules)).close()


@command(effects="once")
def pay(to: str) -> str:
    """Pay."""
    return f"paid {to}"


def _with(rule: Rule) -> None:
    Session(ScriptedModel([]), plugins=[pay], policy=Policy(rules=[rule])).close()


@pytest.mark.parametrize(
    ("target", "arguments", "told"),
    [
        ("mail.*", {"too": "x"}, None),
        ("pay.*", {"too": "x"}, "has an argument 'too'.*Did you mean to"),
        ("pay.*", {"to": "x"}, None),
        ("*", {"too": "x"}, None),
    ],
)
def test_an_argument_that_no_command_has_is_refused(
    target: str, arguments: dict[str, str], told: str | None
) -> None:
    """It would never hold; a rule for another program's plugins is left alone."""
    rule = Rule(verdict="deny", target=target, arguments=arguments)
    if told is None:
        _with(rule)
        return
    with pytest.raises(ConfigError, match=told):
        _with(rule)


def test_an_argument_that_nothing_here_has_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A guard for every plugin never held, and nobody was told."""
    _with(Rule(verdict="deny", target="*", arguments={"query": "*x*"}))
    assert "has an argument 'query'" in caplog.text
    caplog.clear()
    _with(Rule(verdict="deny", target="*", arguments={"to": "*x*"}))
    assert caplog.text == ""


@pytest.mark.parametrize("pattern", ["pay.refund", "pay", "Pay.*"])
def test_a_pattern_meant_for_a_plugin_here_is_refused(pattern: str) -> None:
    """It has the plugin's name, and would never hold."""
    told = r"matches no command.* expected plugin\.command: pay\.pay"
    with pytest.raises(ConfigError, match=f"policy.rules.*{told}"):
        _with(Rule(verdict="deny", target=pattern))
    with pytest.raises(ConfigError, match=f"policy.yes_to.*{told}"):
        Session(ScriptedModel([]), plugins=[pay], policy=Policy(yes_to=[pattern]))


def test_a_pattern_for_another_programs_plugin_is_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One policy serves many programs; the log has what fits nothing here."""
    caplog.set_level("INFO", "neuraxis.policy")
    policy = Policy(rules=[Rule(verdict="deny", target="mail.*")], yes_to=["*.send"])
    Session(ScriptedModel([]), plugins=[pay], policy=policy).close()
    assert 'target "mail.*" matches no command of this session' in caplog.text
    assert '"*.send" matches no command of this session' in caplog.text


@pytest.mark.parametrize("pattern", ["bank.pay", "payment.*", "pya.*", "PAY*.x"])
def test_a_pattern_for_another_plugin_that_may_be_misspelt_is_warned_of(
    pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the command's name, or nearly its plugin's: the session starts."""
    _with(Rule(verdict="deny", target=pattern))
    Session(ScriptedModel([]), plugins=[pay], policy=Policy(yes_to=[pattern])).close()
    told = [one for one in caplog.records if one.levelname == "WARNING"]
    assert len(told) == 2
    assert "Did you mean pay.pay?" in told[0].message


def test_a_schema_of_a_parameter_may_be_false() -> None:
    """It has no default; a rule about another one is still applied."""
    spec = CommandSpec(
        name="pay",
        parameters={"type": "object", "properties": {"a": False, "b": {"default": 3}}},
    )
    policy = Policy(default="allow", rules=[Rule(verdict="deny", arguments={"b": "3"})])
    assert policy.decide("bank", spec, {}).verdict == "deny"


def test_an_open_command_takes_any_argument() -> None:
    """So a rule may name one that its schema does not."""

    @command(effects="once")
    def send(**fields: str) -> None:
        """Send."""

    rule = Rule(verdict="deny", target="send.*", arguments={"to": "x"})
    Session(ScriptedModel([]), plugins=[send], policy=Policy(rules=[rule]))


@pytest.mark.parametrize(
    ("pattern", "value"),
    [("1000.0", 1000), ("1e3", 1000), ("5.50", 5.5), ("0.0", 0), ("0.0", -0.0)],
)
def test_a_rule_that_denies_a_number_knows_it_in_any_spelling(
    pattern: str, value: float
) -> None:
    """It would fail open, and nobody would notice."""
    rule = Rule(verdict="deny", arguments={"amount": pattern})
    policy = Policy(default="allow", rules=[rule])
    spec = CommandSpec(name="pay", description="Pays.")
    assert policy.decide("pay", spec, {"amount": value}).verdict == "deny"
    assert policy.decide("pay", spec, {"amount": value + 1}).verdict == "allow"
