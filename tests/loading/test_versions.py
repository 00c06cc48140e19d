"""Which releases of the core a pack accepts, read by the numbers of releases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard._plugins.discovery import allows, conflict, release

packaging_specifiers = pytest.importorskip("packaging.specifiers")

RELEASES = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda parts: ".".join(map(str, parts)))
OPERATORS = st.sampled_from(["==", "!=", "<=", ">=", "<", ">"])
SUFFIXES = st.sampled_from(["", "a1", "rc2", ".post1", ".dev0", "b1.dev3"])


class TestAgreesWithPackagingOnReleases:
    @given(OPERATORS, RELEASES, RELEASES)
    def test_on_operators(self, operator: str, limit: str, version: str) -> None:
        assert allows(operator + limit, version) is packaging_specifiers.SpecifierSet(operator + limit).contains(
            version
        )

    @given(st.sampled_from(["==", "!="]), RELEASES, RELEASES)
    def test_on_wildcards(self, operator: str, limit: str, version: str) -> None:
        ranges = f"{operator}{limit}.*"
        assert allows(ranges, version) is packaging_specifiers.SpecifierSet(ranges).contains(version)

    @given(RELEASES.filter(lambda text: "." in text), RELEASES)
    def test_on_compatible_releases(self, limit: str, version: str) -> None:
        assert allows(f"~={limit}", version) is packaging_specifiers.SpecifierSet(f"~={limit}").contains(version)


@given(OPERATORS, RELEASES, SUFFIXES, RELEASES, SUFFIXES)
def test_a_pre_release_counts_as_its_release(operator: str, limit: str, more: str, version: str, suffix: str) -> None:
    assert allows(operator + limit + more, version + suffix) is allows(operator + limit, version)


@given(st.text("0123456789.abrcpostdev!+-_ *~=<>,", max_size=12), RELEASES)
def test_any_text_has_an_answer(text: str, version: str) -> None:
    assert allows(text, version) in (True, False, None)
    assert allows(f">={version}", text) in (True, False, None)
    assert isinstance(conflict([f"pegboard{text}"], "pegboard", version), str)


@pytest.mark.parametrize(
    ("ranges", "version", "expected"),
    [
        ("", "0.1.0", True),
        (">=0.1,<0.2", "0.1.7", True),
        (">=0.1, <0.2", "0.2.0", False),
        (">=0.2", "0.2.0rc1", True),
        (">=0.1.0.dev1,<0.2.dev0", "0.1.3+local.1", True),
        ("~=1", "2.0", True),
        ("===0.1", "0.1", None),
        ("==1.0+cpu", "1.0", None),
        (">=9,whatever", "0.1", None),
        (">=1!9", "0.1", None),
        (">=9.*", "0.1", None),
        (">=9-1", "0.1", None),
    ],
)
def test_range(ranges: str, version: str, expected: bool | None) -> None:
    assert allows(ranges, version) is expected


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("0.1.0", (0, 1, 0)), ("v2.1rc1", (2, 1)), ("1.dev0", (1,)), ("1!2.0", ()), ("unknown", ()), ("", ())],
)
def test_the_release_of_a_version(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("pegboard>=0.1,<0.2", "pegboard", "requires pegboard>=0.1,<0.2, but 8 is installed"),
        ("Peg_Board (>=9)", "peg-board", "requires peg-board>=9, but 8 is installed"),
        ("pegboard[files, all] ~= 0.1", "pegboard", "requires pegboard~= 0.1, but 8 is installed"),
        ("pegboard===8", "pegboard", "requires pegboard===8, which is no range of releases such as >=0.1,<0.2"),
        ("pegboard>=9; extra == 'x'", "pegboard", ""),
        ("pegboard @ file:///elsewhere", "pegboard", ""),
        ("pegboard", "pegboard", ""),
        ("other>=9", "pegboard", ""),
        ("", "pegboard", ""),
        (">=9", "pegboard", ""),
    ],
)
def test_a_requirement_that_8_may_not_meet(text: str, name: str, expected: str) -> None:
    assert conflict(["pegboard>=0.1", text], name, "8") == expected


def test_a_core_of_unknown_version_meets_everything() -> None:
    assert conflict(["pegboard>=9"], "pegboard", "unknown") == ""
