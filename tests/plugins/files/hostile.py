"""A directory full of traps beside secrets, and the paths that a hostile model would send."""

import os
import socket
import stat
from pathlib import Path

SECRET = "never to be read"
KEPT = "never to be changed"
INSIDE = "harmless text"

LINKS = {
    "to_file": "docs/a.txt",
    "to_dir": "docs/deep",
    "docs/up": "../docs/a.txt",
    "chain": "to_link",
    "to_link": "to_file",
    "self": ".",
    "self_slash": "./",
    "docs/round": "../docs/../docs/deep",
    "out_dir": "../outside",
    "out_file": "../outside/secret",
    "out_new": "../outside/new",
    "docs/far": "../../outside/secret",
    "docs/far_dir": "../../outside",
    "docs/deep/farther": "../../../outside/secret",
    "through": "docs/far_dir/secret",
    "parent": "..",
    "grandparent": "../..",
    "round_out": "docs/../../outside/secret",
    "via_self": "self/../../outside/secret",
    "absolute": "{outside}/secret",
    "absolute_dir": "{outside}",
    "absolute_new": "{outside}/new",
    "absolute_inside": "{root}/docs/a.txt",
    "to_root": "/",
    "to_etc": "/etc",
    "to_passwd": "/etc/passwd",
    "loop": "loop",
    "ping": "pong",
    "pong": "ping",
    "deep_loop": "docs/deep/back",
    "docs/deep/back": "../../deep_loop",
    "nowhere": "missing",
    "nowhere_out": "../outside/missing/new",
    "proc": "/proc/self/root",
    "proc_cwd": "/proc/self/cwd",
    "proc_fd": "/proc/self/fd",
    "dev_null": "/dev/null",
    "dev_zero": "/dev/zero",
    "to_fifo": "fifo",
    "to_env": ".env",
    "to_git": ".git",
    "docs/to_config": "../.git/config",
    "long_target": "x/" * 1000,
    "dots": "../" * 40 + "etc/passwd",
}


def build(parent: Path) -> Path:
    """Build `root` and `outside` beneath `parent`, and return the root."""
    outside, root = parent / "outside", parent / "root"
    (outside / "sub").mkdir(parents=True)
    (outside / "secret").write_text(SECRET)
    (outside / "sub" / "secret").write_text(SECRET)
    (outside / "a.txt").write_text(SECRET)
    (parent / "root2").mkdir()  # its path begins with that of the root
    (parent / "root2" / "secret").write_text(SECRET)
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.txt").write_text(INSIDE)
    (root / "docs" / "deep" / "b.txt").write_text(INSIDE)
    (root / ".git").mkdir()
    for denied in (".git/config", ".env", ".env.local", "docs/.ENV", "server.pem", "id_rsa", "pegboard.toml"):
        (root / denied).write_text(SECRET)
    for name, target in LINKS.items():
        (root / name).symlink_to(target.format(outside=outside, root=root))
    os.mkfifo(root / "fifo")
    os.mkfifo(root / "docs" / "fifo")
    before = Path.cwd()
    os.chdir(root)  # the name of a socket may have only about 100 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(before)
    return root


def protected(parent: Path) -> dict[str, str]:
    """What no tool may change: all that is outside, denied files, and whatever is neither file nor directory."""
    found: dict[str, str] = {}
    for folder, folders, files in os.walk(parent):
        for name in [*folders, *files]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            relative = path.relative_to(parent)
            if stat.S_ISLNK(mode):
                found[str(relative)] = f"link to {path.readlink()}"
            elif not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                found[str(relative)] = f"special {stat.S_IFMT(mode)}"
            elif relative.parts[0] != "root" or (stat.S_ISREG(mode) and SECRET in path.read_text(errors="replace")):
                found[str(relative)] = path.read_text() if stat.S_ISREG(mode) else "directory"
    return found


def attacks(parent: Path) -> dict[str, list[str]]:
    """The paths of the table beneath `parent`."""

    def filled(path: str) -> str:
        for name, beneath in (("<root>", "/root"), ("<outside>", "/outside"), ("<parent>", "")):
            path = path.replace(name, f"{parent}{beneath}")
        return path

    return {kind: [filled(path) for path in paths] for kind, paths in TABLE.items()}


