"""The supervisor: the process between a program and the command that it runs, with nothing but the library.

It sets limits before the command begins, adopts what the command leaves behind, and ends only when nothing of that is
left. Its standard input is a socket: lines about the command go out, and when the other side is shut down (the program
said so, or has ended) the command is ended: TERM, `grace` seconds, KILL. Its arguments are the config and those of the
command. The config is a mapping as `marshal` writes it, in hexadecimal digits: `{"grace": 0.5, "limits": {},
"confinement": {}, "monitor": False}`. The program has the same interpreter, so both know the same form.

Every command waits until this is loaded, so it imports no more than it must: with `json`, `signal` and `contextlib` it
would take twice as long.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import resource
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from contextlib import suppress
    from typing import Any, NoReturn
else:
    import _signal as signal  # the same without the classes of its constants

    class suppress:  # noqa: N801 - stands for contextlib's
        """A block that an exception of these classes ends quietly."""

        def __init__(self, *kinds: type[BaseException]) -> None:
            self.kinds = kinds

        def __enter__(self) -> None:
            """Nothing needs to be done."""

        def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
            return kind is not None and issubclass(kind, self.kinds)


PR_SET_CHILD_SUBREAPER = 36
PROC = "/proc"
PATIENCE = 2.0
"""Seconds to wait for what cannot be killed: a process of another user, or one that is blocked in the kernel."""


def main() -> None:
    """Run one command to its end."""
    config, argv = marshal.loads(bytes.fromhex(sys.argv[1])), sys.argv[2:]  # noqa: S302 - of the program's own making
    control = os.dup(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # until the child can be ended by one
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake = awake_on_signals()
    child = os.fork()
    if child == 0:
        become(config, argv, control)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a program may have blocked any, and that is inherited
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # the reader of the command's output must not wait for this process
        os.dup2(silence, descriptor)
    status = wait_for(child, control, wake)
    left, status = end(child, status, config, wake)
    tell(control, f"ended {status} {left}")
    os._exit(0)


def tell(control: int, line: str) -> None:
    """Say something to the program, if it is still there."""
    with suppress(OSError):
        os.write(control, f"{line}\n".encode())


def awake_on_signals() -> int:
    """A descriptor that can be read from whenever a child has ended or this process is asked to end."""
    wake, write = os.pipe()
    for descriptor in (wake, write):
        os.set_blocking(descriptor, False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    return wake


def signalled(wake: int) -> bytes:
    """The numbers of the signals that came since the last time."""
    with suppress(BlockingIOError):
        return os.read(wake, 4096)
    return b""


def reaped(child: int) -> tuple[int | None, bool]:
    """Reap whatever has ended: the wait status of `child` if it was among it, and whether any child is left."""
    found = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return found, True
            if pid == child:
                found = status
    except ChildProcessError:
        return found, False


def wait_for(child: int, control: int, wake: int) -> int | None:
    """Wait until the child has ended, and give its wait status, or until an end is requested, and give None."""
    while True:
        status, _ = reaped(child)
        if status is not None:
            return status
        ready, _, _ = select.select([control, wake], [], [])
        if wake in ready and set(signalled(wake)) & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            return None
        if control in ready:
            with suppress(OSError):
                os.read(control, 1)
            return None


def end(child: int, status: int | None, config: dict[str, Any], wake: int) -> tuple[int, int]:
    """End everything that is left: how many processes could not be ended, and the wait status of the child.

    That the system knows no child any more is the proof that there is none.
    """
    began = time.monotonic()
    notified: set[int] = set()
    while True:
        found, any_left = reaped(child)
        status = status if found is None else found
        if not any_left:
            kill(-child, signal.SIGKILL)  # where nothing is adopted, its group is all that can be found
            return 0, -1 if status is None else status
        elapsed = time.monotonic() - began
        patient = elapsed < config["grace"]
        left = descendants(child)
        if elapsed > config["grace"] + PATIENCE:
            return len(left), -1 if status is None else status
        for pid in left - notified if patient else left:
            # The monitor of a sandbox hands no signal on; it ends when what it watches has ended.
            if not (patient and config.get("monitor") and pid == child):
                kill(pid, signal.SIGTERM if patient else signal.SIGKILL)
        notified |= left
        select.select([wake], [], [], 0.01)
        signalled(wake)


def kill(pid: int, number: int) -> None:
    """Send a signal; a stopped process is woken to hear it."""
    with suppress(OSError):
        os.kill(pid, number)
        os.kill(pid, signal.SIGCONT)


def descendants(child: int) -> set[int]:
    """The processes below this one; without /proc those of the child's own group."""
    me = os.getpid()
    try:
        if os.readlink(f"{PROC}/self") != str(me):  # noqa: PTH115 - as light as can be
            return {-child}  # it is that of other processes
        below = children if os.path.exists(f"{PROC}/self/task/{me}/children") else listed()  # noqa: PTH110 - as above
    except OSError:
        return {-child}
    found: set[int] = set()
    ring = {me}
    while ring:
        ring = {pid for parent in ring for pid in below(parent)} - found
        found |= ring
    return found


