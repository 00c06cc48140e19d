"""A process beside a worker, which ends it when a call's time is up and nothing in the worker can.

A thread of the worker's own needs the lock of the interpreter for that, which native code may keep for ever. What the
worker has in hand stands on a page of memory that both have; the guard sleeps until the time of that is up. It is
started as a script, and loads nothing of Pegboard, and Ray only before it kills.
"""

import math
import mmap
import os
import select
import signal
import struct
import sys
import time
from importlib import import_module

__all__ = ["PAGE"]

PAGE = struct.Struct("!d128s")
"""The deadline by the clock of this machine, infinite if there is none, and the key of the call."""


def main(number: str, address: str, namespace: str) -> None:
    """Guard the process that has started this one; `number` is that of the page's file."""
    page, worker = mmap.mmap(int(number), PAGE.size), os.getppid()
    while True:
        deadline, key = PAGE.unpack_from(page)
        left = deadline - time.monotonic()
        if left > 0:
            # A byte says to look sooner; the end of the file that the worker has ended.
            if select.select([0], [], [], None if left == math.inf else left)[0] and not os.read(0, 64):
                return
            continue
        client = import_module("ray._raylet").GcsClient(address=address)
        if os.getppid() != worker:
            return
        os.kill(worker, signal.SIGSTOP)
        if PAGE.unpack_from(page) != (deadline, key):  # it ended meanwhile, and another may have begun
            os.kill(worker, signal.SIGCONT)
            continue
        task, _, call = key.rstrip(b"\0").partition(b"/")
        try:
            client.internal_kv_put(task, call, True, namespace.encode())
        finally:
            os.kill(worker, signal.SIGKILL)
        return


if __name__ == "__main__":
    main(*sys.argv[1:])
