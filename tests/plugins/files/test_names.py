"""Globs mean what people expect of them, and a denied path is denied under every spelling."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_files import DEFAULT_DENY
from pegboard_files._directory.names import Denied, Glob, folded, is_odd
from tests.support.measuring import paces


@pytest.mark.parametrize(
    ("pattern", "paths", "others"),
    [
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyc", "py", "x.py/y"]),
        ("/*.py", ["a.py"], ["x/a.py"]),
        ("docs/*.md", ["docs/a.md"], ["docs/x/a.md", "x/docs/a.md", "docs"]),
        ("docs/**/*.md", ["docs/a.md", "docs/x/a.md", "docs/x/y/a.md"], ["a.md", "docs"]),
        ("**/test_*", ["test_a", "x/test_a"], ["x/a_test"]),
        ("**", ["a", "x/y"], []),
        ("src/**", ["src", "src/a", "src/x/y"], ["a", "srcs/a"]),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "a/b"]),
        ("[ab]?.txt", ["a1.txt", "x/b2.txt"], ["c1.txt", "a.txt"]),
        ("[!a].txt", ["b.txt"], ["a.txt"]),
        ("./a.txt", ["a.txt"], ["x/a.txt"]),
        ("x/", ["x", "y/x"], ["x/y"]),
        ("*", ["a", "x/y", ".hidden"], []),
    ],
)
def test_glob(pattern: str, paths: list[str], others: list[str]) -> None:
    glob = Glob.of(pattern)
    assert [path for path in [*paths, *others] if glob.matches(path)] == paths


@pytest.mark.parametrize("pattern", ["", "/", "..", "a/../b", "./.", "x" * 1_001])
def test_glob_that_means_nothing(pattern: str) -> None:
    with pytest.raises(ValueError, match="no pattern for paths"):
        Glob.of(pattern)


@pytest.mark.parametrize("pattern", ["*a" * 100 + "b", "**/" * 200 + "x", "a/**/" * 100 + "b", "?" * 500 + "*" * 400])
def test_glob_takes_no_time(pattern: str) -> None:
    assert paces(lambda: Glob.of(pattern).matches("a/" * 60 + "a" * 255), most=1_000) < 1_000


@pytest.mark.parametrize(
    "path",
    [
        ".git",
        ".git/config",
        "sub/.git/hooks/x",
        ".GIT/config",
        ".g\u200cit/config",
        "\uff0egit/config",
        ".\uff25NV",
        ".env",
        ".env.production",
        "sub/.ENV",
        "sub/.envrc/x",
        "key.pem",
        "a/b/server.KEY",
        "id_rsa",
        "id_rsa.pub",
        ".ssh/known_hosts",
        "pegboard.toml",
        "x/pegboard.lock",
    ],
)
def test_denied_by_default(path: str) -> None:
    assert path in Denied(DEFAULT_DENY)


@pytest.mark.parametrize(
    "path", [".", ".gitignore", ".github/x", "environment", "a.env", "keyboard", "pegboard.toml.md"]
)
def test_not_denied_by_default(path: str) -> None:
    assert path not in Denied(DEFAULT_DENY)


@pytest.mark.parametrize(
    ("pattern", "paths", "others"),
    [
        ("secrets/*.txt", ["secrets/a.txt", "x/secrets/a.txt", "secrets/a.txt/b"], ["secrets", "secrets/a.md"]),
        ("/build", ["build", "build/x"], ["x/build"]),
        (".*", [".a", "x/.a/y"], [".", "x"]),
        ("**/private/**", ["private", "x/private/y"], ["privates"]),
    ],
)
def test_denied(pattern: str, paths: list[str], others: list[str]) -> None:
    denied = Denied([pattern])
    assert [path for path in [*paths, *others] if path in denied] == paths
    assert copy.deepcopy(denied) == denied


def test_nothing_is_denied_by_no_pattern() -> None:
    assert ".env" not in Denied([])


@pytest.mark.parametrize(
    ("path", "plain"), [("a//b", "a/b"), ("./a/.", "a"), ("a/../b", "b"), ("a/..", "."), ("", "."), ("a/b/../..", ".")]
)
def test_path_without_detours(path: str, plain: str) -> None:
    assert folded(path) == plain


@given(st.lists(st.sampled_from(["a", "b", "..", ".", ""])).map("/".join))
def test_paths_without_detours_have_none(path: str) -> None:
    assert folded(folded(path)) == folded(path)
    assert ".." not in folded(path).split("/")


@pytest.mark.parametrize("name", ["a.txt", "\u4e2d\u6587", "caf\u00e9", "a b", "-x", "\u0645\u06cc\u200c\u062e"])
def test_names_in_every_script_are_not_odd(name: str) -> None:
    assert not is_odd(name)
