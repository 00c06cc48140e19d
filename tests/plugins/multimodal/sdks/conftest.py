"""Without the SDKs there is nothing to ask."""

import importlib.util

MISSING = [name for name in ("openai", "dashscope") if importlib.util.find_spec(name) is None]


def pytest_ignore_collect() -> bool | None:
    """Leave these tests out where an SDK is missing: their modules import it."""
    return True if MISSING else None
