"""Ways out of a sandbox, each tried by a program in it, and the ground on which that shows.

A way leads out if the program read the secret, or anything outside is not as it was.
"""

import ctypes
import json
import os
import resource
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from pegboard_shell import ShellTools
from tests.plugins.shell.helpers import run

SECRET: Final = "the-secret-outside"
KINDS: Final = ("bubblewrap", "landlock", "none")

PRELUDE = """
import ctypes, fcntl, json, mmap, os, resource, signal, socket, struct, sys
ground = json.loads(sys.argv[1])
home, shown, space, pid = ground["home"], ground["shown"], ground["space"], ground["pid"]
secret, file = home + "/secret", shown + "/file"
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
def did(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "failed")
    return result
def call(*arguments):
    return did(libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))
def at(path):
    return ctypes.create_string_buffer(path.encode())
def out():
    print(ground["secret"])
def may_mount():
    "Become a user who may mount, in namespaces of its own if need be."
    if libc.syscall(430, at("tmpfs"), 0) < 0:
        did(libc.unshare(0x10020000))
def mounted(kind, **options):
    context = call(430, at(kind), 0)
    for key, value in options.items():
        call(431, context, 1, at(key), at(value), 0)
    call(431, context, 6, None, None, 0)
    return call(432, context, 0, 0)
"""

