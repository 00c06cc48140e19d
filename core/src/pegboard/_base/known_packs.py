"""The packs that the core knows by name: what to install for what somebody asks for.

No other module of the core names a pack, and no message names one that is not in here: advice to install a guessed name
would be an invitation to register it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pegboard._base.names import normalise


class KnownPack(NamedTuple):
    """A pack of this project: the `name` of its entry point, and what it `gives` beside tools, in the hooks' words.

    One that gives types says by what their classes are known: the library that they or their bases come from
    (`libraries`), an attribute that one of these has (`marks`), or a single class as `library.Class` (`classes`).
    """

    name: str
    gives: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def distribution(self) -> str:
        """What to install."""
        return f"pegboard-{self.name}"


# Of the packs that give types the one for one library comes first: its classes may be dataclasses too.
KNOWN_PACKS: Final = (
    KnownPack("pydantic", ("types",), libraries=("pydantic",), marks=("__pydantic_core_schema__",)),
    KnownPack("msgspec", ("types",), libraries=("msgspec",), marks=("__struct_fields__",)),
    KnownPack(
        "numpy",
        ("types",),
        classes=("PIL.Image", "numpy.generic", "numpy.ndarray", "pandas.DataFrame", "pandas.Series"),
    ),
    KnownPack(
        "dataclasses",
        ("types",),
        marks=("__dataclass_fields__", "__attrs_attrs__", "_field_defaults", "__required_keys__"),
    ),
    KnownPack("accelerators", ("accelerators",)),
    KnownPack("agent", ("commands",)),
    KnownPack("bridges"),
    KnownPack("cli"),
    KnownPack("dialects", ("dialects",)),
    KnownPack("files"),
    KnownPack("inspector", ("commands",)),
    KnownPack("mcp", ("commands",)),
    KnownPack("multimodal"),
    KnownPack("otel", ("middleware",)),
    KnownPack("process", ("backends",)),
    KnownPack("ray", ("backends",)),
    KnownPack("shell"),
    KnownPack("testing"),
)


def known_pack(name: str, gives: str | None = None) -> KnownPack | None:
    """The pack of that entry-point or distribution name, if it is one of ours and gives that."""
    short = normalise(name).removeprefix("pegboard-")
    return next((pack for pack in KNOWN_PACKS if pack.name == short and (gives is None or gives in pack.gives)), None)


def pack_for_class(cls: type) -> KnownPack | None:
    """The pack that maps this kind of class."""
    libraries = {base.__module__.partition(".")[0] for base in cls.__mro__}
    marks = {name for base in cls.__mro__ for name in vars(base)}
    classes = {f"{base.__module__.partition('.')[0]}.{base.__name__}" for base in cls.__mro__}
    for pack in KNOWN_PACKS:
        if libraries & {*pack.libraries} or marks & {*pack.marks} or classes & {*pack.classes}:
            return pack
    return None


def to_install(gives: str, installed: Iterable[str]) -> str:
    """The advice to somebody who looks for more of a kind; empty if every pack that gives it is `installed`."""
    there = set(map(normalise, installed))
    missing = [pack.distribution for pack in KNOWN_PACKS if gives in pack.gives and pack.name not in there]
    return f"Install one with: pip install {' or '.join(missing)}" if missing else ""
