"""Settings of the whole suite."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says more about a shared machine than about the code.
settings.register_profile("pegboard", settings(), deadline=None)
settings.load_profile("pegboard")

# What a shell starts in the background ignores Ctrl-C, and so would everything that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _interpreters_compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Installers compile what they install; without this each interpreter that a test starts compiles the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        place = tmp_path_factory.getbasetemp()
        # Beside those of the other processes where there are some, so that they compile once together.
        shared = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
        patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        yield


@pytest.fixture(scope="module", params=["fast", "steps"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a module's tests twice: as calls run, and with all that runs through the steps, which must do the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pegboard._execution.bound_tool.FAST", request.param == "fast")
        yield request.param
