"""`pegboard skills`: which skills are in some folders, and what is wrong with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegboard.inspection import spelled_out
from pegboard_skills._skills import Skills

if TYPE_CHECKING:
    from argparse import ArgumentParser

__all__ = ["run"]


def run(configured: Sequence[str], arguments: list[str]) -> int:
    """List and check the skills of the folders in `arguments`, else of the `configured` ones; 1 if there are problems.

    Raises SystemExit with 2 where there is no folder at all.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    folders = options.folder or configured
    if not folders:
        parser.error("name a FOLDER, or set skills.folders in the settings")
    found = Skills(*folders)
    if options.json:
        keys = ("name", "description", "compatibility")
        listed = found.skills.values()
        skills = [{**{key: getattr(skill, key) for key in keys}, "path": skill.place} for skill in listed]
        print(json.dumps({"skills": skills, "problems": found.problems}, indent=2, ensure_ascii=False))  # noqa: T201
        return bool(found.problems)
    for skill in found.skills.values():
        print(spelled_out(f"{skill.name}: {skill.description}"))  # noqa: T201 - the command's output
    for problem in found.problems:
        print(spelled_out(f"problem: {problem}"))  # noqa: T201
    return bool(found.problems)


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    parser = ArgumentParser(prog="pegboard skills", description="List skills, and check them by the specification.")
    parser.add_argument("folder", nargs="*", metavar="FOLDER", help="a skill, or a folder that holds some")
    parser.add_argument("--json", action="store_true", help="as data")
    return parser
