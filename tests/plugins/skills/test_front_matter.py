"""Front matter: what is read, what is refused, and that nothing else happens whatever it holds."""

import time

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard_skills._front_matter import FrontMatterError, read_front_matter, split_text

PLAIN = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=30)


def read(front: str) -> dict[str, object]:
    return dict(read_front_matter(front))


class TestSplitting:
    @pytest.mark.parametrize(
        "text",
        [
            "---\nname: x\n---\nBody",
            "\ufeff---\nname: x\n---\nBody",
            "---\r\nname: x\r\n---\r\nBody",
            "---  \nname: x\n---\t\nBody",
        ],
    )
    def test_finds_both_parts(self, text: str) -> None:
        front, start = split_text(text)
        assert (front.strip(), text[start:]) == ("name: x", "Body")

    def test_ends_at_the_first_line_of_hyphens(self) -> None:
        text = "---\nname: x\nnote: a --- b\n---\nBody\n---\nmore"
        assert text[split_text(text).start :] == "Body\n---\nmore"
        assert split_text("---\n---").front == ""

    @pytest.mark.parametrize(
        "text", ["", "Body", "---", "---\nname: x", "\n---\nname: x\n---\n", "----\nname: x\n----\n"]
    )
    def test_says_where_there_is_none(self, text: str) -> None:
        with pytest.raises(FrontMatterError, match="no front matter: name and description between"):
            split_text(text)

    def test_takes_16_kb_and_no_more(self) -> None:
        assert len(split_text(f"---\n{'x' * 16_383}\n---\n").front) == 16_384
        for text in (f"---\n{'x' * 16_384}\n---\n", f"---\n{'é' * 8_192}\n---\n", "---\n" + "x\n" * 1_000_000):
            with pytest.raises(FrontMatterError, match="more than 16 kB"):
                split_text(text)

    @given(st.text(st.sampled_from("-\n\r \tx\ufeff"), max_size=40), st.text(max_size=20))
    def test_never_fails_otherwise(self, head: str, tail: str) -> None:
        try:
            front, start = split_text(head + tail)
        except FrontMatterError:
            return
        assert (head + tail)[:start].rstrip("\r\n \t").endswith("---")
        assert front in (head + tail)[:start]


class TestValues:
    @pytest.mark.parametrize(
        ("front", "values"),
        [
            ("name: pdf\ndescription: Reads PDFs.\n", {"name": "pdf", "description": "Reads PDFs."}),
            ("description: >-\n  One\n  line.\n", {"description": "One line."}),
            ("description: |\n  Two\n  lines.\n", {"description": "Two\nlines.\n"}),
            ('description: "It\'s \\"quoted\\"."\n', {"description": 'It\'s "quoted".'}),
            ("description: 'It''s: fine'\n", {"description": "It's: fine"}),
            ("description: Plain\n  in two lines.\n", {"description": "Plain in two lines."}),
            (
                "version: 1.0\non: yes\ndate: 2026-01-01\nempty:\n",
                {"version": "1.0", "on": "yes", "date": "2026-01-01", "empty": ""},
            ),
            ("metadata:\n  author: acme\n  tags: [a, b]\n", {"metadata": {"author": "acme", "tags": ["a", "b"]}}),
            ("allowed-tools: Bash(git:*) Read\n", {"allowed-tools": "Bash(git:*) Read"}),
            ("allowed-tools:\n  - Bash(git:*)\n  - Read\n", {"allowed-tools": ["Bash(git:*)", "Read"]}),
            ("# a comment\nname: x # another\n", {"name": "x"}),
            ("name: x\nname: y\n", {"name": "y"}),
            ("<<: {name: x}\n", {"<<": {"name": "x"}}),
            ("", {}),
            ("# nothing\n", {}),
        ],
    )
    def test_are_texts_lists_and_mappings(self, front: str, values: dict[str, object]) -> None:
        assert read(front) == values

    @pytest.mark.parametrize(
        ("front", "description"),
        [
            ("description: Use when: a PDF is there\n", "Use when: a PDF is there"),
            ("name: x\ndescription: Use it for: this\nlicense: MIT\n", "Use it for: this"),
            ("description: Ends with a colon:\n", "Ends with a colon:"),
            ("description: Use when: it is 'so' & \"so\" # really\n", "Use when: it is 'so' & \"so\" # really"),
            ("description: Use when: one\n  and more: two\nname: x\n", "Use when: one and more: two"),
            ("description: Use when: so\r\nname: x\r\n", "Use when: so"),
        ],
    )
    def test_colons_that_are_not_quoted_are_read_on_a_second_try(self, front: str, description: str) -> None:
        assert read(front)["description"] == description

    @given(st.dictionaries(st.from_regex(r"[a-z][a-z-]{0,9}", fullmatch=True), PLAIN | st.lists(PLAIN, max_size=3)))
    def test_come_back_as_they_were_written(self, values: dict[str, object]) -> None:
        assert read(yaml.safe_dump(values, allow_unicode=True)) == values

    @given(PLAIN, PLAIN)
    def test_any_description_with_a_colon_is_read(self, first: str, second: str) -> None:
        front = f"name: x\ndescription: Use {first}: {second}\n"
        assert read(front)["name"] == "x"


