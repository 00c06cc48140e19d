"""The mutants are those that are wanted, and a test that notices nothing is told from one that does."""

import ast
import re
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.mutate import Mutant, mutants
from tests.mutants.run import Verdict

SOURCE = '''
def positive(value: "A | B") -> int:
    """Not a check: 1 < 2."""
    if value <= 0 or value is None:
        raise ValueError(f"{value} < 0 or worse")
    log(value)
    return value if not value.odd else 0
'''


@pytest.fixture(scope="module")
def of_the_core() -> list[Mutant]:
    return command.all_mutants(command.MODULES)


def changes(source: str) -> set[tuple[str, str]]:
    return {(mutant.before, mutant.after) for mutant in mutants("m", source)}


class TestMutants:
    def test_all_checks_are_changed_and_nothing_else(self) -> None:
        assert changes(SOURCE) == {
            ("value <= 0 or value is None", "False"),
            ("value <= 0 or value is None", "True"),
            ("value <= 0 or value is None", "(value is None)"),
            ("value <= 0 or value is None", "(value <= 0)"),
            ("value <= 0", "(value < 0)"),
            ("value is None", "(value is not None)"),
            ('raise ValueError(f"{value} < 0 or worse")', "pass"),
            ("log(value)", "pass"),
            ("not value.odd", "False"),
            ("not value.odd", "True"),
        }

    @pytest.mark.parametrize(
        ("source", "after"),
        [
            ("emit(f'{x} != {y}')", "f'{x} == {y}'"),
            ("emit('a >= b')", "'a > b'"),
            ("emit(f'a or {b}')", "f'a'"),
            ("emit(f'a or {b}')", "f'{b}'"),
            ("find('^a$')", "'a$'"),
            ("find('^a$')", "'^a'"),
            ("[x for x in y if x]", "True"),
            ("z = not x", "(x)"),
            ("z = x in y", "(x not in y)"),
        ],
    )
    def test_code_in_text_is_changed_too(self, source: str, after: str) -> None:
        assert after in {found for _, found in changes(source)}

    def test_each_is_a_program_that_differs(self) -> None:
        original = ast.dump(ast.parse(SOURCE))
        found = mutants("m", SOURCE)
        assert all(ast.dump(ast.parse(mutant.source)) != original for mutant in found)
        assert {mutant.function for mutant in found} == {"positive"}
        assert str(found[0]).startswith("m:4 in positive: value <= 0")

    @pytest.mark.slow
    def test_the_core_has_many(self, of_the_core: list[Mutant]) -> None:
        assert {mutant.module for mutant in of_the_core} == set(command.MODULES)
        assert len(of_the_core) > 500


class TestEquivalent:
    @pytest.mark.slow
    def test_each_exists_and_has_a_reason(self, of_the_core: list[Mutant]) -> None:
        known = {mutant.key for mutant in of_the_core}
        assert [key for key in EQUIVALENT if key not in known] == []
        assert all(EQUIVALENT.values())


class TestCommand:
    def run(self, monkeypatch: pytest.MonkeyPatch, *, red: bool, alive: int) -> int:
        """With verdicts made up: the first judged are the originals."""
        rounds = iter([red, None])

        def judged(found: list[Mutant], jobs: int) -> list[Verdict]:
            original = next(rounds)
            if original is not None:
                return [Verdict(mutant, original, 0.1) for mutant in found]
            killable = [mutant for mutant in found if mutant.key not in EQUIVALENT]
            return [Verdict(mutant, number >= alive, 0.1) for number, mutant in enumerate(killable)]

        monkeypatch.setattr(command, "judged", judged)
        return command.main(["_types/json_kinds", "builtin/types"])

    def test_all_killed(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(monkeypatch, red=False, alive=0) == 0
        assert re.search(r"^all .* 100\.0%$", capsys.readouterr().out, re.MULTILINE)

    @pytest.mark.slow
    def test_one_alive(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(monkeypatch, red=False, alive=1) == 1
        assert "ALIVE _types/json_kinds:" in capsys.readouterr().out

    def test_red_before(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        assert self.run(monkeypatch, red=True, alive=0) == 2
        assert "red without any mutant" in capsys.readouterr().out

    def test_unknown_module(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            command.main(["_nowhere"])
        assert "there is no module _nowhere" in capsys.readouterr().err


def test_no_test_is_missing() -> None:
    from tests.mutants.run import PLANS, TYPES

    folder = Path(__file__).parents[1]
    assert all((folder / "types" / name).is_file() for name in TYPES)
    assert all((folder / name).is_file() for name in PLANS)
