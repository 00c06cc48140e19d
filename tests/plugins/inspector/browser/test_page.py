"""What a user does with the page."""

import json
import re
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import pytest

from pegboard import ImageBlock, Param, Tool, Toolkit, tool
from tests.plugins.inspector.program import board
from tests.plugins.inspector.served import Client
from tests.support.plugin_site import Site, fresh_site

pytestmark = pytest.mark.slow

CHANGING_SERVER = Path(__file__).parents[1] / "changing_server.py"


def go(page: Any, name: str) -> None:
    """Open a tool by its link."""
    page.get_by_role("searchbox").fill(name)
    page.get_by_role("link", name=name).first.click()
    page.get_by_role("heading", name=name, level=1).wait_for()
    page.get_by_role("button", name="Run", exact=True).wait_for()


def run(page: Any, status: str = "success") -> Any:
    """Run the tool that is open, and wait for its end, and for its result to be shown: the card of the call."""
    cards = page.get_by_role("article")
    before = cards.count()
    page.get_by_role("button", name="Run", exact=True).click()
    page.wait_for_function("before => document.querySelectorAll('article').length > before", arg=before)
    card = cards.first
    card.get_by_text(status, exact=True).wait_for()
    card.locator('.outcome[aria-busy="false"]').wait_for(state="attached")
    return card


def sent(card: Any) -> Any:
    """The arguments that a card shows."""
    if not card.locator("details").first.get_attribute("open"):
        card.get_by_text("Arguments", exact=True).first.click()
    return json.loads(card.get_by_role("group", name="Arguments").inner_text())


