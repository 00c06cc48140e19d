"""Import every module of an installed package and every name of its face: run by `nox -s packs`, as a script.

Takes nothing but the standard library, so that it runs where only the package and its dependencies are installed.
"""

import importlib
import pkgutil
import sys


def import_all(package_name: str) -> int:
    """Import the package and all modules below it; return how many."""
    package = importlib.import_module(package_name)
    found = (module.name for module in pkgutil.walk_packages(package.__path__, f"{package_name}."))
    names = [name for name in found if not name.endswith("__main__")]
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            # What an extra brings is not there; the error names the extra.
            if f"[{name.rpartition('.')[2]}]" not in str(error):
                raise
    for name in getattr(package, "__all__", ()):
        getattr(package, name)
    return 1 + len(names)


if __name__ == "__main__":
    print(f"{sys.argv[1]}: {import_all(sys.argv[1])} modules import with the declared dependencies alone")
