"""The supervisor: the process between a program and the command that it runs, with nothing but the library.

It is one file, which another interpreter finds by its folder: nothing else of the pack is loaded there.

It sets limits before the command begins, adopts what the command leaves behind, and ends only when nothing of that is
left. Its standard input is a socket: lines about the command go out, and when the other side is shut down (the program
asks so, or has ended) the command is ended: TERM, `grace` seconds, KILL. Its arguments are the config and those of the
command. The config is a mapping as `marshal` writes it, in hexadecimal digits: `{"grace": 0.5, "limits": {},
"confinement": {}, "monitor": False}`. The program has the same interpreter, so both know the same form.

Every command waits until this is loaded, so it imports no more than it must: with `json`, `signal` and `contextlib` it
would take twice as long.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import resource
import select
import struct
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


PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 24, 36, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
MOST_CAPABILITIES = 64
FOLDER, LINK = 0o04_0000, 0o12_0000
LIBC = ctypes.CDLL(None, use_errno=True)
CAPABILITY_VERSION = 0x2008_0522
OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_OPEN_PLACES = 0x04 | 0x40
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
MS_PRIVATE = 1 << 18
PROC = "/proc"
PATIENCE = 2.0
"""Seconds to wait for what cannot be killed: a process of another user, or one that is blocked in the kernel."""


def main() -> None:
    """Run one command to its end."""
    config, argv = marshal.loads(bytes.fromhex(sys.argv[1])), sys.argv[2:]  # noqa: S302 - of the program's own making
    control = os.dup(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())  # until the child can be ended by one
    with suppress(AttributeError):
        LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wake = awake_on_signals()
    child = os.fork()
    if child == 0:
        become(config, argv, control)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # a program may have blocked any, and that is inherited
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # the reader of the command's output must not wait for this process
        os.dup2(silence, descriptor)
    status = wait_for(child, control, wake)
    remaining, status = end(child, status, config, wake)
    tell(control, f"ended {status} {remaining}")
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
    """End all remaining processes: how many could not be ended, and the wait status of the child.

    That the system knows no child any more is the proof that there is none.
    """
    began = time.monotonic()
    notified: set[int] = set()
    while True:
        found, any_remaining = reaped(child)
        status = status if found is None else found
        if not any_remaining:
            kill(-child, signal.SIGKILL)  # where nothing is adopted, its group is all that can be found
            return 0, -1 if status is None else status
        elapsed = time.monotonic() - began
        patient = elapsed < config["grace"]
        remaining = descendants(child)
        if elapsed > config["grace"] + PATIENCE:
            return len(remaining), -1 if status is None else status
        for pid in remaining - notified if patient else remaining:
            # The monitor of a sandbox hands no signal on; it ends when what it watches has ended.
            if not (patient and config.get("monitor") and pid == child):
                kill(pid, signal.SIGTERM if patient else signal.SIGKILL)
        notified |= remaining
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
    if "landlock" in confinement:
        confine_files(confinement["landlock"])
        filter_calls(confinement["calls"])
        return argv[0], argv
    program = os.open(argv[0], os.O_RDONLY)  # which may be hidden in a moment
    arrange(confinement["mounts"])
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


# Restrictions that a process takes on for good, and all that it starts with it -------------------------------


def confine_files(plan: dict[str, Any]) -> None:
    """Take on a plan for Landlock, and give up all capabilities. Raises OSError: then nothing may run."""
    attributes = struct.pack("=QQQ", plan["files"], 0, plan["scopes"])
    ruleset = syscall(LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for path, access in plan["rules"]:
        try:
            place = walk(f"/proc/{os.getpid()}" if path == "/proc/self" else path)
        except FileNotFoundError:  # it was there a moment ago
            continue
        syscall(LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", access, place), 0)
        os.close(place)
    for capability in range(MOST_CAPABILITIES):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails for a process that has none to drop
    checked(LIBC.capset(struct.pack("=Ii", CAPABILITY_VERSION, 0), bytes(24)))
    forbid_new_rights()
    syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def filter_calls(program: bytes) -> None:
    """Take on a filter for calls of the system. Raises OSError: then nothing may run."""
    forbid_new_rights()
    code = ctypes.create_string_buffer(program, len(program))
    packed = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, packed, 0, 0))


def forbid_new_rights() -> None:
    """Have no program that is started give more rights than there are."""
    checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def walk(path: str, folder: int | None = None) -> int:
    """Open the place that a path leads to, from a folder or the root. Raises OSError for a link on the way."""
    place = os.open("/", os.O_PATH) if folder is None else os.dup(folder)
    for name in filter(None, path.split("/")):
        last, place = place, -1
        try:
            place = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=last)
        finally:
            os.close(last)
    if kind(place) == LINK:
        os.close(place)
        raise OSError(errno.ELOOP, "a link is in the way", path)
    return place


def kind(place: int) -> int:
    """What stands at an open place: the bits of its mode that say so."""
    return os.fstat(place).st_mode & 0o17_0000


def syscall(number: int, *arguments: Any) -> int:
    """A call of the system that the C library may not know yet. Raises OSError."""
    wide = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    return checked(LIBC.syscall(ctypes.c_long(number), *wide))


def checked(result: int) -> int:
    """The result of a call of the system. Raises OSError for a failure."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# Mounts: what a command sees of the file system, put together before bubblewrap begins, in its namespaces ----

