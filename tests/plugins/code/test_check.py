"""What is wrong with a program before it runs."""

import pytest

from pegboard import Status, Toolkit
from pegboard_code import CodeMode
from tests.plugins.code.desk import Tools, coded, ran


class TestFindings:
    @pytest.mark.parametrize(
        ("code", "texts"),
        [
            (
                "await get_weather(town='Oslo')",
                [
                    "line 1, column 19: Argument `town` does not match any known parameter",
                    'meant: async def get_weather(*, city: str, unit: Literal["c", "f"] = "c") -> Forecast',
                ],
            ),
            ("x = 1\nawait get_weather(city=3)", ["line 2, column 19:", "Expected `str`, found `Literal[3]`"]),
            ("await get_weather(city='a', unit='k')", ['Expected `Literal["c", "f"]`']),
            ("(await get_weather(city='a'))['temp']", ['Unknown key "temp"', "temp_c"]),
            ("(await get_weather(city='a')).temp_c", ['results are dicts: write ["temp_c"]']),
            ("await nothing(a=1)", ["Name `nothing` used when not defined"]),
            ("if True:\n    return 1 + 'a'", ["line 2, column 12"]),
            ("x = (1,\n", ["line 2"]),
        ],
    )
    def test_they_name_line_and_column_and_the_stub_that_was_meant(self, code: str, texts: list[str]) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            result = ran(toolkit, code)
        assert result.status is Status.INVALID
        assert "was not run" in result.text
        for text in texts:
            assert text in result.text
        assert tools.calls == []

    def test_nothing_runs_before_the_whole_is_right(self) -> None:
        tools = Tools()
        with coded(tools) as toolkit:
            result = ran(toolkit, "print('a')\nawait get_weather(city='Oslo')\n1 + 'a'")
            assert result.status is Status.INVALID
            ran(toolkit, "await get_weather(city='Oslo')\n1 + 'a'  # type: ignore")
        assert len(tools.calls) == 1

    def test_unreachable_code_is_not_judged(self) -> None:
        with coded() as toolkit:
            assert ran(toolkit, "if False:\n    1 + 'a'\n2").data == 2

    def test_a_list_of_findings_ends(self) -> None:
        with coded() as toolkit:
            result = ran(toolkit, "\n".join(f"x{n} = 1 + 'a'" for n in range(30)))
        assert "30 problems" in result.text
        assert result.text.endswith("... and 20 more")

    def test_unchecked_programs_run(self) -> None:
        with coded(check=False) as toolkit:
            result = ran(toolkit, "print('a')\n1 + 'a'")
        assert result.status is Status.ERROR
        assert result.text.startswith("a\n")
        assert "TypeError" in result.text


class TestUsualMistakes:
    def test_a_missing_await_comes_with_the_line_to_write(self) -> None:
        with coded() as toolkit:
            used = ran(toolkit, "x = get_weather(city='Oslo')\nprint(x['temp_c'])")
            alone = ran(toolkit, "get_weather(city='Oslo')\n1")
        for result in (used, alone):
            assert result.status is Status.INVALID
            assert "it is not awaited; write: " in result.text
        assert "write: x = await get_weather(city='Oslo')" in used.text
        assert "write: await get_weather(city='Oslo')" in alone.text

    def test_an_import_that_is_not_there_comes_with_those_that_are(self) -> None:
        with coded() as toolkit:
            text = ran(toolkit, "import numpy as np\n1").text
            assert "Cannot resolve imported module `numpy`" in text
            assert "remove this line. Modules that can be imported: asyncio, base64" in text
            assert "Tools are there without an import" in ran(toolkit, "from tools import get_weather\n1").text
            assert "write before it: import json" in ran(toolkit, "json.dumps({})").text

    def test_all_modules_that_are_named_can_be_imported(self) -> None:
        from pegboard_code._catalog import modules

        with coded() as toolkit:
            result = ran(toolkit, f"import {modules}\n1")
        assert result.data == 1, result.text

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("def f():\n    yield 1", "line 2, column 5: yield expressions are not supported here"),
            ("class A(Exception):\n    pass", "class inheritance"),
            ("x = 1\ndel x", "not supported here"),
        ],
    )
    def test_syntax_that_the_sandbox_lacks_is_invalid(self, code: str, text: str) -> None:
        with coded() as toolkit:
            result = ran(toolkit, code)
        assert result.status is Status.INVALID
        assert text in result.text


def test_a_program_that_is_too_long_is_invalid() -> None:
    with coded(max_code=1_000) as toolkit:
        result = ran(toolkit, "x = 1\n" * 1_000)
    assert result.status is Status.INVALID
    assert "6,000 characters, of 1,000 at most" in result.text


def test_the_stubs_of_the_running_session_count() -> None:
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(Tools())
        toolkit.register(CodeMode(toolkit))
        session = toolkit.session(presets={"get_weather": {"unit": "f"}})
        code = "(await get_weather(city='Oslo', unit='c'))['city']"
        assert ran(toolkit, code).data == "Oslo"
        assert ran(session, code).status is Status.INVALID
        assert "unit" not in session["run_code"].description
