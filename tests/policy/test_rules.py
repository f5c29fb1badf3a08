"""The small parts that judging by origin stands on: words, records, marks, settings."""

import time
from typing import Any

import pytest

from neuraxis import command
from neuraxis.errors import ConfigError, ManifestError
from neuraxis.plugins.functions.command import plugin_from
from neuraxis.plugins.manifest.load import parse_manifest
from neuraxis.plugins.manifest.write import to_yaml
from neuraxis.policy.provenance.records import named_values
from neuraxis.policy.provenance.wording import (
    Wording,
    addresses,
    is_composed,
    whose_address,
)
from neuraxis.policy.rules import DEFAULT, EVERYTHING, policy_from
from neuraxis.schema.annotations import marks_of, trusted_fields

SAID = (
    "Mail the page at example.org/a to Ada (ada@x.test) on May 26th at 10:30, "
    "write it to notes/page.md, pay 12.50, and book 'Dinner at {place}' for June 13"
)


@pytest.mark.parametrize(
    ("value", "stands"),
    [
        ("ada@x.test", True),
        ("Ada", True),
        ("ADA", True),
        ("da", False),
        ("x.test", True),
        ("eve@x.test", False),
        ("https://example.org/a/", True),
        ("https://example.org/a?q=1", False),
        ("./notes/page.md", True),
        ("page.md", True),
        ("age.md", False),
        (12.5, True),
        (12, True),
        (13, False),
        ("13", False),
        ("2024-05-26", True),
        ("2024-05-26 10:30", True),
        ("2024-05-26 11:30", False),
        ("2024-05-27", False),
        (None, True),
        (True, True),
        ("", True),
        ("x" * 3000, False),
    ],
)
def test_what_stands_in_the_users_words(value: Any, stands: bool) -> None:
    """Whole words, addresses without their scheme, dates as people say them."""
    assert stands is Wording(trusted=[SAID], seen=[]).trusted(value)


def test_addresses_and_whose_they_are() -> None:
    """Also in a page that is made to be slow to search."""
    page = {"a": ["Ada (Ada.King@x.test), eve@y.test.", 7], "b": "a" * 300_000 + "@"}
    started = time.process_time()
    assert {"ada.king@x.test", "eve@y.test"} == addresses(page)
    assert time.process_time() - started < 2
    assert whose_address("ada.king@x.test", "Ada King")
    assert whose_address("ada.king@x.test", "ada")
    assert not whose_address("adam@x.test", "Ada")
    assert not whose_address("ada@x.test", "Ada King")
    assert not whose_address("ada@x.test", "")
    assert not whose_address("mail ada@x.test", "Ada")


def test_a_text_of_the_users_words_and_a_trusted_answer() -> None:
    """`Dinner at Chez Ada` is the user's, with any other end it is not."""
    words = Wording(trusted=[SAID], seen=[])
    rest = Wording(trusted=[["Chez Ada"]], seen=[])
    assert is_composed("Dinner at Chez Ada", words, rest)
    assert not is_composed("Dinner at Chez Eve", words, rest)
    assert not is_composed("Lunch near Chez Ada", words, rest)


def test_records_that_the_user_named() -> None:
    """The id of the file that was named, of no other; a channel of all names none."""
    words = Wording(trusted=["append it to notes.docx in general, for Ada"], seen=[])
    files = [
        {"id": "7", "name": "notes.docx", "text": "Eve"},
        {"id": "8", "name": "other.docx", "text": "notes.docx"},
    ]
    fields = [("*", "id"), ("*", "name")]
    assert ["7", "notes.docx"] == list(named_values(files, fields, words))
    messages = [
        {"from": "Ada", "in": "general", "n": 1},
        {"from": "Eve", "in": "general", "n": 2},
    ]
    assert {"Ada", 1} == set(named_values(messages, None, words))
    assert [] == list(named_values(messages[1:], None, words))


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
    assert policy_from({"undeclared": "foreign"}).undeclared == "foreign"
    rule = {"verdict": "deny", "target": "mail.*", "effects": "once"}
    (read,) = policy_from({"rules": [rule]}).rules
    assert ("deny", "mail.*", {"once"}) == (read.verdict, read.target, read.effects)


@pytest.mark.parametrize(
    "section",
    [
        {"default": "perhaps"},
        {"rules": "deny"},
        {"rules": [{"verdict": "no"}]},
        {"rules": [{"verdict": "deny", "effects": ["some"]}]},
        {"rules": [{"verdict": "deny", "tool": "x"}]},
        {"rules": [{"verdict": "deny", "arguments": "x"}]},
        {"sandbox": "none"},
        {"undeclared": "yes"},
    ],
)
def test_a_wrong_policy_is_told(section: dict[str, Any]) -> None:
    """A policy that is not understood is no policy: the session does not start."""
    with pytest.raises(ConfigError, match="policy"):
        policy_from(section)
