"""What holds for every pack whose types are those of a library: that the library is loaded late, or is not there."""

from tests.support.interpreters import printed

__all__ = ["assert_absence_is_named", "assert_loaded_late"]

LATE = """
import sys
from pegboard import Toolkit

def plain(x: int) -> int:
    return x

toolkit = Toolkit(plugins=["{library}"])
toolkit.register(plain)
assert toolkit.call_sync("plain", {{"x": 1}}).data == 1
assert "pegboard_{library}" in sys.modules
print("{library}" in sys.modules)
"""

ABSENT = """
import sys
sys.modules["{library}"] = None  # as if it were not installed
from pegboard import Toolkit

class Unrelated:
    {marker} = None

def use(it: Unrelated) -> None: ...

try:
    Toolkit(plugins=["{library}"]).register(use)
except Exception as error:
    print(type(error).__name__, error)
"""


def assert_loaded_late(library: str) -> None:
    """The pack of this name does not load its library before one of its types is met."""
    assert printed(LATE.format(library=library)) == "False"


def assert_absence_is_named(library: str, marker: str) -> None:
    """A class that only the library makes, by a name of it, is refused with what to install."""
    said = printed(ABSENT.format(library=library, marker=marker))
    assert said.startswith("RegistrationError")
    assert "'it'" in said
    assert f"pip install --upgrade {library}" in said
