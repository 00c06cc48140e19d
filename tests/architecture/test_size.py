"""How the size of the core is counted."""

from pathlib import Path

import pytest

from tests.architecture.size import Size, entries, size, sizes, total


@pytest.mark.parametrize(
    ("text", "lines", "tokens"),
    [
        ("", 0, 0),
        ("a = 1\n\n# why\nb = 2  # as well\n", 2, 6),
        ('"""About\nthis.\n"""\na = 1\n', 1, 3),
        ("text = '''two\nlines'''\n", 2, 3),
        ('def f():\n    """What."""\n    return (\n        1\n    )\n', 4, 9),
        ('class A:\n    """What."""\n\n    async def f(self):\n        """Which\n        way."""\n', 2, 10),
        ('class A:\n    x: int\n    """No docstring: it stands behind a field."""\n', 3, 7),
        ("a = f'{b}, {c!r:{d}}' + f'{e}'\n", 1, 5),
    ],
)
def test_lines_and_tokens_are_those_of_code(text: str, lines: int, tokens: int) -> None:
    assert size(text) == Size(lines, tokens, 1)


def test_rooms_are_folders_and_modules_beside_them(tmp_path: Path) -> None:
    package = tmp_path / "house"
    (package / "_room").mkdir(parents=True)
    for name in ("__init__", "_room/__init__", "_room/table"):
        (package / f"{name}.py").write_text("a = 1\n", encoding="utf-8")
    (package / "__pycache__").mkdir()
    assert sizes(tmp_path) == {"_room": Size(2, 6, 2), "house": Size(1, 3, 1)}
    assert total(sizes(tmp_path)) == Size(3, 9, 3)
    assert entries(package) == ["__init__.py", "_room"]
