"""The forms that public skills have: each is read, and what the specification does not allow is reported."""

from pathlib import Path

import pytest

from pegboard_skills import Skills
from tests.plugins.skills.desk import BODY, board, write_skill
from tests.support.thinning import one_in

# By the name of the folder, which is the skill's name too: the front matter of skills that nothing is wrong with.
GOOD = {
    "plain": "name: plain\ndescription: Reads plain files. Use it for plain files.",
    "quoted": 'name: "quoted"\ndescription: "Says \\"yes\\": always"',
    "single-quoted": "name: 'single-quoted'\ndescription: 'It''s: fine'",
    "folded": "name: folded\ndescription: >\n  Writes long texts\n  in several lines.\n",
    "folded-strip": "name: folded-strip\ndescription: >-\n  Writes long texts: all of them\n  in several lines.",
    "literal": "name: literal\ndescription: |\n  Use it when:\n  - one\n  - two\n",
    "continued": "name: continued\ndescription: Goes on\n  in the next line,\n  and the next.",
    "colon": "name: colon\ndescription: Use it when: somebody asks for: colons",
    "colon-continued": "name: colon-continued\ndescription: Use it when: asked\n  and then: too\nlicense: MIT",
    "apostrophe": "name: apostrophe\ndescription: Doesn't need quotes, and isn't \"quoted\".",
    "hash": "name: hash\ndescription: Issue#1 is no comment # this is one",
    "licensed": "name: licensed\ndescription: Has a license.\nlicense: Complete terms in LICENSE.txt",
    "tools-text": "name: tools-text\ndescription: Wants tools.\nallowed-tools: Bash(git:*) Bash(jq:*) Read",
    "tools-list": "name: tools-list\ndescription: Wants tools.\nallowed-tools:\n  - Bash(git:*)\n  - Read",
    "tools-flow": "name: tools-flow\ndescription: Wants tools.\nallowed-tools: [Read, 'Bash(git:*)']",
    "metadata": 'name: metadata\ndescription: Has more.\nmetadata:\n  author: acme\n  version: "1.0"\n  tags: a, b',
    "nested": "name: nested\ndescription: More.\nmetadata:\n  requires:\n    bins: [gh, jq]\n    env:\n      - TOKEN",
    "unknown-keys": "name: unknown-keys\ndescription: Has more.\nmodel: fast\ndisable-model-invocation: true",
    "compatible": "name: compatible\ndescription: Needs git.\ncompatibility: Requires git, docker and the internet",
    "other-order": "license: MIT\ndescription: Comes first.\nname: other-order",
    "comments": "# for authors\nname: comments # same as the folder\n\ndescription: Has comments and an empty line.",
    "number-1": "name: number-1\ndescription: 2024 was its year.",
    "42": "name: 42\ndescription: 'A name of digits'",
    "null": "name: null\ndescription: true",
    "emoji": "name: emoji\ndescription: 🚀 Launches — “quickly” — 日本語 Дa é",
    "indented-list": "name: indented-list\ndescription: Lists.\ntriggers:\n- one\n- two",
    "unfinished-escape": "name: unfinished-escape\ndescription: Windows paths such as C:\\temp\\new",
    "urls": "name: urls\ndescription: See https://example.com/a?b=c#d for more",
    "braces": "name: braces\ndescription: Fills {{placeholders}} and <angle> & more",
    "long": f"name: long\ndescription: {'word ' * 204}",
    "trailing": "name: trailing   \ndescription:    Has spaces around.   ",
    "a" * 64: f"name: {'a' * 64}\ndescription: The longest name.",
}

