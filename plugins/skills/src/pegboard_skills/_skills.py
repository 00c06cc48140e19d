"""Skills as a source of tools: `toolkit.register(Skills("skills"))`."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import Annotated, Any, Final, final

from pegboard import Group, Param, Session, ToolError, tool
from pegboard_skills._catalog import SkillMatches, catalog, is_long, search
from pegboard_skills._folders import SKILL_FILE, Found, files_of, find_skills
from pegboard_skills._pages import LoadedSkill, Page, SkillPage, as_written
from pegboard_skills._skill import Skill

__all__ = ["Skills", "skill_resources"]

MAX_FILES: Final = 100
"""Files of a skill that are listed when it is loaded."""
MAX_COMPARED: Final = 1000
"""Files of a skill that are compared with the name of one that is not there."""
MAX_PROBLEMS: Final = 50
"""Problems that are reported one by one."""

_INTRODUCTION: Final = (
    "Load a skill: instructions for one kind of task. Where one of the skills below fits a task, load it before you "
    "begin, and follow it."
)
_SEARCH: Final = "search_skills says what each of them is for."


@final
class Skills:
    """The skills in some folders, as tools that `toolkit.register(skills)` registers.

    A folder is a skill, with a `SKILL.md`, or holds some, at most six levels below. The folders are read once, when
    this is registered. Each skill brings a group of tools, `skill:<name>`, which `load_skill` activates. Nothing is
    raised for what cannot be read: see `problems`. Raises ValueError without a folder.

    Args:
        folders: Folders that are skills, or hold some.
    """

    name = "skills"

    def __init__(self, *folders: str | os.PathLike[str]) -> None:
        if not folders:
            raise ValueError('Skills(...) takes the folders that skills are in, such as Skills("skills")')
        self.folders = tuple(os.fspath(folder) for folder in folders)

    def __repr__(self) -> str:
        return f"Skills({', '.join(map(repr, self.folders))})"

    @cached_property
    def _found(self) -> Found:
        return find_skills(self.folders)

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The skills by name, sorted."""
        return self._found.skills

    @property
    def served_resources(self) -> Mapping[str, tuple[str, str]]:
        """What `pegboard serve` lets clients read beside the tools: `skill_resources` of these skills."""
        return skill_resources(self)

    # A source of tools -------------------------------------------------------------------------------------------

    @property
    def problems(self) -> Sequence[str]:
        """What is left out of the folders, and what is wrong with the rest, a sentence each."""
        problems = self._found.problems if self.skills else [*self._found.problems, self._absence]
        more = len(problems) - MAX_PROBLEMS
        return [*problems[:MAX_PROBLEMS], *([f"skills: there are {more:,} problems more"] if more > 0 else ())]

    @property
    def _absence(self) -> str:
        return f"there is no skill, a folder with a {SKILL_FILE}, in {', '.join(self.folders)}"

    @property
    def groups(self) -> Sequence[Group]:
        """A group for each skill, for the tools that its instructions need."""
        return [
            Group(skill.group, skill.description, active=False, managed_by="program") for skill in self.skills.values()
        ]

    def watch(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Never call `changed()`: folders are read once."""
        return lambda: None

    def tools(self) -> list[Any]:
        """The tools; none where there is no skill."""
        return list(self._tools) if self.skills else []

    @cached_property
    def _tools(self) -> list[Any]:
        long = is_long(self.skills)
        listed = f"<available_skills>\n{catalog(self.skills)}\n</available_skills>"
        description = "\n".join([_INTRODUCTION, listed, *([_SEARCH] if long else ())])
        # Marks are set on what `as_written` makes: on a method itself they would be those of its class.
        load = tool(description=description, destructive=False, idempotent=True, open_world=False)
        read = tool(read_only=True, idempotent=True, open_world=False)
        tools = [load(as_written(self.load_skill)), read(as_written(self.read_skill_file))]
        return [*tools, read(as_written(self.search_skills))] if long else tools

    # What models call --------------------------------------------------------------------------------------------

    def load_skill(self, session: Session, name: Annotated[str, Param("The name of the skill")]) -> LoadedSkill:
        """Load a skill: its instructions, and the names of its files. Its group of tools becomes active."""
        skill = self._skill(name)
        page = Page.of(skill.body, 0)
        files = list(islice(files_of(skill), MAX_FILES + 1))
        return LoadedSkill(
            name=name,
            compatibility=skill.compatibility,
            text=page.text,
            total_chars=page.total_chars,
            next_start=page.next_start,
            files=files[:MAX_FILES],
            has_more_files=len(files) > MAX_FILES,
            tools=_activated(session, skill.group),
        )

    def read_skill_file(
        self,
        name: Annotated[str, Param("The name of the skill")],
        path: Annotated[str, Param('Path of the file in the skill, such as "references/forms.md"')],
        start: Annotated[int, Param("How many characters to skip", ge=0)] = 0,
    ) -> SkillPage:
        """Read a text file of a skill, or go on reading in a long one.

        Args:
            name: The name of the skill.
            path: Path of the file in the skill, such as "references/forms.md".
            start: How many characters to skip.
        """
        skill = self._skill(name)
        inside = _checked(path)
        text = skill.body if inside == SKILL_FILE else _text(skill, inside)
        page = Page.of(text, start)
        return SkillPage(name, inside, *page)

    def search_skills(self, query: Annotated[str, Param("What the task is, in a few words")]) -> SkillMatches:
        """Find skills by the words of their names and descriptions."""
        return search(self.skills, query)

    def _skill(self, name: str) -> Skill:
        """A skill by its name; what a model writes is looked up, and never part of a path."""
        skill = self.skills.get(name)
        if skill is None:
            near = get_close_matches(name, self.skills, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else "The description of load_skill lists them."
            raise ToolError(f"There is no skill of this name. {hint}")
        return skill


def _activated(session: Session, group: str) -> list[str]:
    """Activate a group in a session; the names of its tools that are offered there then."""
    if all(each.name != group for each in session.groups):
        return []  # the program has removed it
    session.update_groups(group, True)
    return [each.name for each in session.tools if group in (each.groups or each.options.groups)]


def _checked(path: str) -> str:
    """A path inside a skill in its normal form. Raises `ToolError` for one that leads out of it."""
    if path.startswith("/") or ".." in path.split("/"):
        raise ToolError("The path leads out of the skill. Use a path of a file in the skill, as load_skill lists them.")
    return posixpath.normpath(path)


def _text(skill: Skill, path: str) -> str:
    """The text of a file. Raises `ToolError`, which names the nearest files."""
    try:
        return skill.folder.read(skill.path_of(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{path} is no text (UTF-8): it cannot be shown.") from None
    except ToolError as error:
        files = list(islice(files_of(skill), MAX_COMPARED))
        if path in files:  # it is there, and cannot be read
            raise
        near = get_close_matches(path, files, n=3)
        hint = f"Did you mean {' or '.join(near)}?" if near else "load_skill lists the files of a skill."
        raise ToolError(f"{error} {hint}") from error


def skill_resources(skills: Skills) -> dict[str, tuple[str, str]]:
    """The `SKILL.md` of each skill as a resource of an MCP server: by URI, the text and its media type.

    Args:
        skills: The skills.
    """
    return {
        f"skill://{name}/{SKILL_FILE}": (skill.text, "text/markdown") for name, skill in sorted(skills.skills.items())
    }
