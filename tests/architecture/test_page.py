"""`docs/internals/architecture.md` shows the table of rooms as it is."""

import re
from collections.abc import Mapping

from tests.architecture.rooms import MAY_IMPORT
from tests.workspace.project import CORE, ROOT

ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def rooms_of_the_page(text: str) -> Mapping[str, set[str]]:
    """What the table of rooms in a page says that each may import."""
    found: dict[str, set[str]] = {}
    for name, imported in ROW.findall(text):
        above = set(found) if imported.startswith("all of the above") else set()
        found[name] = above | set(re.findall(r"`(\w+)`", imported))
    return found


def test_the_page_shows_the_same_table() -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    assert rooms_of_the_page(page) == {name: set(allowed) for name, allowed in MAY_IMPORT.items()}


def test_the_roads_lead_through_files_that_exist() -> None:
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+/\w+\.py)`", page.partition("## Four paths")[2])
    assert len(named) > 20
    assert [name for name in named if not (CORE.path / "src" / "pegboard" / name).is_file()] == []
