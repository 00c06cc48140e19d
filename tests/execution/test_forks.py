"""A program that forks after its toolkit was used: the toolkit works in the child and in the parent."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.support.thinning import one_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")

PROGRAM = """
import asyncio, os, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads, which is what this is about
from pegboard import ExecutionPolicy, Toolkit, tool

def sync(n: int) -> int:
    return n

async def later(n: int) -> int:
    await asyncio.sleep(0.001)
    return n

@tool(exclusive=True)
def alone(n: int) -> int:
    return n

@tool(locks="l", timeout=30.0)
def locked(n: int, wait: bool = False) -> int:
    if wait:
        holding.set()
        go.wait(30)
    return n

holding, go = threading.Event(), threading.Event()
toolkit = Toolkit(plugins=(), max_concurrency=8)
toolkit.register(sync, later, alone, locked)

def use():
    names = ["sync", "later", "alone", "locked"]
    calls = [(name, {"n": 1}) for name in names]
    values = [toolkit.call_sync(*call).value for call in calls]
    values += [toolkit.call_sync(*call, policy=ExecutionPolicy(timeout=20)).value for call in calls]
    values += [result.value for result in toolkit.call_many_sync(calls)]
    async def main():
        return [result.value for result in await toolkit.call_many(calls * 20)]
    values += asyncio.run(main())
    return set(values) == {1} and toolkit.stats["running"] == 0

def leave(good):
    os.write(1, b"child is well\\n" if good else b"child is not\\n")
    os._exit(0 if good else 1)

def forked(child):
    pid = os.fork()
    if pid == 0:
        try:
            leave(child())
        finally:
            os._exit(2)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hangs"
"""

CASES = {
    "used before": "assert use(); print(forked(use), use())",
    "and closed in the child": "assert use(); print(forked(lambda: use() and not toolkit.close()), use())",
    "closed in the child at once": "assert use(); print(forked(lambda: not toolkit.close()), use())",
    "a call runs in another thread": """
        thread = threading.Thread(target=toolkit.call_sync, args=("locked", {"n": 1, "wait": True}))
        thread.start()
        holding.wait(30)
        code = forked(use)
        go.set()
        thread.join()
        print(code, use())
    """,
    "a child of a child": "assert use(); print(forked(lambda: use() and forked(use) == 0), use())",
}


@pytest.mark.parametrize("case", one_in(2, CASES))
def test_a_toolkit_works_in_the_child_and_in_the_parent(case: str) -> None:
    program = f"{PROGRAM}\n{textwrap.dedent(CASES[case])}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines()[-1:] == ["0 True"], done
    assert done.stderr == ""