def children(parent: int) -> set[int]:
    """The processes that a process has begun or adopted, as the kernel lists them."""
    found: set[int] = set()
    with suppress(OSError):  # it has ended
        for thread in os.listdir(f"{PROC}/{parent}/task"):  # noqa: PTH208 - as above
            with suppress(OSError), open(f"{PROC}/{parent}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found.update(map(int, file.read().split()))
    return found


def listed() -> Callable[[int], set[int]]:
    """The same for kernels that do not list children, from a look at every process. Raises OSError without /proc."""
    below: dict[int, set[int]] = {}
    for name in os.listdir(PROC):  # noqa: PTH208 - as above
        if name.isdigit():
            with suppress(OSError, ValueError), open(f"{PROC}/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                # After the name, which may hold anything: state, parent.
                parent = int(file.read().rpartition(b")")[2].split()[1])
                below.setdefault(parent, set()).add(int(name))
    return lambda pid: below.get(pid, set())


def become(config: dict[str, Any], argv: list[str], control: int) -> NoReturn:
    """In the child: turn into the command, with no input, a session of its own, limits and confinement."""
    try:
        os.setsid()
        # Told from here: before the command begins, which may begin by killing the supervisor.
        tell(control, f"started {os.getpid()}")
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():  # what is ignored here would be ignored by the command
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        program, argv = confine(config.get("confinement") or {}, argv)
        for name, value in config["limits"].items():
            limit(getattr(resource, name), value)
        os.execve(program, argv, os.environ)  # noqa: S606 - that is what it is for
    except OSError as error:
        tell(control, f"failed {error.errno or 0}")
    except BaseException:  # noqa: BLE001 - a process that is not the supervisor must not go on as one
        tell(control, "failed 0")
    os._exit(127)


def confine(confinement: dict[str, Any], argv: list[str]) -> tuple[str | int, list[str]]:
    """Take on what a command is confined by; gives the program to start, and its arguments. Raises OSError."""
    if not confinement:
        return argv[0], argv
    if TYPE_CHECKING:
        from pegboard_shell import _mounts as mounts
        from pegboard_shell import _restrict as restrict
    else:
        import _restrict as restrict
    if "landlock" in confinement:
        restrict.confine_files(confinement["landlock"])
        restrict.filter_calls(confinement["calls"])
        return argv[0], argv
    if not TYPE_CHECKING:
        import _mounts as mounts
    program = os.open(argv[0], os.O_RDONLY)  # which may be hidden in a moment
    mounts.arrange(confinement["mounts"])
    # It takes the filter on when its own work is done, which the filter refuses.
    calls = os.memfd_create("calls", 0)
    os.write(calls, confinement["calls"])
    os.lseek(calls, 0, os.SEEK_SET)
    return program, [argv[0], "--seccomp", str(calls), *argv[1:]]


def limit(which: int, value: int) -> None:
    """Set a limit, no higher than it already is."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
