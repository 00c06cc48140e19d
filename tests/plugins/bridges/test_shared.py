"""What all bridges share, without any framework."""

import ast
import subprocess
import sys
from importlib import import_module
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import pytest

import pegboard_bridges
from pegboard import Approval, FileBlock, ImageBlock, RegistrationError, TextBlock, ToolCall, Toolkit, ToolResult
from pegboard_bridges import FRAMEWORKS, NotNativeError
from pegboard_bridges._frameworks import bridge_of
from pegboard_bridges._inwards import ExternalTool, ExternalTools, approved, denied, external, failed, finished
from pegboard_bridges._outwards import OfferedTools, data_url, parts, text_of, text_or_parts
from tests.support.board_tools import named

FOLDER = Path(pegboard_bridges.__file__).parent


def wipe(disk: str) -> str:
    """Wipe a disk."""
    return f"wiped {disk}"


def board(**options: Any) -> Toolkit:
    toolkit = Toolkit(plugins=["bridges"], **options)
    toolkit.tool(requires_approval=True)(wipe)
    return toolkit


class TestFrameworks:
    @pytest.mark.parametrize("name", FRAMEWORKS)
    def test_each_has_the_two_functions(self, name: str) -> None:
        tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert {f"to_{name}", f"from_{name}"} <= functions

    def test_modules_and_extras_are_those_of_the_frameworks(self) -> None:
        modules = {path.stem for path in FOLDER.glob("[a-z]*.py")}
        extras = {name.replace("-", "_") for name in metadata("pegboard-bridges").get_all("Provides-Extra") or ()}
        assert modules == extras == set(FRAMEWORKS)

    @pytest.mark.parametrize("name", FRAMEWORKS)
    def test_missing_framework_names_its_extra(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, f"pegboard_bridges.{name}", raising=False)
        monkeypatch.setitem(sys.modules, FRAMEWORKS[name].package, None)
        with pytest.raises(ImportError, match=rf'pip install "pegboard-bridges\[{name}\]"'):
            import_module(f"pegboard_bridges.{name}")

    def test_nothing_is_imported_before_it_is_asked_for(self) -> None:
        code = (
            "import sys; from pegboard import Toolkit; toolkit = Toolkit(plugins=['bridges'])\n"
            "toolkit.register(lambda: '', name='empty', description='Nothing.')\n"
            "print(sorted(name for name in sys.modules if name.startswith('pegboard_bridges')))"
        )
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
        assert run.stdout.strip() == "['pegboard_bridges', 'pegboard_bridges._frameworks']"

    def test_what_no_framework_made_is_left_alone(self) -> None:
        assert bridge_of(type(wipe)) is None
        assert bridge_of(type("Own", (), {})) is None
        with pytest.raises(RegistrationError, match="an object of class object has no tools"):
            Toolkit(plugins=["bridges"]).register(object())


class TestOutwards:
    def test_offers_what_the_session_offers_now(self) -> None:
        with board() as toolkit:
            toolkit.create_group("extra", active=False)
            toolkit.register(lambda: "", name="more", description="More.", group="extra")
            session = toolkit.session()
            seen = OfferedTools(session)
            assert not seen.offers("more")
            session.update_groups("extra", active=True)
            assert seen.offers("more")
            assert not OfferedTools(toolkit).offers("more")

    def test_gives_tools_in_order_of_reveal(self) -> None:
        toolkit = Toolkit(plugins=())
        toolkit.create_group("extra", active=False)
        toolkit.register(named("first"), group="extra")
        toolkit.register(named("one"), named("two"))
        session = toolkit.session()
        offered = OfferedTools(session)

        def natives() -> list[str]:
            return offered.natives(lambda tool: tool.name)

        assert natives() == ["one", "two"]
        session.update_groups("extra", active=True)
        assert natives() == [tool.name for tool in offered.tools] == ["one", "two", "first"]
        toolkit.register(named("new"))
        assert natives() == [tool.name for tool in offered.tools] == ["one", "two", "first", "new"]

    def test_nothing_but_a_board_goes_out(self) -> None:
        with pytest.raises(TypeError, match="takes a toolkit, a session or a view; got int"):
            OfferedTools(5)  # type: ignore[arg-type]

    async def asked(self, toolkit: Toolkit, answer: bool | Approval | None) -> ToolResult:
        async def ask(request: Any) -> bool | Approval | None:
            assert (request.tool.name, dict(request.arguments)) == ("wipe", {"disk": "a"})
            return answer

        return await OfferedTools(toolkit).call("wipe", {"disk": "a"}, "call", ask=ask)

    @pytest.mark.parametrize(
        ("answer", "text"),
        [
            (True, "wiped a"),
            (Approval.edit({"disk": "b"}), "wiped b"),
            (Approval.deny("not today"), "not today"),
            (False, "not run"),
            (None, "cannot be given here"),
        ],
    )
    def test_framework_is_asked_where_the_board_has_no_approver(
        self, answer: bool | Approval | None, text: str
    ) -> None:
        import asyncio

        with board() as toolkit:
            assert text in asyncio.run(self.asked(toolkit, answer)).text
            plain = OfferedTools(toolkit).call("wipe", {"disk": "a"}, ask=lambda request: answer)
            assert text in asyncio.run(plain).text
            assert text in OfferedTools(toolkit).call_sync("wipe", {"disk": "a"}, ask=lambda request: answer).text

    def test_answer_is_for_one_call_alone(self) -> None:
        with board() as toolkit:
            seen = OfferedTools(toolkit)
            seen.answered(seen.prepare("wipe", {"disk": "a"}), True)
            assert toolkit.call_sync("wipe", {"disk": "a"}).status == "denied"

    def test_approver_of_the_board_comes_first(self) -> None:
        with board(approver=lambda request: False) as toolkit:
            seen = OfferedTools(toolkit)
            assert seen.question(seen.prepare("wipe", {"disk": "a"})) is None
            assert seen.question(seen.prepare("wipe", {})) is None

    def test_results_in_words_and_parts(self) -> None:
        image = ImageBlock(data="aaaa", media_type="image/png")
        result = ToolResult("1", "draw", content=(TextBlock("see"), image, FileBlock(url="https://acme.test/a")))
        assert text_of(result) == "see\n[image, image/png, 3 bytes]\n[file: https://acme.test/a]"
        seen = ["see", "data:image/png;base64,aaaa", "[file: https://acme.test/a]"]
        assert parts(result, str, data_url) == text_or_parts(result, str, data_url) == seen
        assert text_or_parts(ToolResult("1", "say", content="words"), str, data_url) == "words"


