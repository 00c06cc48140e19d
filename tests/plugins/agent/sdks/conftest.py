"""Without the SDKs there is nothing to ask."""

from tests.plugins.dialects.sdks.conftest import pytest_ignore_collect

__all__ = ["pytest_ignore_collect"]
