"""Kills writers at random moments, and counts what they leave.

Run as `python killed.py DIRECTORY ENGINE KILLS`; prints, as JSON, kills, torn files, how many kills left a temporary
name, how many names were still there after the next use of a tool (of each tool in turn, by a user who had been there
before the writer), and how many kills came when something had been written.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

from pegboard_files import FileTools
from pegboard_files._directory import replacing as _replacing

SIZE = 1 << 20
ENOUGH = 200.0
"""Seconds after which a machine that is far too busy has seen enough kills."""
LETTERS = "abcdefgh"
FOLDERS = ["", "in/", "in/side/"]

USES: list[Callable[[FileTools], Any]] = [
    lambda tools: tools.view_text_file("in/side/replaced", "1,1"),
    lambda tools: tools.list_directory("in"),
    lambda tools: tools.find_files("no*such"),
    lambda tools: tools.search_text("no such", "in/side"),
    lambda tools: tools.write_text_file("in/replaced", "a" * SIZE),
    lambda tools: tools.edit_text_file("in/note", "here", "here "),
    lambda tools: tools.insert_text_file("in/side/note", "", 1),
]


def write_on(base: str, ready: int, parent: int) -> None:
    """Write, create, insert into and edit files of one letter each, in several directories, while the parent lives."""
    tools = FileTools(base)
    os.write(ready, b"!")
    number = 0
    while os.getppid() == parent:  # without a parent to kill it, it would fill the disk
        number += 1
        letter, folder = random.choice(LETTERS), random.choice(FOLDERS)
        tools.write_text_file(f"{folder}replaced", letter * SIZE)
        tools.write_text_file(f"{folder}edited", letter * SIZE, "1,1")
        tools.write_text_file(f"{folder}new-{number}", letter * SIZE)
        tools.insert_text_file(f"{folder}new-{number}", letter * SIZE, 1)


def is_whole(content: str) -> bool:
    """Whether the file is one that a writer has written: whole lines of one letter."""
    return all(len(line) == SIZE and line == line[0] * SIZE for line in content.split("\n"))


def files_in(base: Path, prefix: str) -> list[Path]:
    """The files whose names begin so, wherever they are."""
    return [path for path in base.rglob(f"{prefix}*") if path.is_file()]


def one_kill(base: Path, latest: float) -> tuple[int, bool]:
    """Start a writer, kill it after so many seconds; the number of torn files, and whether it had written."""
    reader, ready = os.pipe()
    before = {path: path.stat().st_ino for path in files_in(base, "replaced")}
    parent, child = os.getpid(), os.fork()
    if not child:
        write_on(str(base), ready, parent)
        os._exit(0)
    os.read(reader, 1)
    time.sleep(random.uniform(0, latest))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(ready)
    files = [path for prefix in ("replaced", "edited", "new") for path in files_in(base, prefix)]
    torn = sum(not is_whole(path.read_text()) for path in files)
    wrote = any(path.stat().st_ino != inode for path, inode in before.items())
    for path in files_in(base, "new"):
        path.unlink()
    return torn, wrote


def main(base: Path, engine: str, kills: int) -> None:
    """Print the counts."""
    if engine == "named temporary file":
        _replacing._unnamed = lambda *_: -1
    tools = FileTools(base, durability="rename")
    began = time.monotonic()
    for folder in FOLDERS:
        tools.write_text_file(f"{folder}replaced", "a" * SIZE)
        tools.write_text_file(f"{folder}edited", "a" * SIZE)
        tools.write_text_file(f"{folder}note", "here")
    # A busy machine gives each writer more time: most of them are to write something before they are killed.
    latest, parent = min(max(0.05, time.monotonic() - began), 0.2), os.getppid()
    torn = before = after = in_time = done = 0
    for use, _ in zip(cycle(USES), range(kills)):
        if time.monotonic() - began > ENOUGH or os.getppid() != parent:
            break
        done += 1
        torn_now, wrote = one_kill(base, latest)
        torn, in_time = torn + torn_now, in_time + wrote
        before += bool(files_in(base, "."))
        use(tools)
        after += len(files_in(base, "."))
    found = {"torn": torn, "left by kills": before, "left at last": after, "kills after a write": in_time}
    print(json.dumps({"kills": done, **found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
