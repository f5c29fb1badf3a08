"""Refuse IP addresses that are not public.

An address is public only if it is known to be: in IPv6 only the global unicast block
2000::/3. The library's `is_global` is not enough: it depends on the Python version,
considers some clouds' metadata addresses public, and ignores IPv4 addresses inside IPv6
ones.
"""

from __future__ import annotations

import ipaddress

_IPV4_INSIDE = tuple(
    (ipaddress.IPv4Network(block), what)
    for block, what in (
        ("0.0.0.0/8", "this machine"),
        ("10.0.0.0/8", "a private network"),
        ("100.64.0.0/10", "a provider's inner network"),
        ("127.0.0.0/8", "this machine"),
        ("168.63.129.16/32", "a cloud's own service"),
        ("169.254.0.0/16", "a link-local or metadata address"),
        ("172.16.0.0/12", "a private network"),
        ("192.0.0.0/24", "a reserved or metadata address"),
        ("192.0.2.0/24", "a documentation address"),
        ("192.88.99.0/24", "a dead relay address"),
        ("192.168.0.0/16", "a private network"),
        ("198.18.0.0/15", "a benchmarking network"),
        ("198.51.100.0/24", "a documentation address"),
        ("203.0.113.0/24", "a documentation address"),
        ("224.0.0.0/4", "a multicast address"),
        ("240.0.0.0/4", "a reserved address"),
    )
)
_IPV6_PUBLIC = ipaddress.IPv6Network("2000::/3")
_IPV6_INSIDE = tuple(
    (ipaddress.IPv6Network(block), what)
    for block, what in (
        ("2001::/23", "a reserved address (Teredo, benchmarking, ORCHID)"),
        ("2001:db8::/32", "a documentation address"),
        ("2002::/16", "a 6to4 address"),
        ("3fff::/20", "a documentation address"),
    )
)
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        "169.254.169.254",
        "169.254.170.2",
        "169.254.170.23",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)


def inside(address: str) -> str | None:
    """Return the kind of a non-public address; None if public."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return "no address"
    if isinstance(parsed, ipaddress.IPv4Address):
        return _inside4(parsed)
    return _inside6(parsed)


def is_metadata(address: str) -> bool:
    """Check whether cloud metadata (access keys) is served at the address.

    A host that was allowed by name must not lead there either: its name was allowed,
    not the machine's keys.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _MAPPED or parsed in _NAT64:
            parsed = _low4(parsed)
        elif parsed.scope_id:
            return True
    return parsed in _METADATA


def _inside4(address: ipaddress.IPv4Address) -> str | None:
    return next((kind for block, kind in _IPV4_INSIDE if address in block), None)


def _inside6(address: ipaddress.IPv6Address) -> str | None:
    if address.scope_id:
        return "an address of one network card"
    # IPv6-only networks reach IPv4 sites through 64:ff9b::/96, and some resolvers
    # return mapped addresses: unpack both forms.
    if address in _MAPPED or address in _NAT64:
        return _inside4(_low4(address))
    if address not in _IPV6_PUBLIC:
        return "an address that is not on the public internet"
    if kind := next((kind for block, kind in _IPV6_INSIDE if address in block), None):
        return kind
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return _inside4(_low4(address))
    return None


def _low4(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