FILES = {
    "read a hidden file": "print(open(secret).read())",
    "list a hidden folder": "os.listdir(home); out()",
    "read it by a link in the workspace": "os.symlink(secret, 'link'); print(open('link').read())",
    "read it by a hard link in the workspace": "os.link(secret, 'hard'); print(open('hard').read())",
    "list a hidden folder from within": "os.chdir(home); os.listdir('.'); out()",
    "read a hidden file by a descriptor of its place": """
print(open(f"/proc/{os.getpid()}/fd/{os.open(secret, os.O_PATH)}").read())
""",
    "link it by a descriptor of its place": """
os.link(f"/proc/{os.getpid()}/fd/{os.open(secret, os.O_PATH)}", "hard", follow_symlinks=True)
print(open("hard").read())
""",
    "move it into the workspace": "os.rename(secret, 'moved'); print(open('moved').read())",
    "start a hidden program": "os.execv(home + '/program', ['program'])",
    "start a hidden program by a descriptor of its place": """
program = os.open(home + "/program", os.O_PATH)
os.set_inheritable(program, True)
os.execve(program, ["program"], {})
""",
    "read a hidden file by its handle": """
handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
did(libc.name_to_handle_at(-100, at(secret), handle, ctypes.byref(mount), 0))
print(os.read(did(libc.open_by_handle_at(os.open("/", os.O_RDONLY), handle, 0)), 100))
""",
    "read an attribute of a hidden file": "print(os.getxattr(secret, 'user.note'))",
    "watch a hidden folder": "did(libc.inotify_add_watch(did(libc.inotify_init()), at(home), 0xFFF)); out()",
    "learn the size of a hidden file": "os.stat(secret); out()",
    "write a hidden file": "open(secret, 'a').write('x')",
    "write a read-only file": "open(file, 'a').write('x')",
    "write it mapped into memory": "mmap.mmap(os.open(file, os.O_RDWR), 4)[0] = 65",
    "cut it": "os.truncate(file, 0)",
    "delete it": "os.unlink(file)",
    "rename it": "os.rename(file, shown + '/other')",
    "put another in its place": "open('mine', 'w').close(); os.rename('mine', file)",
    "create a file beside it": "open(shown + '/new', 'w').close()",
    "create a folder beside it": "os.mkdir(shown + '/new')",
    "create a link beside it": "os.symlink('/', shown + '/new')",
    "create a named pipe beside it": "os.mkfifo(shown + '/new')",
    "change the mode of a read-only file": "os.chmod(file, 0o600)",
    "change the mode of an open file": "os.fchmod(os.open(file, os.O_RDONLY), 0o600)",
    "change the mode by the newest call": "call(452, -100, at(file), 0o600, 0)",
    "change the mode by a call of 32 bits": """
assert os.uname().machine == "x86_64"
memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
memory[256:256 + len(file) + 1] = file.encode() + b"\\0"
code = b"\\x53\\xb8\\x0f\\0\\0\\0\\xbb" + struct.pack("<I", start + 256) + b"\\xb9\\x80\\x01\\0\\0\\xcd\\x80\\x5b\\xc3"
memory[:len(code)] = code
ctypes.CFUNCTYPE(ctypes.c_int)(start)()
""",
    "change the mode of a hidden file": "os.chmod(secret, 0o600)",
    "change the times of a read-only file": "os.utime(file, (1, 1))",
    "change the times of an open file": "os.utime(os.open(file, os.O_RDONLY), (1, 1))",
    "change the times of a hidden file": "os.utime(secret, (1, 1))",
    "change the owner of a read-only file": "os.chown(file, -1, os.getgid())",
    "change the owner of a hidden file": "os.chown(secret, -1, os.getgid())",
    "set an attribute of a read-only file": "os.setxattr(file, 'user.new', b'x')",
    "set an attribute of a hidden file": "os.setxattr(secret, 'user.new', b'x')",
    "remove an attribute of a read-only file": "os.removexattr(file, 'user.note')",
    "set a flag of a read-only file": "fcntl.ioctl(os.open(file, os.O_RDONLY), 0x40086602, struct.pack('l', 0x40))",
    "lock a read-only file": "fcntl.flock(os.open(file, os.O_RDONLY), fcntl.LOCK_EX); out()",
    "write into a named pipe of another program": """
os.write(os.open(shown + "/pipe", os.O_WRONLY | os.O_NONBLOCK), b"x")
""",
    "write settings of the system": "os.open('/proc/sys/vm/swappiness', os.O_WRONLY); out()",
    "uncover hidden files in a user namespace": """
did(libc.unshare(0x10020000))
for place in (ground["top"], "/tmp"):
    libc.umount2(at(place), 2)
print(open(secret).read())
""",
    "read a copy of the mount of a hidden folder": """
may_mount()
print(open(os.open("secret", os.O_RDONLY, dir_fd=call(428, -100, at(home), 1))).read())
""",
    "read hidden files in an overlay made of them": """
may_mount()
tree = mounted("overlay", lowerdir=home + ":" + space)
print(open(os.open("secret", os.O_RDONLY, dir_fd=tree)).read())
""",
    "read other processes in a mount of /proc": """
may_mount()
print(open(os.open(f"{pid}/environ", os.O_RDONLY, dir_fd=mounted("proc"))).read())
""",
    "write read-only files in a user namespace": """
did(libc.unshare(0x10020000))
libc.mount(None, at(shown), None, 0x1020, None)
open(file, "a").write("x")
""",
}
SOCKETS = {
    "a UNIX socket in a read-only folder": "socket.socket(socket.AF_UNIX).connect(shown + '/socket')",
    "a UNIX socket in a hidden folder": "socket.socket(socket.AF_UNIX).connect(home + '/socket')",
    "an abstract UNIX socket": "socket.socket(socket.AF_UNIX).connect('\\0' + ground['abstract'])",
    "a UNIX socket for datagrams": """
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", shown + "/datagrams")
""",
    "the same from a connected pair": "socket.socketpair(type=socket.SOCK_DGRAM)[0].sendto(b'x', shown + '/datagrams')",
    "TCP": "socket.create_connection(('127.0.0.1', ground['tcp']), 2)",
    "TCP with data in its first packet": """
socket.socket().sendto(b"x", 0x20000000, ("127.0.0.1", ground["tcp"]))
""",
    "UDP": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', ground['udp']))",
    "frames of the network card": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3); out()",
    "a socket to the machine below (VSOCK)": "socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM); out()",
    "a ring of calls that no filter sees (io_uring)": "call(425, 4, ctypes.create_string_buffer(256)); out()",
}
PROCESSES = {
    "read the environment of another process": "print(open(f'/proc/{pid}/environ').read())",
    "read a file that it has open": "print(open(f'/proc/{pid}/fd/{ground[\"fd\"]}').read())",
    "read hidden files by its root": "print(open(f'/proc/{pid}/root{secret}').read())",
    "read its memory": """
memory = ctypes.create_string_buffer(len(ground["secret"]))
local = struct.pack("=QQ", ctypes.addressof(memory), len(memory) - 1)
remote = struct.pack("=QQ", ground["address"], len(memory) - 1)
did(libc.process_vm_readv(pid, local, 1, remote, 1, 0))
print(memory.value.decode() + ground["secret"][-1])
""",
    "take over its files": """
taken = call(438, os.pidfd_open(pid), ground["fd"], 0)
print(os.pread(taken, 100, 0).decode())
""",
    "stop it for tracing": "did(libc.ptrace(0x4206, pid, None, None)); out()",
    "send it a signal": "os.kill(pid, signal.SIGUSR1)",
    "send it a signal by its descriptor": "signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGUSR1)",
    "have the kernel send it a signal": """
ours, theirs = os.pipe()
fcntl.fcntl(ours, fcntl.F_SETOWN, pid)
fcntl.fcntl(ours, 10, signal.SIGUSR1)
fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(theirs, b"x")
""",
    "change its limits": "resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))",
    "change its priority": "os.setpriority(os.PRIO_PROCESS, pid, 19)",
    "change on which processors it runs": "os.sched_setaffinity(pid, {0})",
    "change how it is scheduled": "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))",
    "change its priority for disks": "call(251 if os.uname().machine == 'x86_64' else 30, 1, pid, 3 << 13)",
    "enter its namespaces": "did(libc.setns(os.open(f'/proc/{pid}/ns/uts', os.O_RDONLY), 0)); out()",
    "read memory shared by name (/dev/shm)": "print(open(ground['shared']).read())",
    "read memory shared by number (System V)": "print(ctypes.string_at(libc.shmat(ground['segment'], None, 0o10000)))",
    "read messages of other programs (System V)": """
text = ctypes.create_string_buffer(108)
did(libc.msgrcv(ground["messages"], text, 100, 0, 0o4000))
print(text.raw)
""",
    "read keys that the kernel keeps": """
key = call(250 if os.uname().machine == "x86_64" else 219, 10, -3, at("user"), at(ground["key"]), 0)
text = ctypes.create_string_buffer(100)
call(250 if os.uname().machine == "x86_64" else 219, 11, key, text, 100)
print(text.value)
""",
    "write to a terminal of the user": "os.write(os.open(ground['terminal'], os.O_WRONLY | os.O_NOCTTY), b'x')",
    "rename the machine": "did(libc.sethostname(at(os.uname().nodename), len(os.uname().nodename))); out()",
}
WAYS: Final = {"files": FILES, "sockets and networks": SOCKETS, "processes and memory": PROCESSES}
ALL: Final = {name: code for group in WAYS.values() for name, code in group.items()}