# A path says where something was when it was looked at; other commands may have put a link there since. So every place
# is opened once, by a walk that follows no link, and from then on only the open place is used: what is mounted, and
# what it is mounted on, are descriptors. Bubblewrap is then given no path that a command could change.


def arrange(plan: dict[str, Any]) -> None:
    """Show this process no more of the file system than the plan says. Raises OSError: then nothing may run.

    All is read-only; `hidden` places are empty but for what is `shown` in them, and `links`; the `workspace` is
    writable but for what is `protected` in it.
    """
    separate()
    root = os.open("/", os.O_PATH | os.O_DIRECTORY)
    change(root, propagation=MS_PRIVATE)
    shown = [(path, clone(walk(path), READ_ONLY)) for path in plan["shown"]]
    workspace = clone(walk(plan["workspace"])) if plan["workspace"] else None
    change(root, READ_ONLY)
    # A writable one cannot be mounted where the existing one is read-only; bubblewrap mounts its own.
    change(walk("/proc"), allowed=READ_ONLY)
    for path in plan["hidden"]:
        try:
            place = walk(path)
        except FileNotFoundError:
            continue
        attach(empty(), place)
    for path, mount in shown:
        attach(mount, made(path, mount))
    for path, target in plan["links"]:
        folder, _, name = path.rpartition("/")
        os.symlink(target, name, dir_fd=made(folder, root))
    if workspace is not None:
        attach(workspace, made(plan["workspace"], workspace))
        protect(workspace, plan["protected"])


def separate() -> None:
    """Give this process users and mounts of its own, in which it may mount."""
    user, group = os.getuid(), os.getgid()
    checked(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123 - as light as can be
            file.write(text)


def made(path: str, like: int) -> int:
    """The place that a path leads to, made where it is not there yet: as a folder or a file, as `like` is one."""
    place = os.open("/", os.O_PATH)
    names = [name for name in path.split("/") if name]
    for name in names[:-1] if kind(like) != FOLDER else names:
        try:
            place = walk(name, place)
        except FileNotFoundError:
            os.mkdir(name, 0o755, dir_fd=place)
            place = walk(name, place)
    if kind(like) != FOLDER:
        os.close(os.open(names[-1], os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644, dir_fd=place))
        place = walk(names[-1], place)
    return place


def protect(workspace: int, names: list[str]) -> None:
    """Make what is there of these names read-only, and keep the folders on the way to it where they are.

    The kernel moves no place that something is mounted on: such a folder is mounted on itself.
    """
    kept = {"": workspace}
    for path in names:
        at, parts = "", path.split("/")
        while parts:
            name = parts.pop(0)
            folder, at = kept[at], f"{at}/{name}"
            if at in kept:
                continue
            try:
                place = walk(name, folder)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ELOOP):
                    raise
                break  # it is not there, or it is a link: what that leads to is named itself
            whole = not parts or kind(place) != FOLDER
            kept[at] = clone(place, READ_ONLY if whole else 0)
            attach(kept[at], place)
            if whole:
                break


def clone(place: int, flags: int = 0) -> int:
    """A mount of a place with all that is mounted below it, which is nowhere yet."""
    mount = syscall(OPEN_TREE, place, b"", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | os.O_CLOEXEC)
    change(mount, flags, propagation=MS_PRIVATE)
    return mount


def attach(mount: int, place: int) -> None:
    """Mount a mount that is nowhere yet on an open place."""
    syscall(MOVE_MOUNT, mount, b"", place, b"", MOVE_MOUNT_OPEN_PLACES)


def empty() -> int:
    """A mount of a new, empty file system in memory."""
    context = syscall(FSOPEN, b"tmpfs", 1)
    syscall(FSCONFIG, context, FSCONFIG_SET_STRING, b"mode", b"0755", 0)
    syscall(FSCONFIG, context, FSCONFIG_CMD_CREATE, None, None, 0)
    return syscall(FSMOUNT, context, 1, NO_SETUID | NO_DEVICES)


def change(mount: int, flags: int = 0, *, allowed: int = 0, propagation: int = 0) -> None:
    """Change a mount's flags, and those of all mounts below it. Raises OSError."""
    attributes = (ctypes.c_uint64 * 4)(flags | NO_SETUID, allowed, propagation, 0)
    how = AT_EMPTY_PATH | (0 if allowed else AT_RECURSIVE)
    syscall(MOUNT_SETATTR, mount, b"", how, attributes, ctypes.sizeof(attributes))
