"""Whatever path a model sends, and even if directories are moved meanwhile: nothing outside the root is opened."""

import copy
import errno
import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard_files._directory import opening as _opening
from pegboard_files._directory.opening import Opener, open_beneath, open_by_walking
from pegboard_files._directory.root import Root
from tests.support.thinning import first, one_in
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the pack needs a POSIX system")

SECRET = "never to be read"
ENGINES = [open_by_walking, *([open_beneath] if sys.platform == "linux" else [])]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root full of traps, beside a secret."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text(SECRET)
    root = tmp_path / "root"
    (root / "docs" / "deep").mkdir(parents=True)
    (root / "docs" / "a.txt").write_text("inside")
    (root / "docs" / "deep" / "b.txt").write_text("deep inside")
    links = {
        "to_file": "docs/a.txt",
        "to_dir": "docs/deep",
        "docs/up": "../docs/a.txt",
        "chain": "to_link",
        "to_link": "to_file",
        "out_dir": "../outside",
        "out_file": "../outside/secret",
        "docs/far": "../../outside/secret",
        "absolute": str(outside / "secret"),
        "absolute_inside": str(root / "docs" / "a.txt"),
        "to_root": "/",
        "loop": "loop",
        "ping": "pong",
        "pong": "ping",
        "nowhere": "missing",
        "proc": "/proc/self/root",
        "self": ".",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)  # the name of a socket may have only about 100 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    return root


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.__name__)
def engine(request: pytest.FixtureRequest) -> Opener:
    opener: Opener = request.param
    return opener


@pytest.fixture
def root(tree: Path, engine: Opener) -> Root:
    return Root(str(tree), opener=engine)


def read(root: Root, path: str) -> str:
    with root.file(path) as file:
        return os.read(file.descriptor, 100).decode()


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(OSError, match=r"^\[Errno") as caught:
        action()
    return errno.errorcode[caught.value.errno or 0]


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("docs/a.txt", "inside"),
        ("./docs//a.txt", "inside"),
        ("docs/../docs/a.txt", "inside"),
        ("docs/deep/../a.txt", "inside"),
        ("to_file", "inside"),
        ("chain", "inside"),
        ("docs/up", "inside"),
        ("to_dir/b.txt", "deep inside"),
        ("to_dir/../a.txt", "inside"),  # behind a link, `..` is the directory that it led to
        ("self/self/docs/a.txt", "inside"),
    ],
)
def test_inside_is_opened(root: Root, path: str, content: str) -> None:
    assert read(root, path) == content


ATTACKS = [
    ("../outside/secret", "EXDEV"),
    ("..", "EXDEV"),
    ("docs/../../outside/secret", "EXDEV"),
    ("docs/deep/../../../outside/secret", "EXDEV"),
    ("to_dir/../../../outside/secret", "EXDEV"),
    ("/etc/passwd", "EXDEV"),
    ("//etc/passwd", "EXDEV"),
    ("/", "EXDEV"),
    ("out_file", "EXDEV"),
    ("out_dir/secret", "EXDEV"),
    ("docs/far", "EXDEV"),
    ("absolute", "EXDEV"),
    ("absolute_inside", "EXDEV"),
    ("to_root/etc/passwd", "EXDEV"),
    ("proc/etc/passwd", "EXDEV"),
    ("loop", "ELOOP"),
    ("ping", "ELOOP"),
    ("loop/x", "ELOOP"),
    ("nowhere", "ENOENT"),
    ("missing", "ENOENT"),
    ("missing/../docs/a.txt", "ENOENT"),
    ("~/x", "ENOENT"),
    ("..\\outside\\secret", "ENOENT"),
    ("%2e%2e/outside/secret", "ENOENT"),
    ("docs/a.txt/", "ENOTDIR"),
    ("docs/a.txt/.", "ENOTDIR"),
    ("docs/a.txt/../a.txt", "ENOTDIR"),
    ("docs", "EISDIR"),
    (".", "EISDIR"),
    ("socket", "ENXIO"),
    ("", "EINVAL"),
    ("docs/a.txt\0", "EINVAL"),
    ("docs/a.txt\0/../../outside/secret", "EINVAL"),
    ("\ud800", "EILSEQ"),
    ("x" * 256, "ENAMETOOLONG"),
    ("docs/../" * 600 + "docs/a.txt", "ENAMETOOLONG"),
    ("./" * 300 + "docs/a.txt", "ENAMETOOLONG"),
]


