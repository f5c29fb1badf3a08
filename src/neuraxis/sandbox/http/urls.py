"""Parse and validate URLs written by a model or a page.

Pure text. Attacks use URLs that two programs read differently, so this parser accepts
only what every program reads alike: no user names, no backslashes, no blanks, hosts as
names or as plain addresses, and ports that web servers have. International names are
accepted in their strict form (IDNA 2008, no mapping of look-alike characters); other
characters in path and query are percent-encoded.
"""

from __future__ import annotations

import ipaddress
import json
import re
import unicodedata
from collections.abc import Collection
from urllib.parse import quote, urljoin

from msgspec import Struct

from neuraxis.errors import NeuraxisError
from neuraxis.sandbox.http.addresses import inside, is_metadata

USUAL_PORTS = frozenset({80, 443, 8080, 8443})
MOST_CHARACTERS = 8000
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_PORT_THEN_PATH = re.compile(r"[0-9]{1,5}([/?#].*)?", re.DOTALL)
_AUTHORITY = re.compile(r"([^/?#]*)(.*)", re.DOTALL)
_SECOND_HOST = re.compile(r"[?#][^=&/]*@")
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_QUAD = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}")
_ENCODED_BREAK = re.compile(r"%(00|0a|0d)", re.IGNORECASE)
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INNER_NAMES = (
    "localhost",
    "local",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "onion",
)


class RequestRefused(NeuraxisError):
    """Error: the request is refused, or its response is not read."""


class Url(Struct, frozen=True, kw_only=True):
    """A checked URL. `host` is lower-case ASCII; IPv6 has no brackets."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query for the request line, without the fragment."""
    named: bool = False
    """The host is in `allowed_hosts`: its address may be private."""

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def address(self) -> bool:
        """Return whether the host is an IP address."""
        return ":" in self.host or bool(_QUAD.fullmatch(self.host))

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse(text: str, allowed_hosts: Collection[str] = ()) -> tuple[Url, ...]:
    """Return the URL, or https and http if the scheme is missing.

    `allowed_hosts` has `host` or `host:port`; such a host may be private and such a
    port unusual.

    Raises:
        RequestRefused: the URL breaks a rule.
    """
    shown = _shown(text)
    _check_characters(text, shown)
    match = _SCHEME.fullmatch(text)
    if match and not _PORT_THEN_PATH.fullmatch(match[2]):
        return (_with_scheme(match, shown, allowed_hosts),)
    if text.startswith("/"):
        raise RequestRefused(f"{shown}: no host; write 'https://host/path'.")
    return tuple(_build(s, text, shown, allowed_hosts) for s in ("https", "http"))


def _with_scheme(
    match: re.Match[str], shown: str, allowed_hosts: Collection[str]
) -> Url:
    scheme, rest = match[1].lower(), match[2]
    if scheme not in ("http", "https") or not rest.startswith("//"):
        raise RequestRefused(
            f"{shown}: only http and https are allowed, written as 'https://host/path'."
        )
    return _build(scheme, rest[2:], shown, allowed_hosts)


def follow(base: Url, location: str, allowed_hosts: Collection[str] = ()) -> Url:
    """Return the checked target of a redirect."""
    shown = _shown(location)
    _check_characters(location, shown)
    if location.startswith("//"):
        return _build(base.scheme, location[2:], shown, allowed_hosts)
    # `host:80` is a scheme here: only users omit the scheme of a URL
    if (match := _SCHEME.fullmatch(location)) is not None:
        return _with_scheme(match, shown, allowed_hosts)
    # Only the path is joined, so the library cannot misread a host.
    joined = urljoin(f"http://host{base.target}", location).removeprefix("http://host")
    return parse(f"{base.scheme}://{base.authority}{joined}", allowed_hosts)[0]


def _shown(text: str) -> str:
    quoted = json.dumps(text)
    return quoted if len(quoted) <= 120 else quoted[:118] + '…"'


def _check_characters(text: str, shown: str) -> None:
    if not text:
        raise RequestRefused("The URL is empty; write 'https://host/path'.")
    if len(text) > MOST_CHARACTERS:
        raise RequestRefused(
            f"{shown}: the URL has more than {MOST_CHARACTERS} characters."
        )
    for char in text:
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Zs"):
            raise RequestRefused(
                f"{shown}: the character U+{ord(char):04X} is not allowed in a URL; "
                "leave it out, or write a blank in a query as %20."
            )
    if "\\" in text:
        raise RequestRefused(f"{shown}: backslashes are not allowed in a URL.")


