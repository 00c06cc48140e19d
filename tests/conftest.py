"""Settings of the whole suite."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes says more about a shared machine than about the code.
settings.register_profile("pegboard", settings(), deadline=None)
settings.load_profile("pegboard")


@pytest.fixture(scope="session", autouse=True)
def _interpreters_compile_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Installers compile what they install; without this each interpreter that a test starts compiles the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("bytecode")))
        yield
