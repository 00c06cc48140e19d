"""Seccomp: calls of the system that a sandbox must refuse, since nothing else in it does.

Bubblewrap leaves those that no namespace holds: UNIX sockets and others that are no network, the keys of the kernel,
and `io_uring`, whose calls no filter sees. It leaves user namespaces as well, in which a command may
mount: with the mounts that it was given out of its way it could move the places that they keep. Landlock leaves many
more: modes, times, owners and attributes of files wherever they are, memory shared with other programs, priorities and
limits of other processes, and a command that has what started it trace it.
"""

from __future__ import annotations

import errno
import functools
import struct
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

__all__ = ["call_filter"]

_NEWEST: Final = 462
"""The last call that is allowed unless it is refused by name; what kernels have learned since may be a way out."""
_INTERNET: Final = (2, 10, 16)
"""IPv4, IPv6, and what programs ask about addresses with."""
_UNIX: Final = 1
_CONNECTED: Final = (1, 5)
"""Types of a pair of UNIX sockets that cannot be connected to anything else later."""
_TYPE: Final = 0xF
_OF_FILE_SYSTEMS: Final = (ord("f"), ord("X"), 0x94)
"""Kinds of `ioctl` that change attributes of a file that is open for reading."""

_LOAD, _EQUAL, _GREATER, _SKIP, _RETURN = 0x20, 0x15, 0x25, 0x05, 0x06
_AND, _SHIFT_RIGHT = 0x54, 0x74
_KILL, _ALLOW, _REFUSE = 0x8000_0000, 0x7FFF_0000, 0x0005_0000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16


@frozen
class _Argument:
    """One argument of a call as a filter sees it: shifted to the right, then masked."""

    index: int
    values: Sequence[int]
    mask: int = 0xFFFF_FFFF
    shift: int = 0
    refused: bool = False
    """Whether these values are refused; otherwise all others are."""


_MACHINES: Final = {"x86_64": (0xC000_003E, 0), "aarch64": (0xC000_00B7, 1)}

# The numbers on x86-64 and on ARM, None where there is no such call; what it fails with; and what it depends on.
_Call = tuple[int | None, int | None]
_ALWAYS: Final[dict[int, tuple[_Call, ...]]] = {
    # io_uring, keys, and clone3, whose arguments no filter sees: programs take clone instead
    errno.ENOSYS: ((425, 425), (426, 426), (427, 427), (248, 217), (249, 218), (250, 219), (435, 435)),
}
_NEW_USERS: Final = 0x1000_0000
_CLONE: Final[_Call] = (56, 220)
_UNSHARE: Final[_Call] = (272, 97)
_SOCKET: Final[_Call] = (41, 198)
_SOCKETPAIR: Final[_Call] = (53, 199)
_UNCONFINED_BY_LANDLOCK: Final[dict[int, tuple[_Call, ...]]] = {
    errno.EPERM: (
        *((90, None), (91, 52), (268, 53), (452, 452)),  # modes
        *((92, None), (93, 55), (94, None), (260, 54)),  # owners
        *((132, None), (235, None), (261, None), (280, 88)),  # times
        *((188, 5), (189, 6), (190, 7), (197, 14), (198, 15), (199, 16)),  # attributes, set and removed
        *((29, 194), (30, 196), (31, 195), (64, 190), (65, 193), (66, 191), (220, 192)),  # shared memory, semaphores
        *((68, 186), (69, 189), (70, 188), (71, 187), (240, 180), (241, 181)),  # messages
        *((310, 270), (311, 271), (312, 272), (438, 438)),  # memory, kernel objects and files of other processes
    ),
    errno.ENOTSUP: ((191, 8), (192, 9), (193, 10), (194, 11), (195, 12), (196, 13)),  # attributes, read
    errno.ENOSYS: ((253, None), (294, 26), (300, 262)),  # inotify, fanotify
}
_OF_OTHERS: Final[dict[_Call, int]] = {
    **dict.fromkeys(((302, 261), (142, 118), (144, 119), (203, 122), (314, 274)), 0),  # prlimit64, sched_set*
    **dict.fromkeys(((141, 140), (251, 30)), 1),  # setpriority, ioprio_set
}
"""Calls about another process, and which argument says so by not being 0."""
_IOCTL: Final[_Call] = (16, 29)
_PTRACE: Final[_Call] = (101, 117)
_TRACE_ME: Final = 0
"""Makes the parent the tracer. Landlock lets it: the parent of a confined program may be less confined."""


@functools.cache
def call_filter(machine: str, *, network: bool, files: bool) -> bytes | None:
    """A filter as the kernel takes it, None for a machine whose calls are not known here.

    Without `network` there are no sockets but connected pairs; without `files` it also refuses what Landlock leaves.
    """
    if machine not in _MACHINES:
        return None
    architecture, column = _MACHINES[machine]
    program = [_load(_MACHINE), _jump(_EQUAL, architecture, 1, 0), _end(_KILL)]  # calls of 32 bits have other numbers
    program += [_load(_NUMBER), _jump(_GREATER, _NEWEST, 0, 1), _end(_REFUSE | errno.ENOSYS)]
    for (call, argument), code in _refusals(network=network, files=files):
        number = call[column]
        if number is not None:
            body = [*_check(argument), _end(_REFUSE | code)] if argument else [_end(_REFUSE | code)]
            body += [_load(_NUMBER)] if argument else []
            program += [_jump(_EQUAL, number, 0, len(body)), *body]
    return b"".join((*program, _end(_ALLOW)))


def _refusals(*, network: bool, files: bool) -> Iterator[tuple[tuple[_Call, _Argument | None], int]]:
    yield (_SOCKET, _Argument(0, _INTERNET if network else ())), errno.EACCES
    yield (_SOCKETPAIR, _Argument(0, (_UNIX,))), errno.EACCES
    yield (_SOCKETPAIR, _Argument(1, _CONNECTED, _TYPE)), errno.EACCES
    for call in (_CLONE, _UNSHARE):
        yield (call, _Argument(0, (_NEW_USERS,), _NEW_USERS, refused=True)), errno.EPERM
    for code, calls in [*_ALWAYS.items(), *([] if files else _UNCONFINED_BY_LANDLOCK.items())]:
        for call in calls:
            yield (call, None), code
    if not files:
        yield (_IOCTL, _Argument(1, _OF_FILE_SYSTEMS, 0xFF, shift=8, refused=True)), errno.ENOTTY
        yield (_PTRACE, _Argument(0, (_TRACE_ME,), refused=True)), errno.EPERM
        for call, index in _OF_OTHERS.items():
            yield (call, _Argument(index, (0,))), errno.EPERM


def _check(argument: _Argument) -> list[bytes]:
    """Skip the instruction that follows, the refusal, unless the argument is refused."""
    instructions = [_load(_ARGUMENTS + 8 * argument.index)]  # the lower half: both machines put it first
    instructions += [_instruction(_SHIFT_RIGHT, argument.shift)] if argument.shift else []
    instructions += [_instruction(_AND, argument.mask)]
    for remaining, value in reversed(list(enumerate(reversed(argument.values)))):
        instructions.append(_jump(_EQUAL, value, remaining + 1, 0))
    return [*instructions, *([_instruction(_SKIP, 1)] if argument.refused else [])]


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _jump(how: int, value: int, yes: int, no: int) -> bytes:
    return struct.pack("=HBBI", how, yes, no, value)


def _end(result: int) -> bytes:
    return _instruction(_RETURN, result)


def _instruction(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)