class TestRefusals:
    @pytest.mark.parametrize(
        ("front", "reason"),
        [
            ("a: &x 1\n", r"an anchor or an alias \(line 2\)"),
            ("name: x\na: [&x 1, *x]\n", r"an anchor or an alias \(line 3\)"),
            ("a: *x\n", "an anchor or an alias"),
            ("a: &x {b: *x}\n", "an anchor or an alias"),
            ("a: !!python/object/apply:os.system [id]\n", r"a tag \(line 2\)"),
            ("a: !secret x\n", "a tag"),
            ("!!map {a: b}\n", "a tag"),
            ("a: " + "[" * 9 + "]" * 9 + "\n", "more than 8 levels"),
            ("a: " + "[" * 16_000 + "\n", "more than 8 levels"),
            ("a: " + "{x: " * 4_000 + "\n", "more than 8 levels"),
            ("? [a]\n: b\n", "a key that is no text"),
            ("- a\n- b\n", "no mapping: write name: and description:"),
            ("just text\n", "no mapping"),
            ("a: b\n...\nc: d\n", "no YAML|several documents"),
            ("a: 'b\n", "no YAML"),
            ("a: [b\n", "no YAML"),
            ("\ta: b\n", "no YAML"),
            ("a: \x07\n", "no YAML"),
            ('a: "\\UFFFFFFFF"\n', "no YAML"),
            ("%YAML " + "9" * 5_000 + ".1\n--- a\n", "no YAML"),
        ],
    )
    def test_say_what_and_where(self, front: str, reason: str) -> None:
        with pytest.raises(FrontMatterError, match=reason):
            read(front)

    def test_a_bomb_of_merges_is_refused_at_once(self) -> None:
        levels = [f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)]
        begun = time.process_time()
        with pytest.raises(FrontMatterError, match="anchor"):
            read("a0: &a0 {x: y}\n" + "".join(levels))
        assert time.process_time() - begun < 1

    @given(st.text(st.sampled_from(list("ab:-?,[]{}&*!|>'\"%@`#\n \t\\\r0.~<=")), max_size=60))
    @example("a: &b\n")
    @example('"\\ud800": x')
    def test_nothing_else_is_raised(self, front: str) -> None:
        try:
            values = read(front)
        except FrontMatterError as error:
            values = {str(error): None}
        assert all(isinstance(key, str) for key in values)

    @pytest.mark.parametrize(
        "pattern", ["? ", "- ", "a: ", "'", "[", "{", "#", " ", "\t", "a: b\n", "%A\n", "|", "a:\n "]
    )
    def test_no_pattern_takes_long(self, pattern: str) -> None:
        begun = time.process_time()
        with pytest.raises(FrontMatterError):
            read(pattern * (16_000 // len(pattern)) + "\n\x07")
        assert time.process_time() - begun < 3
