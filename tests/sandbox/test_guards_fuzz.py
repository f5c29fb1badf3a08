"""Whatever text comes in: a refusal, or something that holds the promise."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuraxis.sandbox.files.paths import FileRefused, parts_of
from neuraxis.sandbox.http.addresses import inside
from neuraxis.sandbox.http.urls import RequestRefused, Url, follow, parse

WORDS = (
    "http https :// : / // @ # ? \\ [ ] % . .. ~ 127.0.0.1 ::1 example.com localhost "
    "0x7f 80 a ％ 。 ⓛ CON .git é 🎉 & ="
)
PIECES = st.sampled_from([*WORDS.split(), " ", "\t", "\0", "\u200b"])
TEXTS = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=9).map("".join))


def assert_one_line(sentence: str) -> None:
    """A refusal forges no second line and colours no terminal."""
    assert sentence
    assert sentence.isprintable()


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_any_text_as_a_url(text: str) -> None:
    """A parsed URL reads alike in the library's parser and ends in one host."""
    try:
        forms = parse(text)
    except RequestRefused as refused:
        assert_one_line(str(refused))
        return
    for form in forms:
        again = urlsplit(str(form))
        assert str(form).isascii()
        assert str(form).isprintable()
        assert (form.scheme, form.host) == (again.scheme, again.hostname)
        assert form.port in (80, 443, 8080, 8443)
        assert again.username is None
        assert form.host != "localhost"


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_any_text_as_a_redirect(text: str) -> None:
    """A redirect gives a checked URL, or a refusal; nothing else is raised."""
    base = Url(scheme="https", host="example.com", port=443, target="/a/b?c")
    try:
        found = follow(base, text)
    except RequestRefused:
        return
    assert found.port in (80, 443, 8080, 8443)
    assert found.target.startswith("/")


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_any_text_as_a_path(text: str) -> None:
    """Parts that are allowed never climb, and are names on every system."""
    try:
        parts = parts_of(text)
    except FileRefused as refused:
        assert_one_line(str(refused))
        return
    assert parts
    for part in parts:
        assert part not in ("", ".", "..")
        assert not set('/\\:*?"<>|') & set(part)
        assert part == part.strip(" ").rstrip(".")


@settings(max_examples=300, deadline=None)
@given(st.ip_addresses())
def test_no_address_is_public_that_the_library_calls_inner(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    """Ours refuses at least what `ipaddress` refuses."""
    embedded = getattr(address, "ipv4_mapped", None)
    if address.is_private or address.is_loopback or address.is_multicast:
        assert embedded is not None or inside(str(address)) is not None


@pytest.mark.parametrize("text", ["0", "1e9", "0x7f", "127.1", "::ffff:1.2.3.4.5"])
def test_what_is_no_address_is_not_public(text: str) -> None:
    """An unreadable address is refused, not guessed."""
    assert "no address" == inside(text)