class TestInwards:
    def test_tools_are_read_by_class_and_what_holds_them_is_opened(self) -> None:
        def read(number: int) -> ExternalTool:
            return ExternalTool(f"tool_{number}", "", {}, lambda call: "")

        readers: Any = {int: read, dict: dict.values, set: lambda numbers: [read(each) for each in sorted(numbers)]}
        found = external("numbers", [1, {"two": 2, "more": ({3, 4}, [])}], readers)
        assert [tool.name for tool in found.tools()] == ["tool_1", "tool_2", "tool_3", "tool_4"]
        with pytest.raises(NotNativeError, match=r"^from_numbers takes int, dict, set or a list of such; got .*str$"):
            external("numbers", [1, "two"], readers)

    def tools(self, call: Any) -> ExternalTools:
        return ExternalTools([ExternalTool("odd name!", "Does.", {"properties": {"n": {"type": "integer"}}}, call)])

    def test_arguments_are_checked_by_the_schema(self) -> None:
        with Toolkit(plugins=[]) as toolkit:
            (tool,) = toolkit.register(self.tools(lambda call: f"{call.arguments['n']}"))
            assert toolkit.call_sync(tool.name, {"n": 3}).text == "3"
            assert "n: expected integer" in toolkit.call_sync(tool.name, {"n": "three"}).text

    def test_a_third_party_s_pattern_is_matched_in_bounded_time(self) -> None:
        text = {"type": "string", "pattern": "^(a+)+$"}
        slow = ExternalTool("match", "Does.", {"properties": {"text": text}}, lambda call: "matched")
        with Toolkit(plugins=[]) as toolkit:
            toolkit.register(ExternalTools([slow]))
            assert toolkit.call_sync("match", {"text": "a" * 40}).text == "matched"
            assert toolkit.call_sync("match", {"text": "a" * 40 + "!"}).status == "invalid"

    def test_tools_own_failures_are_results(self) -> None:
        call = ToolCall("1", "draw", {})
        assert (failed(call, "Error: no ink").text, failed(call, "Error: no ink").status) == ("Error: no ink", "error")
        assert denied(call).status == "denied"

    @pytest.mark.parametrize(
        ("approver", "text"),
        [
            (None, "it was not approved"),
            (lambda request: request.arguments["n"] == 1, "ran with 1"),
            (lambda _: Approval.approve(), "ran with 1"),
            (lambda _: 1, "it was not approved"),
            (lambda _: Approval.deny("not today"), "was not run: not today"),
            (lambda _: Approval.edit({"n": 2}), "ran with 2"),
            (lambda _: Approval.edit({"n": "two"}), "n: expected integer"),
        ],
    )
    def test_approver_of_the_session_answers_for_the_framework(self, approver: Any, text: str) -> None:
        async def call(call: ToolCall) -> Any:
            allowed = await approved(call, "it says so")
            return allowed if isinstance(allowed, ToolResult) else f"ran with {allowed['n']}"

        with Toolkit(plugins=[], approver=approver) as toolkit:
            (tool,) = toolkit.register(self.tools(call))
            assert text in toolkit.call_sync(tool.name, {"n": 1}).text

    def test_coroutines_end_in_plain_code(self) -> None:
        import asyncio

        async def later() -> int:
            await asyncio.sleep(0)
            return 3

        async def inside() -> int:
            return int(finished(later))

        assert finished(later) == asyncio.run(inside()) == 3


def test_page_says_what_the_runs_found() -> None:
    from tests.plugins.bridges import page

    assert page.PAGE.read_text("utf-8") == page.page_with(page.found())
    assert set(page.found()) == set(FRAMEWORKS)