class TestTools:
    def test_are_listed_and_found(self, page: Any) -> None:
        assert page.locator("#tools li").count() == 12
        page.get_by_role("searchbox").fill("weather")
        page.get_by_text("1 of 12 tools").wait_for()
        assert page.locator("#tools .name").all_inner_texts() == ["forecast"]
        page.get_by_role("searchbox").fill("nothing like it")
        page.get_by_text("0 of 12 tools").wait_for()

    def test_of_a_group_are_shown_alone(self, page: Any) -> None:
        page.get_by_role("combobox", name="Show").select_option("archive (inactive)")
        assert page.locator("#tools .name").all_inner_texts() == ["find_letter"]

    def test_the_address_loses_the_token(self, page: Any) -> None:
        assert "token" not in page.url

    def test_one_that_is_gone_is_said(self, page: Any) -> None:
        page.goto(page.url.partition("#")[0] + "#/tools/nobody")
        page.get_by_text("there is no tool 'nobody'").wait_for()
        page.goto(page.url.partition("#")[0] + "#/tools/%no")
        page.get_by_text("there is no tool '%no'").wait_for()

    def test_shows_what_a_model_gets(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_text("openai · about").first.click()
        shown = page.get_by_role("group", name="openai", exact=True).inner_text()
        assert json.loads(shown)["function"]["name"] == "forecast"
        page.get_by_role("link", name="Model").click()
        page.get_by_text("11 definitions, about").wait_for()
        page.get_by_role("link", name="gemini").click()
        page.get_by_text("forecast · about").wait_for()


class TestForm:
    def test_a_call_with_what_was_entered_and_nothing_else(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_label("city").fill("Oslo")
        card = run(page)
        assert sent(card) == {"city": "Oslo"}
        assert card.get_by_role("table").get_by_role("row").count() == 3
        page.get_by_label("days").fill("1")
        page.get_by_label("unit").select_option("fahrenheit")
        card = run(page)
        assert sent(card) == {"city": "Oslo", "days": 1, "unit": "fahrenheit"}
        page.get_by_role("button", name="Leave out").first.click()
        page.get_by_label("unit").select_option("left out")
        assert sent(run(page)) == {"city": "Oslo"}

    def test_nested_lists_and_objects(self, page: Any) -> None:
        go(page, "plan_trip")
        page.get_by_role("button", name="Add item").last.click()
        page.get_by_label("city").fill("Bergen")
        page.get_by_label("nights").fill("2")
        page.get_by_role("button", name="Add item").first.click()
        page.get_by_label("1", exact=True).fill("rain")
        page.get_by_label("start").fill("2026-06-01")
        page.get_by_label("Kind").select_option("text")
        page.get_by_label("budget").fill("little")
        assert sent(run(page)) == {
            "stops": [{"place": {"city": "Bergen"}, "nights": 2, "tags": ["rain"]}],
            "start": "2026-06-01",
            "budget": "little",
        }

    def test_what_is_wrong_stands_beside_the_field(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_label("days").fill("many")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("an integer is required").wait_for()
        assert page.get_by_role("article").count() == 0
        page.get_by_label("days").fill("99")
        run(page, "invalid")
        field = page.get_by_label("days")
        page.locator(".error", has_text="got integer 99").wait_for()
        assert field.get_attribute("aria-invalid") == "true"
        assert field.evaluate("field => field === document.activeElement")
        field.fill("3")
        run(page)
        assert field.get_attribute("aria-invalid") is None

    def test_a_problem_inside_is_told_where_it_is(self, page: Any) -> None:
        go(page, "plan_trip")
        page.get_by_role("button", name="JSON", exact=True).click()
        page.get_by_label("Arguments as JSON").fill('{"stops": [{"place": {"city": "x"}, "nights": 77, "tags": []}]}')
        page.get_by_role("button", name="Form", exact=True).click()
        page.get_by_label("start").fill("2026-06-01")
        run(page, "invalid")
        page.locator(".error", has_text="got integer 77").wait_for()
        assert page.get_by_label("nights").get_attribute("aria-invalid") == "true"

    def test_json_is_the_other_view_and_sent_as_it_is_written(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_label("city").fill("Oslo")
        page.get_by_role("button", name="JSON", exact=True).click()
        raw = page.get_by_label("Arguments as JSON")
        assert json.loads(raw.input_value()) == {"city": "Oslo"}
        raw.fill('{"city": "Rome", "days": 1}')
        page.get_by_role("button", name="Form", exact=True).click()
        assert page.get_by_label("city").input_value() == "Rome"
        page.get_by_role("button", name="JSON", exact=True).click()
        raw.fill('{"city": ')
        page.get_by_role("button", name="Form", exact=True).click()
        page.get_by_text("The form cannot show this").wait_for()
        run(page, "invalid")

    def test_what_stood_there_is_there_again(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_label("city").fill("Oslo")
        go(page, "fail")
        go(page, "forecast")
        assert page.get_by_label("city").input_value() == "Oslo"

    def test_items_without_a_value_keep_their_places(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
    ) -> None:
        def place(where: tuple[int, int, str], marks: list[int]) -> str:
            return f"{where} {marks}"

        toolkit = Toolkit(plugins=())
        toolkit.register(place)
        toolkit.register(lambda: 1, name="another")
        page = open_page(inspected(toolkit))
        go(page, "place")
        page.get_by_label("2", exact=True).fill("7")
        page.get_by_label("3", exact=True).fill("north")
        page.get_by_role("button", name="Add item").click()
        page.get_by_role("button", name="JSON", exact=True).click()
        raw = page.get_by_label("Arguments as JSON")
        assert json.loads(raw.input_value()) == {"where": [None, 7, "north"], "marks": [None]}
        page.get_by_role("button", name="Form", exact=True).click()
        go(page, "another")
        go(page, "place")
        assert page.get_by_label("3", exact=True).input_value() == "north"
        page.get_by_label("1", exact=True).nth(1).fill("5")
        page.get_by_label("1", exact=True).nth(0).fill("6")
        assert sent(run(page)) == {"where": [6, 7, "north"], "marks": [5]}

    def test_example_and_edit_fill_the_form(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_role("button", name="Example").click()
        assert page.get_by_label("city").input_value() == "Oslo"
        run(page)
        page.get_by_label("city").fill("Rome")
        page.get_by_role("button", name="Edit").click()
        assert page.get_by_label("city").input_value() == "Oslo"

    def test_every_kind_of_field_by_hand(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client], tmp_path: Path
    ) -> None:
        def every(
            whole: int, real: float, flag: bool, words: str, raw: bytes, table: dict[str, int], some: Any = None
        ) -> str:
            return raw.decode()

        toolkit = Toolkit(plugins=())
        toolkit.register(every)
        page = open_page(inspected(toolkit))
        go(page, "every")
        page.get_by_label("whole").fill(str(2**70))
        page.get_by_label("real").fill("-1.50")
        page.get_by_label("flag").check()
        page.get_by_label("words").fill("two\nlines")
        (tmp_path / "note.txt").write_bytes(b"from a file")
        page.get_by_label("Take a file").set_input_files(tmp_path / "note.txt")
        page.wait_for_function(
            "() => [...document.querySelectorAll('textarea')].some((each) => each.value.startsWith('ZnJv'))"
        )
        page.get_by_role("button", name="Add entry").click()
        page.get_by_label("Key").fill("a")
        page.get_by_label("Value").fill("1")
        page.get_by_label("some").fill('{"x": [1]}')
        card = run(page)
        assert sent(card) == {
            "whole": 2**70, "real": -1.5, "flag": True, "words": "two\nlines", "raw": "ZnJvbSBhIGZpbGU=",
            "table": {"a": 1}, "some": {"x": [1]},
        }  # fmt: skip
        assert card.get_by_role("group", name="Result").inner_text() == "from a file"

    def test_a_password_is_hidden_and_sent_again(self, page: Any) -> None:
        go(page, "sign_in")
        page.get_by_label("user").fill("ada")
        page.get_by_label("password").fill("hunter2!")
        assert page.get_by_label("password").get_attribute("type") == "password"
        run(page)
        page.get_by_role("button", name="Run again").click()
        page.locator("article").nth(1).wait_for()
        page.get_by_text("ada signed in with ***").nth(1).wait_for()
        assert "hunter2" not in page.locator("body").inner_text()


class TestCalls:
    def test_progress_and_output_are_seen_while_it_runs(self, page: Any) -> None:
        go(page, "copy_files")
        page.get_by_label("pause").fill("0.3")
        page.get_by_role("button", name="Run", exact=True).click()
        card = page.get_by_role("article").first
        card.get_by_role("progressbar").wait_for()
        card.get_by_text("copying file 2", exact=True).wait_for()
        assert card.get_by_text("success", exact=True).count() == 0
        card.get_by_text("success", exact=True).wait_for()
        assert not card.get_by_role("progressbar").is_visible()

    def test_is_cancelled(self, page: Any) -> None:
        go(page, "wait_for_ever")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("cancelled", exact=True).wait_for()

    @pytest.mark.parametrize(("answer", "status"), [("Approve", "success"), ("Deny", "denied")])
    def test_is_approved_or_denied(self, page: Any, answer: str, status: str) -> None:
        go(page, "delete_file")
        page.get_by_label("path").fill("/etc/hosts")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_role("link", name="Board", exact=True).click()  # an approval is seen wherever one looks
        page.get_by_text("delete_file asks for approval").wait_for()
        page.get_by_role("button", name=answer).click()
        page.get_by_role("link", name="Calls").click()
        page.get_by_text(status, exact=True).wait_for()
        assert page.get_by_role("button", name="Approve").count() == 0

    def test_is_approved_with_other_arguments(self, page: Any) -> None:
        go(page, "delete_file")
        page.get_by_label("path").fill("a")
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_label("What it is called with").fill('{"path": "b"}')
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("deleted b").wait_for()

    def test_is_copied_and_run_again(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_label("city").fill("Oslo's")
        card = run(page)
        card.get_by_text("Use it elsewhere").click()
        card.get_by_text("await toolkit").wait_for()
        assert 'await toolkit.call("forecast", {"city": "Oslo\'s"})' in card.inner_text()
        assert """pegboard call forecast '{"city":"Oslo'"'"'s"}'""" in card.inner_text()
        card.get_by_role("button", name="Run again").click()
        page.locator("article").nth(1).wait_for()
        page.reload()  # the history is the server's
        page.locator("article").nth(1).wait_for()

    def test_a_secret_is_not_put_back_into_the_form(self, page: Any) -> None:
        go(page, "sign_in")
        page.get_by_label("user").fill("ada")
        page.get_by_label("password").fill("hunter2!")
        run(page).get_by_role("button", name="Edit").click()
        page.get_by_text("A secret is not put back: enter it again.").wait_for()
        assert page.get_by_label("user").input_value() == "ada"
        assert page.get_by_label("password").input_value() == ""
        before = page.get_by_role("article").count()
        page.get_by_role("button", name="Run", exact=True).click()
        page.get_by_text("a value is required").wait_for()
        page.get_by_role("button", name="JSON", exact=True).click()
        assert json.loads(page.get_by_label("Arguments as JSON").input_value()) == {"user": "ada"}
        page.get_by_role("article").first.get_by_role("button", name="Edit").click()
        page.get_by_text("Secrets are not put back; enter again: password").wait_for()
        page.get_by_role("button", name="Form", exact=True).click()
        page.get_by_label("password").fill("another one")
        assert not page.get_by_text("A secret is not put back").is_visible()
        assert page.get_by_role("article").count() == before
        assert "ada signed in with ***" in run(page).inner_text()

    def test_a_suspended_one_is_answered(self, page: Any) -> None:
        go(page, "ask_desk")
        page.get_by_label("question").fill("why")
        card = run(page, "waits for an answer")
        card.get_by_label("Answer as JSON").fill("because")
        card.get_by_role("button", name="Send the answer").click()
        card.get_by_text("The answer has to be JSON").wait_for()
        card.get_by_label("Answer as JSON").fill(f'{{"because": {2**70}}}')
        card.get_by_role("button", name="Send the answer").click()
        card.get_by_text("success", exact=True).wait_for()
        assert str(2**70) in card.get_by_role("group", name="JSON", exact=True).inner_text()
        assert card.get_by_text("The answer has to be JSON").count() == 0

    def test_an_error_is_said(self, page: Any) -> None:
        go(page, "fail")
        page.get_by_label("how", exact=True).select_option("rudely")
        run(page, "error").get_by_text("the disk is full", exact=True).wait_for()

    def test_a_picture_is_shown_and_a_link_is_safe(self, page: Any) -> None:
        go(page, "draw")
        card = run(page)
        picture = card.get_by_role("img")
        assert picture.evaluate("image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])") == [
            240,
            120,
        ]
        link = card.get_by_role("link", name="The gallery")
        assert (link.get_attribute("href"), link.get_attribute("rel")) == (
            "https://example.com/gallery",
            "noopener noreferrer nofollow",
        )

    def test_what_a_browser_may_not_show_is_a_file(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client], tmp_path: Path
    ) -> None:
        svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: ImageBlock.from_bytes(svg, "image/svg+xml"), name="drawing")
        page = open_page(inspected(toolkit), accept_downloads=True)
        go(page, "drawing")
        card = run(page)
        assert card.get_by_role("img").count() == 0
        with page.expect_download() as download:
            card.get_by_role("button", name="Save image.bin").click()
        download.value.save_as(tmp_path / "saved")
        assert (tmp_path / "saved").read_bytes() == svg

    def test_the_numbers_are_as_they_came(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
    ) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: {"large": 2**70, "real": 1.0}, name="numbers")
        page = open_page(inspected(toolkit))
        go(page, "numbers")
        assert json.loads(run(page).get_by_role("group", name="JSON", exact=True).inner_text())["large"] == 2**70


class TestBoard:
    def test_a_group_is_activated_where_it_is_missed(self, page: Any) -> None:
        go(page, "find_letter")
        page.get_by_label("year").fill("1901")
        run(page, "inactive")
        page.get_by_role("button", name="Activate archive").click()
        page.get_by_text("It is not offered now").wait_for(state="detached")
        assert page.get_by_label("year").input_value() == "1901"
        assert "a letter of 1901" in run(page).inner_text()

    def test_a_group_is_switched(self, page: Any) -> None:
        page.get_by_role("link", name="Board", exact=True).click()
        page.get_by_label("archive").check()
        page.locator('#tools [data-name="find_letter"]:not(.withheld)').wait_for()

    def test_what_the_last_change_cost_is_shown_for_each_provider(self, page: Any) -> None:
        page.get_by_role("link", name="Board", exact=True).click()
        page.get_by_label("archive").wait_for()
        cost = page.get_by_role("region", name="Cost of the last change")
        assert cost.count() == 0  # nothing has changed yet
        page.get_by_label("archive").check()
        cost.get_by_text("added find_letter: group 'archive' is active").wait_for()
        page.get_by_label("archive").uncheck()
        cost.get_by_text("removed find_letter: group 'archive' is not active").wait_for()
        numbers = r"(\d+) of (\d+) definitions, (\d\.\d) kB of (\d\.\d) kB, about (\d,?\d+) of (\d,?\d+) tokens"
        found = {}
        for dialect in ("anthropic", "openai"):
            cost.get_by_label("Dialect").select_option(dialect)
            kept = 11 if dialect == "anthropic" else 12
            cost.get_by_text(re.compile(rf"^{kept} of 12 definitions")).wait_for()
            shown = re.search(numbers, cost.inner_text())
            assert shown is not None
            found[dialect] = [float(each.replace(",", "")) for each in shown.groups()]
        assert found["openai"][::2] == found["openai"][1::2]
        assert found["anthropic"][0] == found["anthropic"][1] - 1
        assert found["anthropic"][4] < found["anthropic"][5]
        page.get_by_role("link", name="Calls", exact=True).click()
        page.get_by_role("link", name="Board", exact=True).click()
        cost.get_by_text("12 of 12 definitions").wait_for()
        assert cost.get_by_label("Dialect").input_value() == "openai"

    def test_a_long_list_of_changes_is_cut(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
    ) -> None:
        pytest.importorskip("pegboard_dialects")
        toolkit = Toolkit(plugins=["dialects"])
        toolkit.register(lambda: 1, name="first")
        page = open_page(inspected(toolkit))
        page.get_by_role("link", name="Board", exact=True).click()
        toolkit.register(*(tool(name=f"tool_{number}")(lambda: 1) for number in range(25)))
        cost = page.get_by_role("region", name="Cost of the last change")
        cost.get_by_text("and 5 more").wait_for()
        assert cost.get_by_role("listitem").count() == 21

    def test_packs_are_reloaded_and_problems_shown(
        self, open_page: Callable[..., Any], inspected: Callable[[Any], Client], tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        import uvicorn.protocols.http.h11_impl  # noqa: F401 - imported on first use, which the path of the site forbids

        with fresh_site(tmp_path / "site", monkeypatch) as site:
            Site(site.path).add("first")
            page = open_page(inspected(Toolkit))
            assert page.locator("#tools .name").all_inner_texts() == ["first_tool"]
            Site(site.path).add("second")
            Site(site.path).add("broken", "raise RuntimeError('no such luck')")
            page.get_by_role("link", name="Board", exact=True).click()
            page.get_by_role("button", name="Reload packs").click()
            page.get_by_text("+ second_tool").wait_for()
            page.locator('#tools [data-name="second_tool"]').wait_for()
            page.get_by_text("no such luck").first.wait_for()

    def test_what_a_program_changes_is_shown(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
    ) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.register(lambda: 1, name="first")
        page = open_page(inspected(toolkit))
        go(page, "first")

        def first(fresh: Annotated[int, Param("New here")]) -> int:
            return fresh

        toolkit.register(first, on_conflict="replace")
        page.get_by_label("fresh").wait_for()
        toolkit.unregister("first")
        page.get_by_text("there is no tool 'first'").wait_for()

    def test_what_an_mcp_server_changes_is_shown(
        self, open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
    ) -> None:
        mcp = pytest.importorskip("pegboard_mcp")
        toolkit = Toolkit(plugins=())
        toolkit.register(mcp.McpServer.stdio(sys.executable, [str(CHANGING_SERVER)], name="far"))
        page = open_page(inspected(toolkit))
        assert page.locator("#tools .name").all_inner_texts() == ["grow", "shrink"]
        go(page, "grow")
        page.get_by_label("name").fill("fresh")
        run(page)
        page.get_by_role("searchbox").fill("")
        page.locator('#tools [data-name="fresh"]').wait_for()
        go(page, "fresh")
        page.get_by_label("text").fill("hello")
        assert "fresh says hello" in run(page).inner_text()
        toolkit.call_sync("shrink", {"name": "fresh"})
        page.get_by_text("there is no tool 'fresh'").wait_for()

    def test_calls_are_counted(self, page: Any) -> None:
        go(page, "fail")
        page.get_by_label("how", exact=True).select_option("politely")
        run(page, "error")
        page.get_by_role("link", name="Board", exact=True).click()
        row = page.get_by_role("row").filter(has_text="error 1")
        assert row.get_by_role("cell").first.inner_text() == "fail"


def test_a_tool_without_arguments(open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]) -> None:
    toolkit = Toolkit(plugins=())
    toolkit.register(Tool.external("hello", "Says hello", {"type": "object"}))
    page = open_page(inspected(toolkit))
    go(page, "hello")
    page.get_by_text("It takes no arguments").wait_for()
    run(page, "waits for an answer")
    assert toolkit.pending[0].arguments == {}


def test_an_empty_board_and_an_empty_search_say_so(
    open_page: Callable[..., Any], inspected: Callable[[Toolkit], Client]
) -> None:
    toolkit = Toolkit(plugins=())
    toolkit.tool(name="only", requires_approval=True)(lambda: 1)
    page = open_page(inspected(toolkit))
    assert page.locator("#tools .mark").all_inner_texts() == ["asks first"]
    page.get_by_role("searchbox").fill("nowhere")
    page.get_by_text("0 of 1 tools: nothing fits").wait_for()
    toolkit.unregister("only")
    page.get_by_text("There is nothing to call.").wait_for()
    page.get_by_text("--toolkit MODULE:NAME").wait_for()


class TestOtherServers:
    """Another server of this machine, which the browser visits: it gets the cookie, and that opens nothing."""

    def test_get_nothing_but_the_cookie(self, open_page: Any, inspected: Any) -> None:
        client = inspected(board())
        page = open_page(client)
        heard: list[dict[str, str]] = []

        class Other(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(dict(self.headers))
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(b"<p>other</p>")

            def log_message(self, *_: Any) -> None: ...

        with HTTPServer(("127.0.0.1", 0), Other) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            visiting = page.context.new_page()
            visiting.goto(f"http://127.0.0.1:{server.server_address[1]}/")
            assert visiting.evaluate("localStorage.length + sessionStorage.length") == 0
            server.shutdown()
        assert "pegboard_inspector" in heard[0]["Cookie"]
        thief = Client(client.url, {"cookie": heard[0]["Cookie"]})
        assert thief.send("GET", "/api/board").status == 401
        assert "key=" not in page.url
        page.reload()  # whose key is still there
        page.locator("#tools li").first.wait_for()


class TestForms:
    def test_outlive_a_reload_but_for_their_secrets(self, page: Any) -> None:
        go(page, "sign_in")
        page.get_by_label("user").fill("ada")
        page.get_by_label("password").fill("hunter2!")
        page.reload()
        page.get_by_text("A secret is not put back: enter it again.").wait_for()
        assert page.get_by_label("user").input_value() == "ada"
        assert page.get_by_label("password").input_value() == ""
        assert "hunter2" not in page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")

    def test_as_json_outlive_a_reload(self, page: Any) -> None:
        go(page, "forecast")
        page.get_by_role("button", name="JSON", exact=True).click()
        page.get_by_label("Arguments as JSON").fill('{"city": "Os')
        page.reload()
        page.get_by_label("Arguments as JSON").wait_for()
        assert page.get_by_label("Arguments as JSON").input_value() == '{"city": "Os'


class TestWhileItRuns:
    def test_the_time_is_shown(self, page: Any) -> None:
        go(page, "wait_for_ever")
        page.get_by_role("button", name="Run", exact=True).click()
        time = page.get_by_role("article").first.locator(".time")
        time.filter(has_text=re.compile(r"^[1-9]\d*\.\d s$")).wait_for()
        page.get_by_role("button", name="Cancel").click()

    def test_a_failure_has_its_traceback(self, page: Any) -> None:
        go(page, "fail")
        page.get_by_label("how", exact=True).select_option("rudely")
        card = run(page, "error")
        card.get_by_text("Traceback", exact=True).click()
        assert "RuntimeError: the disk is full" in card.get_by_role("group", name="Traceback").inner_text()
