"""The filter for calls of the system, run as the kernel would, on machines that are not here too."""

import errno
import re
import struct
from pathlib import Path

import pytest

from pegboard_shell._sandbox.seccomp import call_filter

HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = "allow", "kill"

ALWAYS = "io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl socket socketpair clone3"
LEFT_BY_LANDLOCK = """
chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat
setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open mq_unlink
inotify_init inotify_init1 fanotify_init
prlimit64 sched_setparam sched_setscheduler sched_setaffinity sched_setattr setpriority ioprio_set ioctl
process_vm_readv process_vm_writev kcmp pidfd_getfd
"""


def verdict(program: bytes, number: int, arguments: tuple[int, ...] = (), architecture: int = 0) -> str:
    """What a filter says about a call."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(*arguments, *[0] * (6 - len(arguments))))
    instructions = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    at, value = 0, 0
    while True:
        code, yes, no, operand = instructions[at]
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, operand)
        elif code == 0x15:
            at += yes if value == operand else no
        elif code == 0x25:
            at += yes if value > operand else no
        elif code == 0x05:
            at += operand
        elif code == 0x54:
            value &= operand
        elif code == 0x74:
            value >>= operand
        else:
            assert code == 0x06
            if operand == 0x7FFF0000:
                return ALLOW
            return KILL if operand == 0x80000000 else errno.errorcode[operand & 0xFFFF]


def numbers(machine: str) -> dict[str, int]:
    """The calls of a machine, as its headers name them."""
    if not HEADERS[machine].exists():
        pytest.skip("needs the headers of the kernel")
    found = re.findall(r"#define __NR3?2?_?(\w+) (\d+)", HEADERS[machine].read_text(encoding="utf-8"))
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize(("files", "expected"), [(True, ALLOW), (False, "EPERM")])
def test_being_traced_by_the_program_that_started_it(machine: str, files: bool, expected: str) -> None:
    program = call_filter(machine, network=False, files=files)
    assert program is not None
    ptrace = numbers(machine)["ptrace"]
    trace_me, attach, seize = (
        verdict(program, ptrace, (request,), ARCHITECTURES[machine]) for request in (0, 16, 0x4206)
    )
    assert (trace_me, attach, seize) == (expected, ALLOW, ALLOW)


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("files", [True, False])
def test_what_is_refused(machine: str, files: bool) -> None:
    """With arguments that mean a UNIX socket, another process, a flag of a file."""
    calls = numbers(machine)
    program = call_filter(machine, network=True, files=files)
    assert program is not None
    refused = {
        name
        for name, number in calls.items()
        if verdict(program, number, (1, (ord("f") << 8) | 2), ARCHITECTURES[machine]) != ALLOW
    }
    expected = set(f"{ALWAYS} {'' if files else LEFT_BY_LANDLOCK}".split()) & calls.keys()
    newer = {name for name, number in calls.items() if number > 462}
    assert refused - newer == expected - newer
    assert newer <= refused


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_what_depends_on_arguments(machine: str) -> None:
    calls = numbers(machine)
    for network in (True, False):
        program = call_filter(machine, network=network, files=False)
        assert program is not None

        def outcome(name: str, *arguments: int, filter_: bytes = program) -> str:
            return verdict(filter_, calls[name], arguments, ARCHITECTURES[machine])

        for family in (2, 10, 16):  # IPv4, IPv6, netlink
            assert outcome("socket", family, 1) == (ALLOW if network else "EACCES")
        for family in (0, 1, 17, 38, 40):  # UNIX, packets, the kernel's ciphers, the machine below
            assert outcome("socket", family, 1) == "EACCES"
        for kind in (1, 5, 1 | 0o2000000, 5 | 0o4000):  # connected, whatever flags
            assert outcome("socketpair", 1, kind) == ALLOW
        assert outcome("socketpair", 1, 2) == "EACCES"
        assert outcome("socketpair", 30, 1) == "EACCES"
        assert outcome("ioctl", 3, 0x5401) == ALLOW
        for request in (0x40086602, 0x40046602, 0x401C5820, 0x80086601, 0x40049409):
            assert outcome("ioctl", 3, request) == "ENOTTY"
        for call in ("clone", "unshare"):
            assert outcome(call, 0x10020000) == outcome(call, 0x10000011) == "EPERM"
            assert outcome(call, 0x00020011) == ALLOW
        assert outcome("prlimit64", 0, 7) == outcome("setpriority", 0, 0, 5) == outcome("sched_setaffinity", 0) == ALLOW
        assert (
            outcome("prlimit64", 7, 7) == outcome("setpriority", 0, 7, 5) == outcome("sched_setaffinity", 7) == "EPERM"
        )


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_other_machines_and_newer_calls(machine: str) -> None:
    program = call_filter(machine, network=True, files=True)
    assert program is not None
    assert verdict(program, 0, (), 0x40000003) == KILL  # 32 bits
    for number in (463, 469, 470, 1000, 0x40000000 + 90, -1):
        assert verdict(program, number, (), ARCHITECTURES[machine]) == "ENOSYS"


def test_unknown_machine_has_none() -> None:
    assert call_filter("riscv64", network=True, files=True) is None
