"""The repository that the site links to: the one that the core's `[project.urls]` name, or where this checkout is from.

`python -m tests.docs.repository` prints its URL, or an empty line.
"""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# https://user:token@host:port/path.git, ssh://git@host:port/path.git and git@host:path.git
_REMOTE: Final = re.compile(
    r"(?:(?:https|ssh)://(?:[^@/]*@)?(?P<host>[^/:@]+)(?::\d+)?/|[^@/\s]+@(?P<scp>[^/:@]+):)"
    r"(?P<path>[\w./~-]+?)(?:\.git)?/?"
)


def page_of(remote: str) -> str:
    """The page of a remote repository, without user and password; empty for a folder and what is no forge's."""
    found = _REMOTE.fullmatch(remote.strip())
    return f"https://{found['host'] or found['scp']}/{found['path'].lstrip('/')}" if found else ""


def repository() -> str:
    """The page of the repository; empty where nothing names one."""
    core = tomllib.loads((ROOT / "core" / "pyproject.toml").read_text("utf-8"))["project"]
    if named := core.get("urls", {}).get("Repository"):
        return str(named)
    if (git := shutil.which("git")) is None:
        return ""
    asked = (git, "-C", str(ROOT), "remote", "get-url", "origin")
    return page_of(subprocess.run(asked, capture_output=True, text=True, check=False).stdout)


if __name__ == "__main__":
    print(repository())