# Paths by what must become of viewing them; "inside" ones are harmless and must work.
TABLE = {
    "inside": [
        "docs/a.txt",
        "./docs//a.txt",
        "docs/../docs/a.txt",
        "docs/deep/../a.txt",
        "docs/./././a.txt",
        "to_file",
        "chain",
        "docs/up",
        "to_dir/b.txt",
        "self/self/docs/a.txt",
        "self_slash/docs/a.txt",
        "docs/round/b.txt",
        "<root>/docs/a.txt",
        "<root>//docs/a.txt",
        "<root>/./docs/a.txt",
    ],
    "OutsideError": [
        "../outside/secret",
        "..//outside/secret",
        "./../outside/secret",
        "docs/../../outside/secret",
        "docs/deep/../../../outside/secret",
        "docs/../docs/../../outside/secret",
        "to_dir/../../../outside/secret",
        "self/../../outside/secret",
        "self/self/self/../../outside/secret",
        "../root/docs/a.txt",
        "../root2/secret",
        "../" * 30 + "etc/passwd",
        "docs/" + "../" * 20 + "etc/passwd",
        "..",
        "../",
        "../..",
        "docs/../..",
        "/",
        "//",
        "///etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "/./etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/fd/0",
        "/proc/self/cwd",
        "/dev/null",
        "/dev/zero",
        "/dev/stdin",
        "/dev/tty",
        "/dev/fd/0",
        "<outside>/secret",
        "/<outside>/secret",
        "<parent>/root2/secret",
        "<parent>/root2",
        "<root>/../outside/secret",
        "<root>/docs/../../outside/secret",
        "<root>/..",
        "<parent>",
        "out_dir/secret",
        "out_dir/sub/secret",
        "out_dir/../outside/secret",
        "out_dir/missing",
        "out_file",
        "out_new",
        "docs/far",
        "docs/far_dir/secret",
        "docs/far_dir/sub/../secret",
        "docs/deep/farther",
        "through",
        "parent/outside/secret",
        "parent/root/docs/a.txt",
        "grandparent",
        "round_out",
        "via_self",
        "absolute",
        "absolute_dir/secret",
        "absolute_new",
        "absolute_inside",
        "/" * 5_000,
        "to_root/etc/passwd",
        "to_root<outside>/secret",
        "to_etc/passwd",
        "to_passwd",
        "nowhere_out",
        "proc/etc/passwd",
        "proc_cwd/outside/secret",
        "proc_fd/0",
        "dev_null",
        "dev_zero",
        "dots",
        "docs/../out_file",
        "self/out_file",
        "self/self/out_dir/secret",
        "to_dir/../far",
        "to_dir/farther",
    ],
    "MissingError": [
        "missing",
        "missing/x",
        "missing/../docs/a.txt",
        "missing/../../outside/secret",
        "nowhere",
        "~",
        "~/x",
        "~root/.profile",
        "$HOME/.profile",
        "${HOME}/.profile",
        "`id`",
        "$(id)",
        "a;b",
        "%2e%2e/outside/secret",
        "%2e%2e%2foutside%2fsecret",
        "..%2foutside%2fsecret",
        "..%c0%afoutside",
        "..%252foutside",
        ".../outside/secret",
        "....//outside/secret",
        ".. /outside/secret",
        " ../outside/secret",
        "docs/a.txt ",
        " docs/a.txt",
        "docs/a.txt.",
        "DOCS/A.TXT",
        "docs/a.txt/",
        "docs/a.txt/.",
        "docs/a.txt/x",
        "docs/a.txt/../a.txt",
        "docs/a.txt/../../../outside/secret",
        "fifo/x",
        "socket/../docs/a.txt",
        "-rf",
        "--help",
        "*",
        "docs/*",
        "docs/[a].txt",
        "{docs,outside}/a.txt",
        "\uff0e\uff0e/outside/secret",
        "..\uff0foutside\uff0fsecret",
        "..\u2215outside\u2215secret",
        "..\u2044outside",
        "\u2025/outside/secret",
        "docs\u200b/a.txt",
        "docs/\u202etxt.a",
        "do\u0301cs/a.txt",
        "\u0064\u006f\u0063\u0073\u0335/a.txt",
        "\ufeffdocs/a.txt",
        "docs/a.txt\u00a0",
        "..\u0000".replace("\0", "\u2400") + "/outside",
        "\udcff\udcfe/x",
        "..\udcc0\udcaf/secret",
        "file:docs",
        "long_target",
    ],
    "Windows": [
        "..\\outside\\secret",
        "..\\..\\..\\windows\\win.ini",
        "docs\\..\\..\\outside\\secret",
        "C:\\windows\\win.ini",
        "C:/windows/win.ini",
        "C:secret",
        "c:",
        "\\\\server\\share\\secret",
        "\\\\?\\C:\\secret",
        "\\\\.\\PhysicalDrive0",
        "\\??\\C:\\secret",
        "docs/a.txt::$DATA",
        "docs/a.txt:stream",
        ".git::$INDEX_ALLOCATION/config",
        "CON",
        "con.txt",
        "NUL",
        "nul.txt",
        "AUX",
        "COM1",
        "com1.log",
        "COM\u00b9",
        "LPT1",
        "CONIN$",
        "PRN .txt",
        "GIT~1/config",
        "ENV~1",
        "file:///etc/passwd",
        "http://127.0.0.1/",
    ],
    "UnsuitableError": [
        "",
        ".",
        "./",
        "docs",
        "docs/",
        "docs/.",
        "docs/..",
        "to_dir",
        "to_dir/",
        "self",
        "<root>",
        "<root>/",
        "fifo",
        "to_fifo",
        "docs/fifo",
        "self/fifo",
        "socket",
        "loop",
        "loop/x",
        "ping",
        "pong/../docs/a.txt",
        "deep_loop",
        "docs/deep/back",
        "docs/a.txt\0",
        "docs/a.txt\0/../../outside/secret",
        "\0",
        "../outside/secret\0.txt",
        "\ud800",
        "docs/\udfff",
        "x" * 256,
        "x" * 5_000,
        "docs/" + "y" * 300,
        "/".join("z" * 200 for _ in range(30)),
        "docs/../" * 600 + "docs/a.txt",
        "./" * 300 + "docs/a.txt",
        "d/" * 100 + "file",
        "d/" * 5_000 + "file",
        "self/" * 70 + "docs/a.txt",
        "\u4e2d" * 100,
    ],
    "DeniedError": [
        ".env",
        ".ENV",
        "./.env",
        "docs/../.env",
        ".env.local",
        ".env/x",
        "docs/.ENV",
        "docs/.env",
        ".\uff45nv",
        ".e\u200bnv",
        ".git/config",
        ".GIT/config",
        ".git",
        ".git/hooks/post-commit",
        "docs/.git/config",
        "to_env",
        "to_git/config",
        "docs/to_config",
        "self/.env",
        "self/self/.git/config",
        "server.pem",
        "new.key",
        "id_rsa",
        "id_ed25519",
        "sub/.ssh/authorized_keys",
        "pegboard.toml",
        "Pegboard.TOML",
        "pegboard.lock",
        "<root>/.env",
        ".pegboard-tmp-0",
    ],
}
