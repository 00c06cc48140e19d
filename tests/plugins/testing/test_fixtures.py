"""The fixtures as a third-party project uses them."""

import json
import re
import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]

PACK = '''
import pegboard

@pegboard.tool(examples=[{"sides": 6}])
def roll(sides: int) -> int:
    """Roll a die.

    Args:
        sides: How many sides
    """
    return sides

@pegboard.hookimpl
def provide_tools(settings):
    return [roll]
'''
INI = "[pytest]\npegboard_plugins = site_dice\nfilterwarnings = error\n"
SNAPSHOT = "def test_schemas(toolkit, schema_snapshot):\n    schema_snapshot(toolkit)\n"


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.makepyfile(site_dice=PACK)
    pytester.makeini(INI)
    pytester.syspathinsert()
    return pytester


def test_toolkit_has_the_plugins_that_are_named(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_BLOCK", "*")
    project.makepyfile(
        """
        def test_toolkit(toolkit):
            assert [tool.name for tool in toolkit] == ["roll"]
            assert toolkit.call_sync("roll", {"sides": 6}).data == 6
        """
    )
    project.runpytest().assert_outcomes(passed=1)


def test_toolkit_without_plugins(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_toolkit(toolkit):\n    assert len(toolkit) == 0\n    assert toolkit.plugins == []")
    pytester.runpytest().assert_outcomes(passed=1)


def test_plugins_and_options_can_be_overridden(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(site_other=PACK.replace("roll", "throw"))
    pytester.makeconftest(
        """
        import pytest, site_other

        @pytest.fixture
        def pegboard_plugins():
            return [site_other]

        @pytest.fixture
        def pegboard_options():
            return {"max_output": 100}
        """
    )
    pytester.makepyfile("def test_toolkit(toolkit):\n    assert 'throw' in toolkit\n    assert toolkit.problems == []")
    pytester.runpytest().assert_outcomes(passed=1)


class TestConforms:
    TEST = "def test_conforms(conforms):\n    conforms()\n"

    def test_passes(self, project: pytest.Pytester) -> None:
        project.makepyfile(self.TEST)
        project.runpytest().assert_outcomes(passed=1)

    def test_shows_every_finding_and_nothing_else(self, project: pytest.Pytester) -> None:
        bare = re.sub('""".*"""', "...", PACK, flags=re.DOTALL)
        project.makepyfile(site_dice=bare)
        project.makepyfile(self.TEST)
        result = project.runpytest()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "site_dice does not conform, 2 things to fix:",
                "  documentation: roll has no description",
                "    give its function a docstring",
                "  documentation: the parameter 'sides' of roll has no description",
            ]
        )
        result.stdout.no_fnmatch_line("*During handling*")

    def test_says_what_is_missing(self, pytester: pytest.Pytester) -> None:
        pytester.makepyfile(self.TEST)
        result = pytester.runpytest()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["nothing to check: say pegboard_plugins*"])

    @pytest.mark.slow
    def test_takes_plugins_and_options(self, project: pytest.Pytester) -> None:
        project.makepyfile(
            "import site_dice\ndef test_conforms(conforms):\n    conforms(site_dice, run_examples=False)"
        )
        project.runpytest().assert_outcomes(passed=1)


class TestSnapshot:
    def test_written_then_compared(self, project: pytest.Pytester) -> None:
        test = project.makepyfile(test_it=SNAPSHOT)
        missing = project.runpytest()
        missing.assert_outcomes(failed=1)
        missing.stdout.fnmatch_lines(["there is no test_schemas.json in *; write it: pytest --schema-update"])
        project.runpytest("--schema-update").assert_outcomes(passed=1)
        project.runpytest().assert_outcomes(passed=1)
        (tool,) = json.loads((test.parent / "schemas" / "test_schemas.json").read_text("utf-8"))
        assert tool["name"] == "roll"
        assert tool["parameters"]["properties"]["sides"] == {"type": "integer", "description": "How many sides"}
        assert tool["returns"] == {"type": "integer"}

    @pytest.mark.slow
    def test_drift_is_a_diff(self, project: pytest.Pytester) -> None:
        project.makepyfile(test_it=SNAPSHOT)
        project.runpytest("--schema-update").assert_outcomes(passed=1)
        project.makepyfile(site_dice=PACK.replace("How many sides", "How many faces it has"))
        result = project.runpytest_subprocess()
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(
            [
                "what the model sees has changed; if that is meant: pytest --schema-update",
                '-*"description": "How many sides"',
                '+*"description": "How many faces it has"',
            ]
        )

    @pytest.mark.slow
    def test_names_and_kinds(self, project: pytest.Pytester) -> None:
        test = project.makepyfile(
            test_it="""
            import pytest

            @pytest.mark.parametrize("case", ["a/b", "c"])
            def test_schemas(toolkit, schema_snapshot, case):
                schema_snapshot(toolkit["roll"])
                schema_snapshot(toolkit.session(), name=f"session {case}")
                schema_snapshot([toolkit["roll"], {"a": 1}], name="list")
            """
        )
        project.runpytest("--schema-update").assert_outcomes(passed=2)
        project.runpytest().assert_outcomes(passed=2)
        names = sorted(path.name for path in (test.parent / "schemas").iterdir())
        assert names == [
            "list.json",
            "session-a-b.json",
            "session-c.json",
            "test_schemas-a-b.json",
            "test_schemas-c.json",
        ]


def test_pytest_itself_does_not_load_the_core() -> None:
    imports = "import sys, pytest, pegboard_testing.fixtures"
    code = f"{imports}; print([name for name in sys.modules if name.startswith('pegboard.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout == "[]\n"
