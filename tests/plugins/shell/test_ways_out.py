"""What each sandbox contains: the page in the docs is what trying says."""

import re
from pathlib import Path

import pytest

from tests.plugins.shell.helpers import use_sandbox
from tests.plugins.shell.ways_out import ALL, KINDS, WAYS, tried

PAGE = Path(__file__).parents[3] / "docs" / "packs" / "shell-sandbox.md"
OPEN = {
    "bubblewrap": {"write into a named pipe of another program", "lock a read-only file"},
    "landlock": {"learn the size of a hidden file", "lock a read-only file"},
}
"""The ways that are known to lead out, and that the docs tell of."""


def written() -> dict[str, list[str]]:
    """For each way, whether it leads out of each kind: the table has the ways that do, the lists all others."""
    text = PAGE.read_text(encoding="utf-8")
    found = {}
    for line in text.splitlines():
        if line.startswith("| ") and line.endswith(("| out |", "| held |")):
            way, *results = (cell.strip() for cell in line.strip("|").split("|"))
            found[way] = [*results, "out"]
    for paragraph in re.findall(r"^\*\*[^*]*:\*\* (.*?)\.\n\n", text, re.MULTILINE | re.DOTALL):
        for way in " ".join(paragraph.split()).split("; "):
            assert way not in found
            found[way] = ["held", "held", "out"]
    return found


@pytest.mark.parametrize("sandbox", OPEN)
def test_no_other_way_leads_out(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All at once; the slow test tries each alone, and shows that it would be seen."""
    use_sandbox(sandbox, monkeypatch)
    assert not tried([name for name in ALL if name not in OPEN[sandbox]], tmp_path / "top", sandbox, monkeypatch)


@pytest.mark.parametrize("sandbox", OPEN)
def test_network_opens_no_unix_socket(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(sandbox, monkeypatch)
    names = [name for name in WAYS["sockets and networks"] if "UNIX" in name or "pair" in name or "VSOCK" in name]
    assert len(names) == 6
    assert not tried(names, tmp_path / "top", sandbox, monkeypatch, network=True)


@pytest.mark.parametrize("sandbox", OPEN)
def test_network_opens_the_network(sandbox: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_sandbox(sandbox, monkeypatch)
    for name in ("TCP", "UDP"):
        assert tried([name], tmp_path / name, sandbox, monkeypatch, network=True)


def test_docs_tell_of_every_way() -> None:
    told = written()
    assert sorted(told) == sorted(ALL)
    for index, kind in enumerate(KINDS):
        assert {way for way, results in told.items() if results[index] == "out"} == OPEN.get(kind, set(ALL))


@pytest.mark.slow
def test_table_in_the_docs_is_what_trying_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, list[str]] = {}
    for name in ALL:
        for kind in KINDS:
            use_sandbox(kind, monkeypatch)
            leads_out = tried([name], tmp_path / f"{len(found)}-{kind}", kind, monkeypatch)
            found.setdefault(name, []).append("out" if leads_out else "held")
    # What leads out of no sandbox at all cannot be tried on this kernel, or as this user.
    possible = {name: results for name, results in found.items() if results[-1] == "out"}
    assert possible == {name: results for name, results in written().items() if name in possible}
    assert len(possible) >= 40