VICTIM = """
import ctypes, os, signal, sys
signal.signal(signal.SIGUSR1, signal.SIG_DFL)
text = ctypes.create_string_buffer(sys.argv[1].encode())
file = os.open(sys.argv[2], os.O_RDONLY)
print(ctypes.addressof(text), file, flush=True)
signal.pause()
"""


class Ground:
    """What is outside of a sandbox, made anew for each way."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.home, self.shown, self.space = top / "home", top / "shown", top / "space"
        self._open = ExitStack()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def __enter__(self) -> "Ground":
        for folder in (self.home, self.shown, self.space):
            folder.mkdir(parents=True)
        for file in (self.home / "secret", self.shown / "file"):
            file.write_text(SECRET if file.name == "secret" else "shown", encoding="utf-8")
            with suppress(OSError):
                os.setxattr(file, "user.note", SECRET.encode())
        program = self.home / "program"
        program.write_text(f"#!/bin/sh\necho {SECRET}\n", encoding="utf-8")
        program.chmod(0o755)
        os.mkfifo(self.shown / "pipe")
        self._pipe = os.open(self.shown / "pipe", os.O_RDWR | os.O_NONBLOCK)
        self._open.callback(os.close, self._pipe)
        self.facts = {"secret": SECRET, "top": str(self.top), **self._listen(), **self._share(), **self._start_victim()}
        self.facts |= {"home": str(self.home), "shown": str(self.shown), "space": str(self.space)}
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listen(self) -> dict[str, Any]:
        abstract = f"pegboard-{os.getpid()}-{id(self)}"
        self._servers = [
            self._server(socket.AF_UNIX, socket.SOCK_STREAM, str(self.shown / "socket")),
            self._server(socket.AF_UNIX, socket.SOCK_STREAM, str(self.home / "socket")),
            self._server(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
            tcp := self._server(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        ]
        self._inboxes = [
            self._server(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.shown / "datagrams")),
            udp := self._server(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        ]
        return {"abstract": abstract, "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}

    def _server(self, family: int, kind: int, address: Any) -> socket.socket:
        server = self._open.enter_context(socket.socket(family, kind))
        folder = os.open(".", os.O_RDONLY)
        try:
            if isinstance(address, str) and not address.startswith("\0"):  # paths of sockets must be short
                os.chdir(Path(address).parent)
                address = Path(address).name
            server.bind(address)
        finally:
            os.fchdir(folder)
            os.close(folder)
        if kind == socket.SOCK_STREAM:
            server.listen()
        server.setblocking(False)
        return server

    def _share(self) -> dict[str, Any]:
        name = f"pegboard-{os.getpid()}-{id(self)}"
        shared = Path("/dev/shm", name)
        shared.write_text(SECRET, encoding="utf-8")
        self._open.callback(shared.unlink)
        self._libc.shmat.restype = ctypes.c_void_p
        segment = self._libc.shmget(0, 4096, 0o600)
        if segment >= 0:
            ctypes.memmove(self._libc.shmat(segment, None, 0), SECRET.encode(), len(SECRET))
            self._open.callback(self._libc.shmctl, segment, 0, None)
        messages = self._libc.msgget(0, 0o600)
        if messages >= 0:
            text = (1).to_bytes(8, sys.byteorder) + SECRET.encode()
            self._libc.msgsnd(messages, text, len(SECRET), 0)
            self._open.callback(self._libc.msgctl, messages, 0, None)
        add_key = 248 if os.uname().machine == "x86_64" else 217
        self._libc.syscall(add_key, b"user", name.encode(), SECRET.encode(), ctypes.c_size_t(len(SECRET)), -3)
        self._terminal, slave = os.openpty()
        os.set_blocking(self._terminal, False)
        for descriptor in (self._terminal, slave):
            self._open.callback(os.close, descriptor)
        shares = {"shared": str(shared), "segment": segment, "messages": messages, "key": name}
        return {**shares, "terminal": os.ttyname(slave)}

    def _start_victim(self) -> dict[str, Any]:
        command = [sys.executable, "-I", "-S", "-c", VICTIM, SECRET, str(self.home / "secret")]
        self._victim = subprocess.Popen(command, stdout=subprocess.PIPE, env={"TOLD": SECRET})
        self._open.callback(self._victim.wait)
        self._open.callback(self._victim.kill)
        assert self._victim.stdout is not None
        self._open.callback(self._victim.stdout.close)
        address, file = map(int, self._victim.stdout.readline().split())
        return {"pid": self._victim.pid, "address": address, "fd": file}

    def state(self) -> dict[str, object]:
        """Everything outside as it is now."""
        found: dict[str, object] = {}
        for path in sorted([self.home, self.shown, *self.home.rglob("*"), *self.shown.rglob("*")]):
            about = path.lstat()
            text = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_ctime_ns, text)
        for server in self._servers:
            with suppress(BlockingIOError):
                server.accept()[0].close()
                found[f"heard {server.getsockname()}"] = True
        for descriptor in (*(inbox.fileno() for inbox in self._inboxes), self._pipe, self._terminal):
            with suppress(BlockingIOError):
                found[f"heard {descriptor}"] = os.read(descriptor, 100)
        return found | self._state_of_victim()

    def _state_of_victim(self) -> dict[str, object]:
        pid = self._victim.pid
        with suppress(subprocess.TimeoutExpired):
            self._victim.wait(0 if self._victim.poll() is None else None)
        if self._victim.returncode is not None:
            return {"victim": "dead"}
        ioprio = self._libc.syscall(252 if os.uname().machine == "x86_64" else 31, 1, pid)
        return {
            "limits": resource.prlimit(pid, resource.RLIMIT_CORE),
            "priority": os.getpriority(os.PRIO_PROCESS, pid),
            "processors": os.sched_getaffinity(pid),
            "scheduled": os.sched_getscheduler(pid),
            "disks": ioprio,
        }


def tried(names: list[str], top: Path, sandbox: str, monkeypatch: pytest.MonkeyPatch, *, network: bool = False) -> bool:
    """Whether one of these ways leads out of this sandbox; each is tried by a process of its own, in one command."""
    with Ground(top) as ground:
        monkeypatch.setenv("HOME", str(ground.home))
        tools = ShellTools(
            ground.space,
            allow=[sys.executable],
            sandbox="none" if sandbox == "none" else "required",
            readable=[str(ground.shown)],
            network=network,
        )
        before = ground.state()
        (ground.space / "ways.json").write_text(json.dumps([ALL[name] for name in names]), encoding="utf-8")
        (ground.space / "try.py").write_text(f"{PRELUDE}{TRY}", encoding="utf-8")
        result = run(tools, f"'{sys.executable}' -S try.py '{json.dumps(ground.facts)}'", 60)
        assert result.data is not None, result.text
        assert "tried all" in result.data["stdout"], result.text
        return SECRET in result.data["stdout"] or ground.state() != before


TRY = """
for way in json.load(open(space + "/ways.json")):
    child = os.fork()
    if child == 0:
        try:
            exec(way)
        except BaseException as error:
            print(repr(error).replace(ground["secret"], ""))
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
print("tried all")
"""
