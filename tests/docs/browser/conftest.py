"""The documentation, built and served to a headless browser."""

import functools
import importlib.util
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.workspace.project import ROOT


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base's
        """Log nothing."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site from a copy of the pages; give its address on this machine."""
    if importlib.util.find_spec("zensical") is None:
        pytest.skip("zensical builds the pages (nox -s inspector)")
    folder = tmp_path_factory.mktemp("site")
    for name in ("core", "plugins", "tests"):  # what the pages of the reference are made from
        (folder / name).symlink_to(ROOT / name)
    docs = shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(".*", "__pycache__"))
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--config-file", str(docs / "mkdocs.yml")]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    handler = functools.partial(Quiet, directory=str(Path(docs, ".site")))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()
