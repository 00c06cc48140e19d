"""Kills writers at random moments, and counts what they leave.

Run as `python killed.py DIRECTORY ENGINE KILLS`; prints torn files, leftovers right after a kill, those that are left
after one more write, and how many kills came when something had been written, as JSON.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from pegboard_files import FileTools, _replacing

SIZE = 1 << 20
LETTERS = "abcdefgh"


def write_for_ever(base: str, ready: int) -> None:
    """Replace, create, insert into and edit files of one letter each."""
    tools = FileTools(base)
    os.write(ready, b"!")
    number = 0
    while True:
        number += 1
        letter = random.choice(LETTERS)
        tools.write_text_file("replaced", letter * SIZE)
        tools.write_text_file("edited", letter * SIZE, "1,1")
        tools.write_text_file(f"new-{number}", letter * SIZE)
        tools.insert_text_file(f"new-{number}", letter * SIZE, 1)


def is_whole(content: str) -> bool:
    """Whether the file is one that a writer has written: whole lines of one letter."""
    return all(len(line) == SIZE and line == line[0] * SIZE for line in content.split("\n"))


def one_kill(base: Path) -> tuple[int, int, bool]:
    """Start a writer, kill it; the number of torn files, of leftovers, and whether it had written."""
    reader, ready = os.pipe()
    before = (base / "replaced").stat().st_ino
    child = os.fork()
    if not child:
        write_for_ever(str(base), ready)
    os.read(reader, 1)
    time.sleep(random.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(ready)
    names = sorted(path.name for path in base.iterdir())
    leftovers = [name for name in names if name.startswith(".")]
    files = [name for name in names if not name.startswith(".")]
    torn = sum(not is_whole((base / name).read_text()) for name in files)
    wrote = (base / "replaced").stat().st_ino != before
    for name in files:
        if name.startswith("new"):
            (base / name).unlink()
    return torn, len(leftovers), wrote


def main(base: Path, engine: str, kills: int) -> None:
    """Print the counts."""
    if engine == "named temporary file":
        _replacing._unnamed = lambda *_: -1
    tools = FileTools(base, durability="rename")
    tools.write_text_file("replaced", "a" * SIZE)
    tools.write_text_file("edited", "a" * SIZE)
    torn = leftovers = in_time = 0
    for _ in range(kills):
        torn_now, left_now, wrote = one_kill(base)
        torn, leftovers, in_time = torn + torn_now, leftovers + left_now, in_time + wrote
        if left_now:
            tools.write_text_file("replaced", "a" * SIZE)
    tools.write_text_file("replaced", "a" * SIZE)
    left = [path.name for path in base.iterdir() if path.name.startswith(".")]
    print(json.dumps({"torn": torn, "leftovers": leftovers, "left": left, "kills after a write": in_time}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
