"""Settings of the whole suite."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from pegboard._execution.bound import BoundTool
from tests.support.browser import browser

__all__ = ["browser"]  # one for all: a process drives one at a time

# How long an example takes says more about a shared machine than about the code. Some examples find what a change
# breaks as a rule; `nox -s slow` runs the same tests with as many as hypothesis recommends.
settings.register_profile("pegboard", settings(), deadline=None, max_examples=10)
settings.register_profile("thorough", settings(), deadline=None)
settings.load_profile("pegboard")

# What a shell starts in the background ignores Ctrl-C, and so would everything that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Import a share of all tests first: so each of several processes rewrites their asserts for the others too."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    folder = Path(__file__).parent
    share = slice(int(worker["workerid"].removeprefix("gw")), None, worker["workercount"])
    for path in sorted(folder.rglob("test_*.py"))[share]:
        with suppress(Exception, pytest.skip.Exception):  # Told when it is collected.
            import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts))


# The test line runs so many cases of each test, CI's other sessions all of them.
MOST_CASES = 4


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark all but some cases of a test as `further`, where all tests are run: by chance, the same ones every time."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.nodeid.endswith("]") and item.get_closest_marker("slow") is None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, found in cases.items():
        chosen = set(Random(name).sample(range(len(found)), min(MOST_CASES, len(found))))
        for item in (item for at, item in enumerate(found) if at not in chosen):
            item.add_marker("further")


def pytest_collection_finish() -> None:
    """Spare the collector of garbage the thousands of tests that stay to the end: it would walk over them each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _interpreters_compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Installers compile what they install; without this each interpreter that a test starts compiles the checkout."""
    if sys.pycache_prefix is not None and not sys.dont_write_bytecode:
        yield  # Said for all of them, by the noxfile.
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        place = tmp_path_factory.getbasetemp()
        # Beside those of the other processes where there are some, so that they compile once together.
        shared = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
        patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        yield


@pytest.fixture(scope="module", params=["fast", pytest.param("stages", marks=pytest.mark.slow)])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module's tests twice: as calls run, and with all that run through their stages, which must do the same."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "stages":
            choose = BoundTool._choose_beginning

            def through_stages(bound: BoundTool, kind: str) -> None:
                choose(bound, kind)
                bound.begins = bound.begins_on_loop = bound.in_thread = False

            patch.setattr(BoundTool, "_choose_beginning", through_stages)
        yield request.param
