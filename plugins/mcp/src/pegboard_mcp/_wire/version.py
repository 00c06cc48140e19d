"""The version that this pack introduces itself with."""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["VERSION"]


def _installed() -> str:
    try:
        return version("pegboard-mcp")
    except PackageNotFoundError:
        return "0"


VERSION = _installed()