@pytest.mark.parametrize(("path", "reason"), one_in(2, ATTACKS), ids=[ascii(path)[1:40] for path, _ in ATTACKS])
def test_attack_is_refused(root: Root, path: str, reason: str) -> None:
    assert refused(lambda: read(root, path)) == reason


def test_directory_is_opened(root: Root) -> None:
    with root.folder("to_dir/..") as folder:
        assert folder.path == "docs"
        assert sorted(entry.name for entry in folder.entries()) == ["a.txt", "deep", "far", "up"]


@pytest.mark.parametrize("path", ["docs/a.txt", "fifo", "loop", "out_dir", "..", "nowhere", "missing/x", "proc"])
def test_only_directories_inside_open_as_directories(root: Root, path: str) -> None:
    assert refused(lambda: root.folder(path).__enter__()) in {"EXDEV", "ELOOP", "ENOENT", "ENOTDIR"}


def test_absolute_path_inside_is_taken_as_relative(root: Root, tree: Path) -> None:
    assert read(root, f"{tree}/docs/a.txt") == "inside"
    assert root.relative(str(tree)) == root.relative(f"{tree}/") == "."
    assert refused(lambda: read(root, f"{tree}/../outside/secret")) == "EXDEV"
    assert refused(lambda: read(root, f"{tree}x/docs/a.txt")) == "EXDEV"


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="there is no /dev")
def test_devices_are_refused(engine: Opener) -> None:
    assert refused(lambda: read(Root("/dev", opener=engine), "null")) == "ENXIO"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="there is no /proc")
def test_magic_links_are_refused(engine: Opener, tree: Path) -> None:
    with (tree.parent / "outside" / "secret").open() as secret:
        reason = refused(lambda: read(Root("/proc/self", opener=engine), f"fd/{secret.fileno()}"))
    assert reason in {"EXDEV", "ELOOP"}


def test_fifo_is_refused_without_waiting_for_a_writer(root: Root) -> None:
    reasons: list[str] = []
    reader = threading.Thread(target=lambda: reasons.append(outcome(root, "fifo")), daemon=True)
    reader.start()
    reader.join(PATIENCE)
    assert reasons == ["ENXIO"]


def test_forty_links_are_followed_and_no_more(root: Root, tree: Path) -> None:
    (tree / "link0").symlink_to("docs/a.txt")
    for number in range(1, 41):
        (tree / f"link{number}").symlink_to(f"link{number - 1}")
    assert read(root, "link39") == "inside"
    assert refused(lambda: read(root, "link40")) == "ELOOP"


def test_walk_is_bounded(tree: Path) -> None:
    """It holds a descriptor for each level, and links can make a short path deep."""
    deep = Path("d/" * 200)
    (tree / deep).mkdir(parents=True)
    (tree / "long").symlink_to(deep)
    (tree / deep / "long").symlink_to(deep)
    (tree / deep / deep).mkdir(parents=True)
    root = Root(str(tree), opener=open_by_walking)
    before = open_descriptors()
    with root.folder("long"):
        assert open_descriptors() == before + 1
    assert refused(lambda: root.folder("long/long/.").__enter__()) == "ENAMETOOLONG"
    assert open_descriptors() == before


def open_descriptors() -> int:
    with os.scandir("/dev/fd") as entries:
        return sum(1 for _ in entries)


def test_nothing_stays_open(root: Root, tree: Path) -> None:
    before = open_descriptors()
    for path in ["docs/a.txt", "to_dir/b.txt", *(path for path, _ in ATTACKS)]:
        try:
            read(root, path)
        except OSError:
            continue
    assert open_descriptors() == before
    other = Root(str(tree))
    assert open_descriptors() == before + 1
    del other
    assert open_descriptors() == before


def test_root_survives_the_renaming_of_its_path(root: Root, tree: Path) -> None:
    tree.rename(tree.parent / "elsewhere")
    tree.symlink_to(tree.parent / "outside")
    assert read(root, "docs/a.txt") == "inside"
    assert refused(lambda: read(root, "secret")) == "ENOENT"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda root: pickle.loads(pickle.dumps(root))])
