"""What a pack's tests need.

Installed distributions without an installer, toolkits of their own, a model that makes written calls, and one check
for everything that a pack should be.
"""

from pegboard.testing._conformance import assert_conforms, conformance
from pegboard.testing._distributions import fake_distribution
from pegboard.testing._findings import Finding
from pegboard.testing._scripted import ScriptedModel, Turn
from pegboard.testing._toolkits import isolated_toolkit

__all__ = [
    "Finding",
    "ScriptedModel",
    "Turn",
    "assert_conforms",
    "conformance",
    "fake_distribution",
    "isolated_toolkit",
]
