"""Folders of skills for tests, and toolkits that have them."""

from pathlib import Path
from typing import Any

from pegboard import Toolkit
from pegboard_skills import Skills

__all__ = ["BODY", "board", "skill_text", "write_skill"]

BODY = "# How to\n\nDo it step by step.\n"


def skill_text(name: str, description: str = "Does it. Use it for it.", body: str = BODY, more: str = "") -> str:
    """A `SKILL.md` whose front matter is plain."""
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}"


def write_skill(folder: Path, text: str, files: dict[str, str] | None = None) -> Path:
    """Write a skill into a folder, with further files by their paths."""
    for path, content in {"SKILL.md": text, **(files or {})}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    return folder


def board(*folders: Path, **options: Any) -> Toolkit:
    """A toolkit with the skills of some folders."""
    toolkit = Toolkit(plugins=["dataclasses"], **options)
    toolkit.register(Skills(*folders))
    return toolkit
