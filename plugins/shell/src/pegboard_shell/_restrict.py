"""Restrictions that a process takes on for good, and all that it starts with it. Part of the supervisor."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 22, 24, 38
SECCOMP_MODE_FILTER = 2
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
MOST_CAPABILITIES = 64
FOLDER, LINK = 0o04_0000, 0o12_0000
LIBC = ctypes.CDLL(None, use_errno=True)
CAPABILITY_VERSION = 0x2008_0522


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