def _build(scheme: str, rest: str, shown: str, allowed: Collection[str]) -> Url:
    match = _AUTHORITY.fullmatch(rest)
    authority, tail = (match[1], match[2]) if match else ("", "")
    if "@" in authority or _SECOND_HOST.match(tail):
        raise RequestRefused(f"{shown}: user names ('@') are not allowed in a URL.")
    split = _HOST_PORT.fullmatch(authority)
    if not split:
        raise RequestRefused(f"{shown}: {_shown(authority)} is no host or host:port.")
    host = _host(split[1], shown)
    usual = 443 if scheme == "https" else 80
    port = int(split[2]) if split[2] else usual
    if split[2] and (split[2].startswith("0") or port > 65535):
        raise RequestRefused(f"{shown}: {split[2]} is no port.")
    names = {_fold(name) for name in allowed}
    bracketed = f"[{host}]" if ":" in host else host
    exact = f"{bracketed}:{port}" in names
    is_named = exact or bracketed in names or host in names
    if port not in USUAL_PORTS and not exact:
        raise RequestRefused(
            f"{shown}: port {port} is not allowed; allowed are "
            f"{', '.join(map(str, sorted(USUAL_PORTS)))}. "
            f"{how_to_allow(f'{bracketed}:{port}')}"
        )
    target = _target(tail, shown)
    url = Url(scheme=scheme, host=host, port=port, target=target, named=is_named)
    if not is_named and not url.address:
        _check_outer_name(host, shown)
    return url


def _fold(name: str) -> str:
    """Return an allowed host in the parser's form: `[::1]:80`, lower case."""
    return name.strip().lower().rstrip(".")


def _host(text: str, shown: str) -> str:
    if text.startswith("["):
        try:
            if "%" in text:
                raise ValueError("zone")
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            raise RequestRefused(f"{shown}: {text} is no IPv6 address.") from None
    if not text:
        raise RequestRefused(f"{shown}: no host; write 'https://host/path'.")
    if "%" in text:
        raise RequestRefused(f"{shown}: the host must not be percent-encoded.")
    host = text.lower() if text.isascii() else _ascii(text, shown)
    # One dot at the end is the absolute form of the same name.
    host = host.removesuffix(".")
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        plain = _QUAD.fullmatch(text) and all(int(label) < 256 for label in labels)
        if not plain:
            raise RequestRefused(
                f"{shown}: an address must be four plain numbers, as in 93.184.216.34."
            )
        return host
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise RequestRefused(f"{shown}: {_shown(text)} is no host name.")
    return host


def _ascii(text: str, shown: str) -> str:
    import idna  # idna loads a large table that few hosts need.

    if unicodedata.normalize("NFKC", text) != text or any(
        char.lower().isascii() != char.isascii() for char in text
    ):
        raise RequestRefused(f"{shown}: the host holds look-alike characters.")
    try:
        return idna.encode(text.lower(), strict=True, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        raise RequestRefused(f"{shown}: {_shown(text)} is no host name.") from None


def _check_outer_name(host: str, shown: str) -> None:
    inner = "." not in host or any(
        host == name or host.endswith("." + name) for name in _INNER_NAMES
    )
    if inner:
        raise RequestRefused(
            f"{shown}: {host} is no public host's name. {how_to_allow(host)}"
        )


def how_to_allow(host: str) -> str:
    """Explain how the user allows a private host or an unusual port."""
    return (
        f"A person can allow it with --allow-host {host}, with policy.allow_hosts in "
        f"their own neuraxis.toml or, in a program, Policy(allow_hosts=['{host}'])."
    )


def check_url(text: str, allowed_hosts: Collection[str] = ()) -> None:
    """Check a URL without sending a request.

    Raises:
        RequestRefused: no request may be sent there.
    """
    for url in parse(text, allowed_hosts):
        if url.address:
            check_address(url, url.host)


def check_address(url: Url, address: str) -> None:
    """Check the address that a host leads to.

    Raises:
        RequestRefused: it is not public, and the user did not allow it.
    """
    kind = None if url.named else inside(address)
    if url.named and not url.address and is_metadata(address):
        kind = "a metadata address"
    if kind is not None:
        raise RequestRefused(
            f"{url.host} leads to {kind}; only public hosts are fetched. "
            f"{how_to_allow(url.authority)}"
        )


def _target(tail: str, shown: str) -> str:
    tail = tail.partition("#")[0]
    path, mark, query = tail.partition("?")
    if _ENCODED_BREAK.search(path):
        raise RequestRefused(f"{shown}: line breaks are not allowed in a path.")
    target = (path or "/") + mark + query
    target = _LONE_PERCENT.sub("%25", target)
    return quote(target, safe="/?%:@!$&'()*+,;=-._~[]")
