"""What tools say is text: sixty payloads in every place that a tool can write to, and none of them runs."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pegboard import (
    DataBlock,
    Emitter,
    FileBlock,
    ImageBlock,
    LinkBlock,
    TextBlock,
    Tool,
    ToolCall,
    ToolError,
    Toolkit,
    ToolOutput,
)
from tests.plugins.inspector.served import Client

pytestmark = pytest.mark.slow

HANDLERS = ["onerror", "onload", "onclick", "onmouseover", "onfocus", "onanimationstart", "ontoggle", "onbeforetoggle"]
PAYLOADS = [
    "<script>hit()</script>",
    "<SCRIPT SRC=data:text/javascript,hit()></SCRIPT>",
    "<script type=module>hit()</script>",
    "<script/xss>hit()</script>",
    "</script><script>hit()</script>",
    "</title><script>hit()</script>",
    "</textarea><script>hit()</script>",
    "</style><script>hit()</script>",
    "</pre></code><script>hit()</script>",
    "--><script>hit()</script><!--",
    "]]><script>hit()</script>",
    "<scr<script>ipt>hit()</scr</script>ipt>",
    "<noscript><p title='</noscript><script>hit()</script>'>",
    "<template><script>hit()</script></template>",
    *(f"<img src=x {handler}=hit()>" for handler in HANDLERS),
    "<img src='x' onerror='hit()'//",
    "\"><img src=x onerror=hit()>",
    "'><img src=x onerror=hit()>",
    "`><img src=x onerror=hit()>",
    "\" autofocus onfocus=hit() x=\"",
    "' autofocus onfocus=hit() x='",
    "<svg onload=hit()>",
    "<svg><script>hit()</script></svg>",
    "<svg><animate onbegin=hit() attributeName=x dur=1s>",
    "<svg><use href='data:image/svg+xml,<svg id=x onload=hit()>#x'>",
    "<math><mtext><script>hit()</script></mtext></math>",
    "<math href='javascript:hit()'>x</math>",
    "<iframe src='javascript:hit()'></iframe>",
    "<iframe srcdoc='<script>parent.hit()</script>'></iframe>",
    "<object data='javascript:hit()'></object>",
    "<embed src='javascript:hit()'>",
    "<a href='javascript:hit()'>x</a>",
    "<form action='javascript:hit()'><button autofocus>x</button></form>",
    "<button formaction='javascript:hit()'>x</button>",
    "<details open ontoggle=hit()>",
    "<video autoplay onloadstart=hit() src=x></video>",
    "<audio src=x onerror=hit()>",
    "<body onload=hit()>",
    "<input autofocus onfocus=hit()>",
    "<select autofocus onfocus=hit()>",
    "<marquee onstart=hit()>",
    "<style>@import 'javascript:hit()';</style>",
    "<style onload=hit()>*{}</style>",
    "<link rel=stylesheet href='javascript:hit()' onerror=hit()>",
    "<meta http-equiv=refresh content='0;url=javascript:hit()'>",
    "<base href='javascript:hit()//'>",
    "javascript:hit()",
    "JaVaScRiPt:hit()",
    " javascript:hit()",
    "java\tscript:hit()",
    "data:text/html,<script>parent.hit()</script>",
    "vbscript:hit()",
    "[x](javascript:hit())",
    "![x](x\" onerror=\"hit())",
    "{{constructor.constructor('hit()')()}}",
    "${hit()}",
    r"\u003cscript\u003ehit()\u003c/script\u003e",
    "&lt;script&gt;hit()&lt;/script&gt;<script>hit()</script>",
    "\u2028<script>hit()</script>\u2029",
    "\x00<script>hit()</script>",
    "<img src=x onerror=\u0000hit()>",
    "x" * 3000 + "<script>hit()</script>",
]  # fmt: skip
NOTHING = "script:not([src='/page/app.js']), iframe, object, embed, base, meta[http-equiv], style, svg, math, marquee"
PROTOTYPES = ["__proto__", "constructor", "toString", "hasOwnProperty"]


def hostile(payload: str, number: int) -> Tool:
    """A tool that writes the payload wherever it can."""
    schema = {
        "type": "object",
        "properties": {
            payload: {"type": "string", "description": payload, "default": payload},
            "choice": {"enum": [payload, "b"], "title": payload},
            "one": {"anyOf": [{"type": "integer", "title": payload}, {"$ref": f"#/$defs/{number}"}]},
            "list": {"type": "array", "items": {"type": "string", "examples": [payload]}},
        },
        "$defs": {str(number): {"type": "object", "title": payload, "properties": {payload: {"type": "string"}}}},
    }
    return Tool.external(f"hostile_{number}", payload, schema)


def board() -> Toolkit:
    toolkit = Toolkit(plugins=())
    for number, payload in enumerate(PAYLOADS):
        toolkit.register(hostile(payload, number))

    def say(number: int, emitter: Emitter, call: ToolCall) -> Any:
        payload = PAYLOADS[number]
        emitter.progress(1, 2, payload)
        emitter.emit(payload)
        call.log(payload)
        blocks = [
            TextBlock(payload),
            DataBlock([{payload: payload}]),
            DataBlock({payload: [payload]}),
            LinkBlock(payload, payload, payload, payload),
            LinkBlock("javascript:hit()", payload),
            ImageBlock(url=payload),
            ImageBlock(data="PHN2ZyBvbmxvYWQ9ImhpdCgpIi8+", media_type="image/svg+xml"),
            ImageBlock(data="PHN2ZyBvbmxvYWQ9ImhpdCgpIi8+", media_type="text/html"),
            FileBlock(data="PHNjcmlwdD5oaXQoKTwvc2NyaXB0Pg==", media_type=payload, name=payload),
        ]
        return ToolOutput(blocks, metadata={payload: payload}, attachments=(TextBlock(payload),))

    def fail(number: int) -> str:
        raise ToolError(PAYLOADS[number])

    toolkit.register(say, fail)
    toolkit.create_group("<img src=x onerror=hit()>", "<img src=x onerror=hit()>", active=False)
    toolkit.register(lambda: 1, name="grouped", group="<img src=x onerror=hit()>")
    return toolkit


@pytest.fixture
def watched(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> tuple[Any, Client, list[str]]:
    """The page of the hostile board, and what ran in it."""
    hits: list[str] = []
    client = inspected(board())
    page = open_page(client)
    page.context.expose_function("hit", lambda: hits.append("hit"))

    def dismiss(dialog: Any) -> None:
        hits.append("dialog")
        dialog.dismiss()

    def left(frame: Any) -> None:
        if not frame.url.startswith(client.origin):
            hits.append(frame.url)

    page.on("dialog", dismiss)
    page.on("framenavigated", left)
    page.reload()
    page.locator("#tools li").first.wait_for()
    page.evaluate("""() => {
      window.violations = [];
      document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
    }""")
    client.headers["cookie"] = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
    client.headers["x-pegboard-key"] = page.evaluate("localStorage.getItem('key')")
    return page, client, hits


def open_all(page: Any) -> None:
    """Open whatever can be opened: it is made only then."""
    page.evaluate("document.querySelectorAll('main details').forEach((each) => (each.open = true))")


ASIDE = """new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(window.violations), 0)))"""
HANDLING = """[...document.querySelectorAll("*")].flatMap((each) => [...each.attributes]).filter((each) =>
  each.name.startsWith("on")).length"""
ELSEWHERE = """[...document.querySelectorAll("a")].filter((each) =>
  !["http:", "https:"].includes(new URL(each.href).protocol)).length"""


def settled(page: Any, hits: list[str]) -> None:
    """Nothing ran, nothing tried to, and nothing became an element that could."""
    assert page.evaluate(ASIDE) == []
    assert page.locator(NOTHING).count() == 0
    assert page.evaluate(HANDLING) == 0
    assert page.evaluate(ELSEWHERE) == 0
    assert hits == []


def test_there_are_sixty() -> None:
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 60


def test_descriptions_schemas_and_forms(watched: tuple[Any, Client, list[str]]) -> None:
    page, _, hits = watched
    base = page.url.partition("#")[0]
    for number in range(len(PAYLOADS)):
        page.goto(f"{base}#/tools/hostile_{number}")
        page.get_by_role("heading", name=f"hostile_{number}", exact=True).wait_for()
        page.get_by_role("button", name="Run", exact=True).wait_for()
        for button in page.get_by_role("button", name="Add item").all():
            button.click()
        for select in page.get_by_role("combobox", name="Kind").all():
            select.select_option(index=1)
        open_all(page)
        settled(page, hits)


def test_results_errors_and_progress(watched: tuple[Any, Client, list[str]]) -> None:
    page, client, hits = watched
    base = page.url.partition("#")[0]
    for first in range(0, len(PAYLOADS), 10):
        page.goto(f"{base}#/tools/fail")
        page.goto(f"{base}#/calls")
        page.get_by_role("heading", name="Calls").wait_for()
        for number in range(first, min(first + 10, len(PAYLOADS))):
            client.ended(client.call("fail", number=number))
            client.ended(client.call("say", number=number))
        page.wait_for_function(
            "wanted => document.querySelectorAll('article .result').length >= wanted", arg=min(2 * (first + 1), 40)
        )
        open_all(page)
        settled(page, hits)
    shown = page.locator("main").inner_text()
    assert PAYLOADS[-2] in shown or "hit()" in shown, "they are there, as text"


def test_the_address_groups_and_arguments(watched: tuple[Any, Client, list[str]]) -> None:
    page, client, hits = watched
    base = page.url.partition("#")[0]
    for payload in PAYLOADS[:30:3]:
        page.goto(f"{base}#/tools/{payload}")
        page.get_by_text("there is no tool").first.wait_for()
        client.ended(client.post("calls", name=payload, arguments=json.dumps({payload: payload})).data["id"])
    page.goto(f"{base}#/calls")
    page.wait_for_function("() => document.querySelectorAll('article .result').length >= 10")
    settled(page, hits)
    page.goto(f"{base}#/board")
    page.get_by_label("<img src=x onerror=hit()>").check()
    page.goto(f"{base}#/tools/grouped")
    page.get_by_role("heading", name="grouped").wait_for()
    settled(page, hits)


def test_names_of_the_language_are_names(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> None:
    toolkit = Toolkit(plugins=())
    members = {name: {"type": "string"} for name in PROTOTYPES}
    toolkit.register(Tool.external("odd", "Odd", {"type": "object", "properties": members, "required": PROTOTYPES}))
    client = inspected(toolkit)
    page = open_page(client)
    page.get_by_role("link", name="odd").click()
    for name in PROTOTYPES:
        page.get_by_label(name, exact=True).fill(name.upper())
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("waits for an answer", exact=True).wait_for()
    assert toolkit.pending[0].arguments == {name: name.upper() for name in PROTOTYPES}
