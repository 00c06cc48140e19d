"""Mounts: what a command sees of the file system, put together before bubblewrap begins, in namespaces of its own.

Part of the supervisor. A path says where something was when it was looked at; other commands may have put a link there
since. So every place is opened once, by a walk that follows no link, and from then on only the open place is spoken of:
what is mounted, and what it is mounted on, are descriptors. Bubblewrap is then told of no path that a command could
change.
"""

from __future__ import annotations

import ctypes
import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
if TYPE_CHECKING or __package__:
    from pegboard_shell._restrict import FOLDER, LIBC, checked, kind, syscall, walk
else:  # in the supervisor, which knows no packages
    from _restrict import FOLDER, LIBC, checked, kind, syscall, walk

OPEN_TREE, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, MOUNT_SETATTR = 428, 429, 430, 431, 432, 442
CLONE_NEWNS, CLONE_NEWUSER = 0x0002_0000, 0x1000_0000
AT_EMPTY_PATH, AT_RECURSIVE = 0x1000, 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_OPEN_PLACES = 0x04 | 0x40
FSCONFIG_SET_STRING, FSCONFIG_CMD_CREATE = 1, 6
READ_ONLY, NO_SETUID, NO_DEVICES = 1, 2, 4
MS_PRIVATE = 1 << 18


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