def test_copies_open_the_directory_anew(root: Root, copied: Callable[[Root], Root]) -> None:
    other = copied(root)
    del root
    assert read(other, "docs/a.txt") == "inside"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda root: pickle.loads(pickle.dumps(root))])
def test_copies_open_no_other_directory(root: Root, tree: Path, copied: Callable[[Root], Root]) -> None:
    tree.rename(tree.parent / "elsewhere")
    tree.symlink_to(tree.parent / "outside")
    assert refused(lambda: copied(root)) == "ESTALE"


def test_root_must_be_a_directory(tree: Path) -> None:
    assert refused(lambda: Root(str(tree / "missing"))) == "ENOENT"
    assert refused(lambda: Root(str(tree / "docs" / "a.txt"))) == "ENOTDIR"


class TestFallback:
    """Where the kernel does not or must not know `openat2`, the walk takes over, with the same answers."""

    @pytest.fixture
    def calls(self, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[str]:
        calls: list[str] = []

        def failing(root: int, path: str, flags: int) -> int:
            calls.append(path)
            return -int(request.param)

        monkeypatch.setattr(_opening, "_openat2", lambda: failing)
        return calls

    @pytest.mark.parametrize(
        ("calls", "expected"),
        [(errno.ENOSYS, 1), (errno.EPERM, 1), (errno.EAGAIN, _opening._ATTEMPTS), (errno.EINTR, _opening._ATTEMPTS)],
        indirect=["calls"],
    )
    def test_takes_over(self, tree: Path, calls: list[str], expected: int) -> None:
        root = Root(str(tree), opener=open_beneath)
        assert read(root, "docs/a.txt") == "inside"
        assert calls == ["docs/a.txt"] * expected
        assert refused(lambda: read(root, "docs/far")) == "EXDEV"

    @pytest.mark.parametrize("calls", [errno.EACCES], indirect=True)
    def test_other_errors_are_answers(self, tree: Path, calls: list[str]) -> None:
        assert refused(lambda: read(Root(str(tree), opener=open_beneath), "docs/a.txt")) == "EACCES"

    def test_works_without_ctypes(self, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "ctypes", None)
        _opening._openat2.cache_clear()
        try:
            assert read(Root(str(tree), opener=open_beneath), "docs/a.txt") == "inside"
        finally:
            _opening._openat2.cache_clear()


COMPONENTS = st.sampled_from(
    [
        "..",
        ".",
        "",
        "docs",
        "deep",
        "a.txt",
        "b.txt",
        "to_file",
        "to_dir",
        "up",
        "out_dir",
        "far",
        "self",
        "loop",
        "chain",
    ]
)


@pytest.mark.skipif(len(ENGINES) < 2, reason="there is one engine")
def test_engines_agree(tree: Path) -> None:
    roots = [Root(str(tree), opener=opener) for opener in ENGINES]

    @given(st.lists(COMPONENTS, min_size=1, max_size=6).map("/".join))
    def agree(path: str) -> None:
        outcomes = {outcome(root, path) for root in roots}
        assert len(outcomes) == 1
        assert SECRET not in outcomes

    agree()


def outcome(root: Root, path: str) -> str:
    try:
        return read(root, path)
    except OSError as error:
        return errno.errorcode[error.errno or 0]


@pytest.mark.parametrize("swapped", first(1, ["docs", "docs/a.txt"]))
def test_swapping_with_a_link_wins_nothing(root: Root, tree: Path, swapped: str) -> None:
    """A process puts a link in the place of a directory or file, and removes it, again and again."""
    (tree.parent / "outside" / "a.txt").write_text(SECRET)
    target = tree.parent / "outside" / ("secret" if swapped.endswith("txt") else "")
    place, aside, link = tree / swapped, tree / "aside", tree / "link"
    done = threading.Event()

    def swap() -> None:
        link.symlink_to(target)
        while not done.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)

    swapper = threading.Thread(target=swap)
    swapper.start()
    outcomes = set()
    start = time.monotonic()
    # For a while, and until both have had their turns.
    while time.monotonic() - start < 0.4 or ("inside" not in outcomes and time.monotonic() - start < PATIENCE):
        outcomes.add(outcome(root, "docs/a.txt"))
    done.set()
    swapper.join()
    assert "inside" in outcomes
    assert outcomes <= {"inside", "ENOENT", "EXDEV", "ELOOP", "ENOTDIR"}
