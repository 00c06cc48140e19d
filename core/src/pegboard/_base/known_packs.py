"""The packs that the core knows by name: what to install for what a program misses.

No other module of the core names a pack, and no message names one that is not in here: advice to install a guessed name
would be an invitation to register it.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from pegboard._base.errors import PegboardError
from pegboard._base.names import normalise


class KnownPack(NamedTuple):
    """A pack of this project: the `name` of its entry point, and what it `gives` beside tools.

    In the hooks' words, by its name on the face, a command as it is typed, or the dialect of its schemas. One with
    types says by which `signs` their classes are known: the library that they or their bases come from, a single class
    as `library.Class`, or an attribute that one of these has, behind a dot.
    """

    name: str
    gives: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()

    @property
    def distribution(self) -> str:
        """What to install."""
        return f"pegboard-{self.name}"

    @property
    def module(self) -> str:
        """What to import."""
        return f"pegboard_{self.name}"


# Of the packs that give types the one for one library comes first: its classes may be dataclasses too.
KNOWN_PACKS: Final = (
    KnownPack("pydantic", ("types",), ("pydantic", ".__pydantic_core_schema__")),
    KnownPack("msgspec", ("types",), ("msgspec", ".__struct_fields__")),
    KnownPack(
        "numpy", ("types",), ("PIL.Image", "numpy.generic", "numpy.ndarray", "pandas.DataFrame", "pandas.Series")
    ),
    KnownPack(
        "dataclasses",
        ("types",),
        (".__dataclass_fields__", ".__attrs_attrs__", "._field_defaults", ".__required_keys__"),
    ),
    KnownPack("agent", ("pegboard chat",)),
    KnownPack("dialects", ("dialects", "openapi-3.0")),
    KnownPack("inspector", ("pegboard inspect",)),
    KnownPack("journal", ("pegboard journal",)),
    KnownPack("mcp", ("pegboard serve",)),
    KnownPack("otel", ("middleware",)),
    KnownPack("policy", ("policy",)),
    KnownPack("process", ("backends",)),
    KnownPack("ray", ("backends",)),
    KnownPack("skills", ("pegboard skills",)),
    *map(KnownPack, ("bridges", "cli", "code", "documents", "files", "multimodal")),
    *map(KnownPack, ("openapi", "shell", "sql", "testing", "web")),
)


def known_pack(name: str, gives: str | None = None) -> KnownPack | None:
    """The pack of that entry-point or distribution name, if it is one of ours and gives that."""
    short = normalise(name).removeprefix("pegboard-")
    return next((pack for pack in KNOWN_PACKS if pack.name == short and (gives is None or gives in pack.gives)), None)


def pack_that_gives(what: str) -> KnownPack | None:
    """The first pack of ours that gives something, such as the command `pegboard chat`.

    Args:
        what: What is looked for: a command, a hook or a name.
    """
    return next((pack for pack in KNOWN_PACKS if what in pack.gives), None)


def how_to_install(pack: KnownPack | None) -> str:
    """The advice to install a pack of ours that is surely not there; empty for what is not ours."""
    return f"To install it: pip install {pack.distribution}" if pack else ""


def how_to_get(pack: KnownPack | None) -> str:
    """The advice to a program that misses a pack of ours: to install it, or to select it where it is installed."""
    if pack is None or find_spec(pack.module) is None:
        return how_to_install(pack)
    return f"{pack.distribution} is installed, but not selected here, or it has failed"


def pack_for_class(cls: type) -> KnownPack | None:
    """The pack that maps this kind of class."""
    signs = {f".{name}" for base in cls.__mro__ for name in vars(base)}
    for base in cls.__mro__:
        library = base.__module__.partition(".")[0]
        signs |= {library, f"{library}.{base.__name__}"}
    return next((pack for pack in KNOWN_PACKS if not signs.isdisjoint(pack.signs)), None)


def write_schema(schema: dict[str, Any], dialect: str) -> dict[str, Any]:
    """A schema in another dialect, as the pack that gives it writes it. Raises `PegboardError` without that pack."""
    pack = pack_that_gives(dialect)
    if pack is None or find_spec(pack.module) is None:
        absence = f"nothing here writes schemas in the dialect {dialect!r}. It is 2020-12 or openapi-3.0."
        raise PegboardError(f"{absence} {how_to_install(pack)}".strip())
    return dict(import_module(pack.module).write_schema(schema, dialect))
