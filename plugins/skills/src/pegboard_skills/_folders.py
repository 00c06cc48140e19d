"""Folders: where skills are found, and which files they have. Links are not followed, and nothing outside is read."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from attrs import frozen

from pegboard import ToolError
from pegboard_files import ConfinedFolder
from pegboard_skills._skill import Finding, Skill, read_skill, visible

__all__ = ["SKILL_FILE", "Found", "files_of", "find_skills"]

SKILL_FILE: Final = "SKILL.md"
MAX_DEPTH: Final = 6
"""Levels of folders below the one that the program names, or below a skill's own."""
MAX_FOLDERS: Final = 2000
"""How many folders are looked into, for skills in one folder or for the files of one skill."""
MAX_SKILL_BYTES: Final = 1_000_000
MAX_CHARACTERS: Final = 64_000_000
"""Characters of all `SKILL.md` together, which stay in memory."""
_PASSED_OVER: Final = frozenset({".git", "node_modules", "__pycache__"})
_SHOWN_LINKS: Final = 5


@frozen
class Found:
    """The skills of some folders by name, sorted, and what is wrong with them and with what was left out."""

    skills: dict[str, Skill]
    problems: list[str]


def find_skills(folders: Iterable[str]) -> Found:
    """Read the skills of some folders, each of which is one or holds some. Of two with one name the first counts."""
    skills: dict[str, Skill] = {}
    places: dict[str, str] = {}
    problems: list[str] = []
    room = MAX_CHARACTERS
    for folder in folders:
        for place, (skill, wrong) in _findings(folder):
            problems += [f"{place}: {problem}" for problem in wrong]
            if skill is None:
                continue
            if skill.name in skills:
                problems.append(f"{place}: it is left out: {skill.name!r} is the skill in {places[skill.name]}")
            elif len(skill.text) > room:
                problems.append(f"{place}: it is left out: all skills may have {MAX_CHARACTERS:,} characters together")
            else:
                skills[skill.name], places[skill.name] = skill, place
                room -= len(skill.text)
    return Found(dict(sorted(skills.items())), problems)


def _findings(named: str) -> Iterator[tuple[str, Finding]]:
    """What one folder holds, in the order of the paths; each with the place that a message calls it by."""
    try:
        top = Path(named).expanduser()
        folder = ConfinedFolder(top, max_bytes=MAX_SKILL_BYTES, links=False, read_only=True)
    except (OSError, RuntimeError, ValueError) as error:  # no such folder, no such user, a NUL character
        yield visible(named), Finding(None, [f"the folder cannot be opened: {getattr(error, 'strerror', 0) or error}"])
        return
    for visit in _walk(folder, "."):
        place = visible(named if visit.path == "." else f"{named}/{visit.path}")
        if SKILL_FILE in visit.files:
            visit.below.clear()  # what is inside a skill belongs to it
            yield place, _skill_in(folder, visit.path)
        elif visit.problem:
            yield place, Finding(None, [visit.problem])


def _skill_in(folder: ConfinedFolder, path: str) -> Finding:
    try:
        text = folder.read(_join(path, SKILL_FILE)).decode("utf-8")
    except ToolError as error:
        return Finding(None, [f"it is left out: {error}"])
    except UnicodeDecodeError:
        return Finding(None, [f"it is left out: {SKILL_FILE} is not UTF-8"])
    return read_skill(text, folder, path, Path(folder.base_dir, path).name)


def files_of(skill: Skill) -> Iterator[str]:
    """The files of a skill but its `SKILL.md`, relative to it; none whose name has characters that cannot be seen."""
    for visit in _walk(skill.folder, skill.path):
        for name in visit.files:
            path = str(PurePosixPath(visit.path, name).relative_to(skill.path))
            if path != SKILL_FILE and path.isprintable():
                yield path


class _Visit(NamedTuple):
    """A folder: its path, its files, the folders to go on with, which the caller may remove, and what is wrong."""

    path: str
    files: tuple[str, ...]
    below: list[str]
    problem: str = ""


def _walk(folder: ConfinedFolder, top: str) -> Iterator[_Visit]:
    """The folders from `top` on, each before those in it, in the order of their names."""
    waiting = deque([(top, 0)])
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return
        path, depth = waiting.popleft()
        try:
            names = folder.names(path)
        except ToolError as error:
            yield _Visit(path, (), [], str(error))
            continue
        below = [name for name in names.folders if name not in _PASSED_OVER] if depth < MAX_DEPTH else []
        yield _Visit(path, names.files, below, _links(names.others))
        waiting.extendleft((_join(path, name), depth + 1) for name in reversed(below))
    if waiting:
        yield _Visit(top, (), [], f"it has more than {MAX_FOLDERS:,} folders: the others are not looked into")


def _links(others: Iterable[str]) -> str:
    """What is wrong where links, or files of no regular kind, are named as skills are."""
    named = [name for name in others if name == SKILL_FILE or re.fullmatch("[a-z0-9-]+", name)]
    more = f" and {len(named) - _SHOWN_LINKS:,} more" if len(named) > _SHOWN_LINKS else ""
    listed = ", ".join(named[:_SHOWN_LINKS]) + more
    return f"links and special files are left out, name the real folder: {listed}" if named else ""


def _join(path: str, name: str) -> str:
    return name if path == "." else f"{path}/{name}"
