"""One skill: what its `SKILL.md` says, checked by the Agent Skills specification."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from pegboard_files import ConfinedFolder
from pegboard_skills._front_matter import FrontMatterError, read_front_matter, split_text

__all__ = ["Finding", "Skill", "read_skill", "visible"]

MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500


@frozen
class Skill:
    """A skill: a folder with a `SKILL.md`.

    `name`, `description` and `compatibility` are one line each, without characters that cannot be seen.

    Args:
        name: Name of the skill.
        description: When to use it.
        compatibility: What it needs. Empty where it says nothing.
        path: Path of its files in the folder.
        text: The whole `SKILL.md`.
        folder: The folder that it was found in.
        start: Where its instructions begin in the text.
    """

    name: str
    description: str
    compatibility: str
    path: str
    text: str = field(repr=False)
    folder: ConfinedFolder = field(repr=False, eq=False)
    _start: int = field(repr=False)

    @property
    def body(self) -> str:
        """The instructions: what stands below the front matter."""
        return self.text[self._start :].strip()

    @property
    def group(self) -> str:
        """The name of the group of tools that loading the skill activates."""
        return f"skill:{self.name}"

    @property
    def place(self) -> str:
        """The absolute path of its folder."""
        return str(Path(self.folder.base_dir, self.path))

    def path_of(self, path: str) -> str:
        """The path of one of its files, relative to `folder`."""
        return path if self.path == "." else f"{self.path}/{path}"


class Finding(NamedTuple):
    """What reading a skill came to: the skill, None if it is left out, and what is wrong with it."""

    skill: Skill | None
    problems: list[str]


def read_skill(text: str, folder: ConfinedFolder, path: str, folder_name: str) -> Finding:
    """Read a `SKILL.md` that stands in `path`. Nothing is raised: what is wrong is in the finding."""
    try:
        front, start = split_text(text)
        values = read_front_matter(front)
        name = _name(values.get("name"))
        description = _description(values.get("description"))
    except FrontMatterError as error:
        return Finding(None, [f"it is left out: {error}"])
    compatibility = visible(values["compatibility"]) if isinstance(values.get("compatibility"), str) else ""
    skill = Skill(name, description, compatibility, path, text, folder, start)
    return Finding(skill, list(_warnings(skill, values, folder_name)))


def _name(value: Any) -> str:
    """The name of a skill, from which the name of a group is made. Raises `FrontMatterError` for what is none."""
    if not value:
        raise FrontMatterError("it has no name")
    if not isinstance(value, str) or not re.fullmatch("[a-z0-9-]+", value):
        raise FrontMatterError(f"its name {visible(str(value))[:80]!r} has other characters than a-z, 0-9 and hyphens")
    if len(value) > MAX_NAME:
        raise FrontMatterError(f"its name has {len(value)} characters, more than {MAX_NAME}")
    return value


def _description(value: Any) -> str:
    if not isinstance(value, str) or not visible(value):
        raise FrontMatterError("it has no description, which says what it does and when to use it")
    return visible(value)


def _warnings(skill: Skill, values: Mapping[str, Any], folder_name: str) -> Iterator[str]:
    """What is wrong with a skill that is taken."""
    if skill.name != folder_name:
        yield f"its name {skill.name!r} is not that of its folder, {visible(folder_name)[:80]!r}"
    if skill.name.startswith("-") or skill.name.endswith("-") or "--" in skill.name:
        yield f"its name {skill.name!r} begins or ends with a hyphen, or has two in a row"
    for key, most in (("description", MAX_DESCRIPTION), ("compatibility", MAX_COMPATIBILITY)):
        length = len(values[key].strip()) if isinstance(values.get(key), str) else 0
        if length > most:
            yield f"its {key} has {length:,} characters, more than {most:,}"


def visible(text: str) -> str:
    """A text on one line, without control characters, those that turn the direction of a line, and invisible ones.

    They could forge an entry of the catalog, or hide from the people who read the skill what the model reads.
    """
    return "".join(character for character in " ".join(text.split()) if character.isprintable())
