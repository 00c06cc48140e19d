"""What a pack's tests need.

Distributions that are installed without an installer, isolated toolkits, a scripted model, alone and behind a server,
and one check of everything that a pack should be. `pegboard_testing.fixtures` makes pytest fixtures of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pegboard_testing._backend_checks import assert_backend_conforms, backend_conformance
    from pegboard_testing._conformance import assert_conforms, conformance
    from pegboard_testing._distributions import fake_distribution
    from pegboard_testing._findings import Finding
    from pegboard_testing._scripted import ScriptedModel, Turn
    from pegboard_testing._scripted_server import Broken, Failing, Raw, ScriptedServer
    from pegboard_testing._store_checks import assert_store_conforms, store_conformance
    from pegboard_testing._toolkits import isolated_toolkit
    from pegboard_testing._type_checks import check_types

__all__ = [
    "Broken",
    "Failing",
    "Finding",
    "Raw",
    "ScriptedModel",
    "ScriptedServer",
    "Turn",
    "assert_backend_conforms",
    "assert_conforms",
    "assert_store_conforms",
    "backend_conformance",
    "check_types",
    "conformance",
    "fake_distribution",
    "isolated_toolkit",
    "store_conformance",
]

# Loaded on first use: pytest imports this package in every project of an environment, for its fixtures.
_HOMES = {
    "Broken": "_scripted_server",
    "Failing": "_scripted_server",
    "Finding": "_findings",
    "Raw": "_scripted_server",
    "ScriptedModel": "_scripted",
    "ScriptedServer": "_scripted_server",
    "Turn": "_scripted",
    "assert_backend_conforms": "_backend_checks",
    "assert_conforms": "_conformance",
    "assert_store_conforms": "_store_checks",
    "backend_conformance": "_backend_checks",
    "check_types": "_type_checks",
    "conformance": "_conformance",
    "fake_distribution": "_distributions",
    "isolated_toolkit": "_toolkits",
    "store_conformance": "_store_checks",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pegboard_testing' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"pegboard_testing.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
