"""Addresses: which of them are on the public internet.

The list is a copy of the IANA registries and not `ipaddress.is_global`, whose answer differs between versions of Python
and is yes for addresses that lead into a network, such as 64:ff9b::7f00:1 (NAT64) and 168.63.129.16.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890, RFC 8190), the IPv4 Multicast Address
Space Registry (RFC 5771) and the IPv6 Address Space Registry (RFC 4291: global unicast is 2000::/3).
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

__all__ = ["is_public"]

# No web server of the public internet is in a block with a special purpose, also if the registry calls it reachable.
_SPECIAL_IPV4: Final = tuple(map(IPv4Network, (
    "0.0.0.0/8", "127.0.0.0/8",  # this network and loopback, RFC 1122
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",  # private, RFC 1918
    "100.64.0.0/10",  # shared by customers of a provider, RFC 6598; 100.100.100.200 is a cloud's metadata
    "168.63.129.16/32",  # in no registry: the host of a virtual machine at Azure
    "169.254.0.0/16",  # link-local, RFC 3927; 169.254.169.254 is the metadata of most clouds
    "192.0.0.0/24", "192.88.99.0/24",  # protocol assignments and 6to4 relays, RFC 6890 and RFC 7526
    "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "198.18.0.0/15",  # documentation, benchmarks, RFC 5737, 2544
    "192.31.196.0/24", "192.175.48.0/24", "192.52.193.0/24",  # AS112 and AMT, RFC 7535, 7534 and 7450
    "224.0.0.0/4", "240.0.0.0/4",  # multicast and reserved, with limited broadcast, RFC 5771, 1112 and 8190
)))  # fmt: skip
_UNICAST_IPV6: Final = IPv6Network("2000::/3")
# Within 2000::/3; the loopback, unique local, link-local, site-local, multicast and discard-only blocks are outside.
_SPECIAL_IPV6: Final = tuple(map(IPv6Network, (
    "2001::/23",  # protocol assignments, RFC 2928: Teredo (RFC 4380), benchmarks, AMT, ORCHID, drones
    "2001:db8::/32", "3fff::/20",  # documentation, RFC 3849 and RFC 9637
    "2620:4f:8000::/48",  # AS112, RFC 7534
)))  # fmt: skip
# What holds an IPv4 address to which the packets go in the end, and how far from the right that one ends.
_IPV4_WITHIN: Final = (
    (IPv6Network("::ffff:0:0/96"), 0),  # mapped, RFC 4291
    (IPv6Network("64:ff9b::/96"), 0),  # NAT64, RFC 6052
    (IPv6Network("2002::/16"), 80),  # 6to4, RFC 3056
)
_ISATAP: Final = 0x00005EFE  # RFC 5214: the first half of an interface identifier; the IPv4 address is the other half


def is_public(address: str) -> bool:
    """Whether an address, as text without a zone, is one of the public internet; False for what is no address.

    An IPv6 address that holds an IPv4 address (mapped, NAT64, 6to4, ISATAP) is public if that one is. IPv4-compatible
    addresses, Teredo, the local NAT64 prefix 64:ff9b:1::/48 (RFC 8215) and everything with a zone (RFC 4007) are not.

    Args:
        address: The address.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in block for block in _SPECIAL_IPV4)
    within = [*_ipv4_within(found)]
    is_unicast = found in _UNICAST_IPV6 and not any(found in block for block in _SPECIAL_IPV6)
    return found.scope_id is None and (is_unicast or bool(within)) and all(map(is_public, within))


def _ipv4_within(address: IPv6Address) -> Iterator[str]:
    bits = int(address)
    for block, shift in _IPV4_WITHIN:
        if address in block:
            yield str(IPv4Address(bits >> shift & 0xFFFFFFFF))
    if address in _UNICAST_IPV6 and bits >> 32 & 0xFDFFFFFF == _ISATAP:  # the bit left out: local or universal
        yield str(IPv4Address(bits & 0xFFFFFFFF))
