"""Pieces of work for processes of their own: `python -m tests.plugins.journal.laborers NAME ARGUMENT ...`."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pegboard import tool
from pegboard_journal import Journal
from tests.plugins.journal.desk import Tools, journaled, laborer


def say(**data: Any) -> None:
    """Tell the test, in one piece: several processes write into one pipe."""
    sys.stdout.write(json.dumps(data) + "\n")
    sys.stdout.flush()


def fork(work: Callable[[], Any]) -> int:
    """A child that does a piece of work: it has loaded what its parent has, in no time."""
    child = os.fork()
    if child == 0:
        try:
            work()
            sys.stdout.flush()
            os._exit(0)
        finally:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    return child


def together(name: str, processes: int, url: str, *arguments: Any) -> None:
    """Let several processes do the same piece of work."""
    if not hasattr(os, "fork"):
        for each in [laborer(name, url, *arguments) for _ in range(processes)]:
            print(each.communicate()[0], end="")
            assert each.returncode == 0
        return
    with Journal(url) as journal, journaled(url):
        assert journal.head == ""
    children = [fork(partial(globals()[name], url, *arguments)) for _ in range(processes)]
    for child in children:
        assert os.waitpid(child, 0)[1] == 0


def calls(url: str, number: int) -> None:
    """Make calls, every tenth of them with an effect."""
    with journaled(url) as toolkit:
        for each in range(number):
            name, arguments = ("pay", {"amount": each}) if each % 10 == 0 else ("weather", {"city": str(each)})
            assert not toolkit.call_sync(name, arguments).is_error
        assert not toolkit.problems, toolkit.problems


def until_killed(url: str) -> None:
    """For each list of files that comes, fork as many children that make calls of a tool with an effect until the end.

    Each writes down the calls that have come back. It is told who they are, and by which signals they ended.
    """
    with journaled(f"{url}.first") as toolkit:  # everything is loaded before the first child
        toolkit.call_sync("pay", {"amount": 1})
    for line in sys.stdin:
        children = [fork(partial(_pay, url, log)) for log in json.loads(line)]
        say(children=children)
        say(signals=[-os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])


def _pay(url: str, log: str) -> None:
    with Path(log).open("a", encoding="utf-8") as file, journaled(url) as toolkit:
        for each in range(100_000):
            call_id = f"{time.time_ns()}-{each}"
            result = toolkit.call_sync("pay", {"amount": each}, call_id=call_id)
            assert not result.is_error, result.text
            file.write(f"{call_id}\n")
            file.flush()


def hang(url: str, settings: dict[str, Any], key: str) -> None:
    """Begin a call of a tool with an effect that does not come back."""
    running = threading.Event()

    @tool
    def charge(amount: int) -> str:
        """Charge."""
        running.set()
        time.sleep(600)
        return "charged"

    with journaled(url, charge, **settings) as toolkit:
        threading.Thread(
            target=toolkit.call_sync, args=("charge", {"amount": 1}), kwargs={"call_id": key}, daemon=True
        ).start()
        assert running.wait(30)
        say(running=True)
        sys.stdin.read()


def once(url: str, number: int) -> None:
    """Make calls of which each key runs once, over all processes that do the same."""
    tools = Tools()
    with journaled(url, tools, once=["pay"]) as toolkit:
        for each in range(number):
            result = toolkit.call_sync("pay", {"amount": each}, call_id=f"key {each}")
            assert result.data == {"paid": each}, result.text
    say(ran=tools.ran)


if __name__ == "__main__":
    globals()[sys.argv[1]](*map(json.loads, sys.argv[2:]))