# The front matter, the name in the catalog (None: left out), what is reported.
ODD = [
    ("name: other\ndescription: x", "other", "is not that of its folder, 'odd'"),
    (f"name: odd\ndescription: {'x' * 1025}", "odd", "its description has 1,025 characters, more than 1,024"),
    (f"name: odd\ndescription: x\ncompatibility: {'x' * 501}", "odd", "its compatibility has 501 characters"),
    ("name: Odd\ndescription: x", None, "its name 'Odd' has other characters"),
    ("name: odd one\ndescription: x", None, "its name 'odd one' has other characters"),
    ("name: odd_one\ndescription: x", None, "other characters"),
    ("name: ../odd\ndescription: x", None, "other characters"),
    ("name: óдд\ndescription: x", None, "other characters"),
    ("name: ٣\ndescription: x", None, "other characters"),
    ('name: "odd\\n"\ndescription: x', None, "other characters"),
    ('name: "odd\\u202e"\ndescription: x', None, "its name 'odd' has other characters"),
    ("name: [odd]\ndescription: x", None, "other characters"),
    (f"name: {'a' * 65}\ndescription: x", None, "its name has 65 characters, more than 64"),
    ("description: x", None, "it has no name"),
    ("name:\ndescription: x", None, "it has no name"),
    ("name: odd", None, "it has no description"),
    ("name: odd\ndescription:", None, "it has no description"),
    ("name: odd\ndescription: '   '", None, "it has no description"),
    ('name: odd\ndescription: "\\u200b\\u202e"', None, "it has no description"),
    ("name: odd\ndescription: [a, b]", None, "it has no description"),
    ("name: &odd odd\ndescription: *odd", None, "an anchor or an alias"),
    ("name: !!str odd\ndescription: x", None, "a tag"),
    ("name: odd\ndescription: [", None, "no YAML"),
    (f"name: odd\ndescription: x\n{'# filled' * 3_000}", None, "more than 16 kB"),
    ("- name: odd", None, "no mapping"),
]


@pytest.mark.parametrize("name", one_in(3, GOOD))
def test_good_ones_are_loaded(name: str, tmp_path: Path) -> None:
    write_skill(tmp_path / name, f"---\n{GOOD[name]}\n---\n\n{BODY}")
    skills = Skills(tmp_path)
    assert (list(skills.skills), skills.problems) == ([name], [])
    with board(tmp_path) as toolkit:
        assert BODY.strip() in toolkit.call_sync("load_skill", {"name": name}).text


def test_all_of_them_together(tmp_path: Path) -> None:
    for name, front in GOOD.items():
        write_skill(tmp_path / name, f"---\n{front}\n---\n{BODY}")
    with board(tmp_path) as toolkit:
        listed = toolkit["load_skill"].description.partition("<available_skills>\n")[2].splitlines()[:-1]
        assert [line.partition(":")[0] for line in listed] == [f"- {name}" for name in sorted(GOOD)]
        assert toolkit.problems == []


@pytest.mark.parametrize(("front", "name", "problem"), ODD)
def test_odd_ones_are_reported(front: str, name: str | None, problem: str, tmp_path: Path) -> None:
    write_skill(tmp_path / "odd", f"---\n{front}\n---\n{BODY}")
    write_skill(tmp_path / "plain", f"---\n{GOOD['plain']}\n---\n{BODY}")
    with board(tmp_path) as toolkit:
        names = [group.name.removeprefix("skill:") for group in toolkit.groups]
        assert names == sorted({"plain"} | ({name} if name else set()))
        (reported,) = toolkit.problems
        assert reported.startswith(f"{tmp_path}/odd: ")
        assert problem in reported
        assert ("left out" in reported) is (name is None)


@pytest.mark.parametrize("name", ["odd-", "-odd", "odd--one", "-"])
def test_hyphens_at_odd_places_are_reported(name: str, tmp_path: Path) -> None:
    skills = Skills(write_skill(tmp_path / name, f"---\nname: {name!r}\ndescription: x\n---\n"))
    assert list(skills.skills) == [name]
    assert skills.problems == [
        f"{tmp_path}/{name}: its name {name!r} begins or ends with a hyphen, or has two in a row"
    ]


@pytest.mark.parametrize("ending", ["", "\n", "\n\nBody: with colons\n---\nand hyphens\n"])
def test_any_body_is_taken(ending: str, tmp_path: Path) -> None:
    write_skill(tmp_path / "plain", f"---\n{GOOD['plain']}\n---{ending}")
    with board(tmp_path) as toolkit:
        result = toolkit.call_sync("load_skill", {"name": "plain"})
        assert (result.status, result.data["text"]) == ("success", ending.strip())


def test_what_has_no_front_matter_or_is_no_text_is_reported(tmp_path: Path) -> None:
    write_skill(tmp_path / "bare", "# Only a body\n")
    (tmp_path / "latin").mkdir()
    (tmp_path / "latin" / "SKILL.md").write_bytes("---\nname: latin\ndescription: é\n---\n".encode("latin-1"))
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "SKILL.md").write_text(f"---\nname: large\ndescription: x\n---\n{'x' * 1_000_000}")
    problems = "\n".join(Skills(tmp_path).problems)
    assert "bare: it is left out: it has no front matter" in problems
    assert "latin: it is left out: SKILL.md is not UTF-8" in problems
    assert "large: it is left out: large/SKILL.md has more than 1,000,000 bytes" in problems
