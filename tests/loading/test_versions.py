"""Our reading of version ranges agrees with the installer's."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pegboard._plugins.discovery import Version, allows, conflicts

packaging_specifiers = pytest.importorskip("packaging.specifiers")
packaging_version = pytest.importorskip("packaging.version")

NUMBERS = st.integers(0, 3)
RELEASES = st.lists(NUMBERS, min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))


@st.composite
def versions(draw: st.DrawFn) -> str:
    pre = draw(st.sampled_from(["", "", "a1", "b2", "rc1", "rc0"]))
    post = draw(st.sampled_from(["", "", ".post0", ".post2"]))
    dev = draw(st.sampled_from(["", "", ".dev0", ".dev1"]))
    return f"{draw(RELEASES)}{pre}{post}{dev}"


LOCALS = st.sampled_from(["", "", "+local.1"])
OPERATORS = st.sampled_from(["==", "!=", "<=", ">=", "<", ">"])


class TestAgreesWithPackaging:
    @given(OPERATORS, versions(), versions(), LOCALS)
    def test_on_operators(self, operator: str, limit: str, version: str, local: str) -> None:
        if operator in "<>":
            # Here the installers' own versions differ from each other; our reading is pinned below.
            edge, other = packaging_version.Version(limit), packaging_version.Version(version)
            assume(not edge.is_postrelease and not (edge.is_prerelease and (other.is_postrelease or local)))
        expected = packaging_specifiers.SpecifierSet(operator + limit).contains(version + local, prereleases=True)
        assert allows(operator + limit, version + local) is expected

    @given(st.sampled_from(["==", "!="]), RELEASES, versions(), LOCALS)
    def test_on_wildcards(self, operator: str, limit: str, version: str, local: str) -> None:
        specifier = f"{operator}{limit}.*"
        expected = packaging_specifiers.SpecifierSet(specifier).contains(version + local, prereleases=True)
        assert allows(specifier, version + local) is expected

    @given(RELEASES.filter(lambda text: "." in text), st.sampled_from(["", "a1", ".post1", ".dev1"]), versions())
    def test_on_compatible_releases(self, limit: str, suffix: str, version: str) -> None:
        specifier = f"~={limit}{suffix}"
        expected = packaging_specifiers.SpecifierSet(specifier).contains(version, prereleases=True)
        assert allows(specifier, version) is expected

    @given(versions(), versions())
    def test_on_order(self, one: str, other: str) -> None:
        ours = [Version.parse(text) for text in (one, other)]
        assert ours[0] is not None
        assert ours[1] is not None
        expected = packaging_version.Version(one) < packaging_version.Version(other)
        assert (ours[0].key < ours[1].key) is expected

    @given(st.text("0123456789.abrcpostdev!+-_ *~=<>,", max_size=12), versions())
    def test_never_raises_on_any_text(self, text: str, version: str) -> None:
        assert allows(text, version) in (True, False, None)
        assert allows(f">={version}", text) in (True, False, None)


@pytest.mark.parametrize(
    ("specifiers", "version", "expected"),
    [
        ("", "0.1.0", True),
        (">=0.1,<0.2", "0.1.7", True),
        (">=0.1, <0.2", "0.2.0", False),
        (">=0.2", "0.2.0rc1", False),
        (">=0.1", "0.2.0rc1", True),
        ("<1.post1", "1.0", True),
        ("<1.post1", "1.dev0", True),
        ("<1.post1", "1.post1.dev1", False),
        (">1.post1", "1.post2.dev1", True),
        (">1", "1.post1", False),
        (">1a1", "1a1.post1", False),
        (">1a1", "1.post1", True),
        ("===0.1", "0.1", None),
        ("~=1", "1.0", None),
        ("==1.0+cpu", "1.0", None),
        (">=9,whatever", "0.1", None),
        (">=0.1", "not a version", None),
        # What build tools do not write is not understood.
        (">=1!9", "0.1", None),
        (">=9.0alpha1", "0.1", None),
        (">=9-1", "0.1", None),
    ],
)
def test_range(specifiers: str, version: str, expected: bool | None) -> None:
    assert allows(specifiers, version) is expected


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("pegboard>=0.1,<0.2", "pegboard", [">=0.1,<0.2"]),
        ("Peg_Board (>=9)", "peg-board", [">=9"]),
        ("pegboard[files, all] ~= 0.1", "pegboard", ["~= 0.1"]),
        ("pegboard>=9; extra == 'x'", "pegboard", []),
        ("pegboard", "pegboard", []),
        ("", "pegboard", []),
        (">=9", "pegboard", []),
    ],
)
def test_a_requirement_that_8_may_not_meet(text: str, name: str, expected: list[str]) -> None:
    assert conflicts([text], name, "8") == expected


def test_conflicts_names_only_what_is_surely_violated() -> None:
    requires = ["pegboard>=9", "pegboard @ file:///elsewhere", "pegboard>=0.1", "other>=9", "pegboard>=8; extra == 'x'"]
    assert conflicts(requires, "pegboard", "0.1.0") == [">=9"]
