"""Which addresses are public: those of no special block, also within IPv6."""

import ipaddress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_net import is_public
from tests.plugins.net.spellings import OPEN, PRIVATE, words
from tests.support.thinning import one_in

# The IANA registries as they were on 24 November 2026: IPv4 and IPv6 special-purpose, without what is judged by the
# IPv4 address within (::ffff:0:0/96, 64:ff9b::/96, 2002::/16).
REGISTERED = words("""
0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29
192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24
192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4
255.255.255.255/32 224.0.0.0/4
::1/128 ::/128 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128 2001:1::2/128 2001:1::3/128
2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28 2001:db8::/32 2620:4f:8000::/48
3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8 ::/96
""")


@pytest.mark.parametrize("block", one_in(3, REGISTERED))
def test_nothing_in_a_special_block(block: str) -> None:
    network = ipaddress.ip_network(block)
    size = network.num_addresses
    for offset in (0, 1, size // 3, size // 2, size - 2, size - 1):
        assert not is_public(str(network[offset % size])), network[offset % size]


@pytest.mark.parametrize("address", one_in(3, PRIVATE))
def test_private(address: str) -> None:
    assert not is_public(address)
    assert not is_public(f"{address}%1")


@pytest.mark.parametrize("address", one_in(3, OPEN))
def test_public(address: str) -> None:
    assert is_public(address)
    assert not is_public(f"{address}%eth0")


@pytest.mark.parametrize(
    "text",
    ["", " ", "127.1", "8.8.8.8 ", "8.8.8", "0x08080808", "010.8.8.8", "\uff18.8.8.8", "8.8.8.8/32", "::g"],
)
def test_what_is_no_address(text: str) -> None:
    assert not is_public(text)


WITHIN = ["::ffff:{}", "64:ff9b::{}", "2002:{hex}::1", "2a00:1450::5efe:{}", "2a00:1450:0:1:200:5efe:{}"]


def within(form: str, address: ipaddress.IPv4Address) -> str:
    digits = f"{int(address):08x}"
    return str(ipaddress.ip_address(form.replace("{hex}", f"{digits[:4]}:{digits[4:]}").replace("{}", str(address))))


@given(st.ip_addresses(v=4), st.sampled_from(WITHIN))
def test_an_address_within_counts(address: ipaddress.IPv4Address, form: str) -> None:
    assert is_public(within(form, address)) is is_public(str(address))


@pytest.mark.parametrize("form", one_in(2, WITHIN))
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "0.0.0.0"])
def test_a_private_address_within(form: str, address: str) -> None:
    assert not is_public(within(form, ipaddress.IPv4Address(address)))


@pytest.mark.parametrize("form", ["::{}", "::ffff:0:{}", "64:ff9b:1::{}", "2001:0:{hex}::", "fe80::5efe:{}"])
def test_forms_that_hold_an_address_and_are_never_public(form: str) -> None:
    assert not is_public(within(form, ipaddress.IPv4Address("8.8.8.8")))


@given(st.ip_addresses())
def test_no_address_is_public_that_the_standard_library_calls_private(address: Any) -> None:
    if is_public(str(address)):
        # Since 3.13 no address of 6to4 is global by itself; the IPv4 address that it holds decides.
        known = getattr(address, "sixtofour", None) or getattr(address, "ipv4_mapped", None) or address
        assert known.is_global
        assert not any([known.is_multicast, known.is_loopback, known.is_link_local, known.is_unspecified])
