"""HTML as Markdown: what a page says stays, what stands around it goes, and hostile pages end with a sentence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_web import _html
from tests.plugins.net.servers import Server, answer
from tests.plugins.web.desk import board, fetch, html, page
from tests.support.thinning import first


def text_of(body: str, head: str = "") -> str:
    given = {"html": f"<html><head>{head}</head><body>{body}</body></html>", "url": "https://example.com/docs/"}
    return _html.read({**given, "article": False})["text"]


AROUND = "<nav>Menu</nav><aside>Ads</aside><footer>Imprint</footer><script>alert(1)</script><style>p {}</style>"


class TestParts:
    def test_what_stands_around_goes(self) -> None:
        assert text_of(f"{AROUND}<h1>Title</h1><p>{'Words. ' * 20}</p>") == f"# Title\n\n{('Words. ' * 20).strip()}"

    @pytest.mark.parametrize("tag", ["main", "article", "div role=main"])
    def test_the_main_part(self, tag: str) -> None:
        name = tag.partition(" ")[0]
        assert text_of(f"<header>Brand</header><{tag}><h2>Part</h2><p>{'Words. ' * 20}</p></{name}>").startswith(
            "## Part"
        )

    def test_a_small_main_part_is_none(self) -> None:
        assert "Everything" in text_of(f"<main>x</main><div>{'Everything. ' * 20}</div>")

    def test_of_several_articles_all_are_read(self) -> None:
        assert text_of("<article>One</article><article>Two</article>") == "One\n\nTwo"

    def test_a_page_in_a_form_is_read(self) -> None:
        assert "Everything" in text_of(f"<form><p>{'Everything. ' * 20}</p></form>")

    def test_header_links_of_documentation(self) -> None:
        assert text_of('<main><h2>Use<a class="headerlink" href="#use">¶</a></h2></main>') == "## Use"

    def test_code_keeps_its_blank_lines_and_has_no_cross_references(self) -> None:
        code = 'a = 1\n\n\nb = <a href="ref.html#b">b</a>'
        assert text_of(f"<pre>{code}</pre>") == "```\na = 1\n\n\nb = b\n```"

    def test_a_list_of_files_keeps_its_links(self) -> None:
        assert "[a-long-na..](https://example.com/docs/a.txt)" in text_of('<pre><a href="a.txt">a-long-na..</a></pre>')

    def test_hidden_text_is_not_read(self) -> None:
        assert text_of("<p>Seen<p hidden>Not<p aria-hidden=true>Nor<p style='display:none'>Neither") == "Seen"

    def test_titles(self) -> None:
        title = _html.read({"html": "<title> A\n title </title><h1>B</h1>", "url": "", "article": False})["title"]
        assert title == "A title"
        assert _html.read({"html": "<h1>B</h1>", "url": "", "article": False})["title"] == "B"


WORDS = st.text("abcdefghij", min_size=1, max_size=8)
CODE = st.lists(st.text("abc(){}=+ <>&\"'#*_`", min_size=1, max_size=20), min_size=1, max_size=4).map("\n".join)
BLOCKS = st.lists(
    st.one_of(
        st.tuples(st.just("code"), CODE),
        st.tuples(st.sampled_from(["h1", "h2", "h3", "h4"]), WORDS),
        st.tuples(st.just("p"), WORDS),
    ),
    min_size=1,
    max_size=12,
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@given(BLOCKS)
def test_code_headings_and_words_of_documentation_stay_in_order(blocks: list[tuple[str, str]]) -> None:
    tags = {"code": "<pre><code>{}</code></pre>"}
    body = "".join(tags.get(kind, f"<{kind}>{{}}</{kind}>").format(escaped(text)) for kind, text in blocks)
    text, at = text_of(f"{AROUND}<main>{body}</main>"), 0
    for kind, said in blocks:
        if kind == "code":
            wanted = "\n".join(line.rstrip() for line in said.strip("\n").splitlines()).strip()
        else:
            wanted = f"{'#' * int(kind[1])} {said}" if kind != "p" else said
        flat = re.sub(r"[ \t]+\n", "\n", text)
        found = flat.find(wanted, at)
        assert found >= 0, (wanted, text)
        at = found + len(wanted)


HOSTILE = {
    "many marks": "<p>" * 300_000,
    "entities": "&amp;" * 300_000,
    "attributes": "<p " + " ".join(f"a{number}=1" for number in range(200_000)) + ">",
    "long": "x" * 3_000_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_page_that_is_too_much(kind: str) -> None:
    with pytest.raises(_html.TooMuchError, match=r"^it has "):
        _html.read({"html": HOSTILE[kind], "url": "", "article": False})


def test_it_is_told_to_the_model_and_the_program_goes_on(web: Server) -> None:
    url = web.sends("/a", html("&amp;" * 300_000))
    with board(robots=False) as toolkit:
        assert fetch(toolkit, url).text == (
            f"{url} cannot be made text: it has 300,000 times '&', and at most 100,000 are read. "
            "Send content='raw' for its HTML."
        )
        assert page(toolkit, web.sends("/b", html("<p>Fine")))["text"] == "Fine"


DEEP = ("<div>" * 40_000, "<b><i>" * 20_000, "<table><tr><td>" * 8_000, "<ul><li>" * 20_000, "<a href=x>" * 40_000)


@pytest.mark.parametrize("body", first(1, [pytest.param(body, id=body[:20]) for body in DEEP]))
def test_deep_pages_end(web: Server, body: str) -> None:
    url = web.sends("/a", answer(body.encode(), Content_Type="text/html"))
    with board(robots=False, timeout=5) as toolkit:
        result = fetch(toolkit, url)
        assert result.status == "success" or "cannot be made text" in result.text
        assert page(toolkit, web.sends("/b", html("<p>Fine")))["text"] == "Fine"


@given(st.text(max_size=300))
def test_anything_is_read(text: str) -> None:
    assert isinstance(_html.read({"html": text, "url": "https://example.com/", "article": False})["text"], str)
