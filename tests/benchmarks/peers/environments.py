"""Environments of the peers, one each, in a folder outside the repository; runs a peer's module inside its own.

`PEGBOARD_PEERS` names the folder. What a registry does not give is a reason that the table shows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.benchmarks.peers.harness import Answer, Row
from tests.workspace.project import ROOT

__all__ = ["PEERS", "Unavailable", "answers", "parsed"]

PEERS = (
    "agentscope",
    "fastmcp",
    "google-adk",
    "langchain-core",
    "llm",
    "openai-agents",
    "pydantic-ai-slim",
    "strands-agents",
)
# Without these the floors cannot be imported. Without their dependencies, so that no peer gets another version of its
# own than it would have alone.
FLOORS_NEED = ("attrs", "pluggy")
SILENT = {
    "AGENTSCOPE_DISABLE_TELEMETRY": "true",
    "ANONYMIZED_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
    "FASTMCP_CHECK_FOR_UPDATES": "off",
    "FASTMCP_LOG_LEVEL": "CRITICAL",
    "LANGCHAIN_TRACING_V2": "false",
    "LANGSMITH_TRACING": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""Switches tracing, telemetry and the search for updates off."""

KEPT = ("LANG", "PATH", "SYSTEMROOT")
MINUTES = 15


class Unavailable(Exception):
    """A peer cannot be installed or does not run; the message is the reason."""


def answers(names: Sequence[str], quick: bool) -> Iterator[Answer]:
    """Measure peers, all if none is named, after Pegboard through the same harness; what fails is an answer too."""
    for name in ("pegboard", *(names or PEERS)):
        try:
            yield _ours(quick) if name == "pegboard" else _answer(name, quick)
        except Unavailable as reason:
            yield Answer(name, "", {}, {}, 0.0, [], str(reason))


def parsed(text: str) -> Answer:
    """Read the answer from the last line of what a peer printed. Raises Unavailable."""
    try:
        data = json.loads(text.strip().splitlines()[-1])
        return Answer(**{**data, "rows": [Row(**row) for row in data["rows"]]})
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"its module printed no answer ({error})") from error


def _ours(quick: bool) -> Answer:
    return _run(sys.executable, "ours", quick, dict(os.environ))


def _answer(distribution: str, quick: bool) -> Answer:
    python = _installed(distribution)
    environment = {key: os.environ[key] for key in KEPT if key in os.environ} | SILENT
    return _run(python, distribution.replace("-", "_"), quick, environment)


def _run(python: str, module: str, quick: bool, environment: dict[str, str]) -> Answer:
    command = [python, "-m", f"tests.benchmarks.peers.{module}", *(["--quick"] if quick else [])]
    # A home that is empty and removed at the end: no settings of the user, and nothing of a peer left behind.
    with tempfile.TemporaryDirectory(prefix="pegboard-bench-") as home:
        sources = [str(ROOT), str(ROOT / "core" / "src"), *filter(None, [environment.get("PYTHONPATH")])]
        environment |= {"HOME": home, "PYTHONPATH": os.pathsep.join(sources), "TMPDIR": home}
        return parsed(_output(command, environment, home))


def _installed(distribution: str) -> str:
    """The interpreter of a peer's environment, with the current release if the registry can be reached."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = _folder() / "bench" / f"{distribution}-{version}"
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv = shutil.which("uv")
    if not python.exists():
        _output(
            [uv, "venv", "--python", sys.executable, str(place)] if uv else [sys.executable, "-m", "venv", str(place)]
        )
    install = [uv, "pip", "install", "--python", str(python)] if uv else [str(python), "-m", "pip", "install"]
    try:
        _output([*install, "--upgrade", distribution])
        _output([*install, "--no-deps", *FLOORS_NEED])
    except Unavailable:
        # Without a registry, what was installed before will do: the table names its version.
        if not all(_has(str(python), name) for name in (distribution, *FLOORS_NEED)):
            raise
    return str(python)


def _has(python: str, distribution: str) -> bool:
    try:
        _output([python, "-c", "import importlib.metadata as m, sys; m.version(sys.argv[1])", distribution])
    except Unavailable:
        return False
    return True


def _folder() -> Path:
    return Path(os.environ.get("PEGBOARD_PEERS") or Path(tempfile.gettempdir(), "pegboard-peers"))


def _output(command: list[str], environment: dict[str, str] | None = None, folder: str | None = None) -> str:
    """What a command prints. Raises Unavailable with the last line of its complaint."""
    try:
        run = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=MINUTES * 60, env=environment, cwd=folder
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        # The page has no business with the address of whichever registry is configured here.
        raise Unavailable(re.sub(r"\w+://\S+", "(address)", said[-1].strip() if said else str(error))) from error
    return run.stdout
