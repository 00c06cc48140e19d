"""The house keeps its measure: how much stands in it, and how far one has to walk."""

import pytest

from tests.architecture.rooms import MOST_ENTRIES, MOST_LINES, MOST_MODULES, MOST_TOKENS, WALKS
from tests.architecture.size import Size, entries, sizes, total
from tests.architecture.walks import walk, walks
from tests.workspace.project import CORE

PACKAGE = CORE.path / "src" / "pegboard"


@pytest.fixture(scope="module")
def core() -> Size:
    return total(sizes(PACKAGE.parent))


class TestSize:
    def test_code_lines(self, core: Size) -> None:
        assert core.lines <= MOST_LINES

    def test_tokens(self, core: Size) -> None:
        assert core.tokens <= MOST_TOKENS

    def test_modules(self, core: Size) -> None:
        assert core.modules <= MOST_MODULES

    def test_entries_of_the_folder(self) -> None:
        assert len(entries(PACKAGE)) <= MOST_ENTRIES


class TestWalks:
    def test_are_short(self) -> None:
        taken = walks()
        too_long = {name: files for name, files in taken.items() if len(files) > WALKS[name]}
        assert taken.keys() == WALKS.keys()
        assert too_long == {}

    def test_count_each_file_of_the_core_once_and_nothing_else(self) -> None:
        from pegboard import ExecutionPolicy

        def twice() -> None:
            ExecutionPolicy().merged_over(ExecutionPolicy())
            ExecutionPolicy().merged_over(ExecutionPolicy())

        assert walk(twice) == ["_model/policy.py", "_base/errors.py"]
        assert walk(lambda: None) == []
