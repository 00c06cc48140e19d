"""Scopes: where context objects are registered and found, innermost level first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, ValuesView
from typing import Any, final, get_origin

from pegboard._base.effects import tried
from pegboard._base.errors import MissingContextError, PegboardError
from pegboard._base.markers import MISSING

# Only plain containers spread into several objects; a named tuple or an iterable of the user's own is one object.
_SPREAD = (list, tuple, set, frozenset)


@final
class Scope:
    """The context objects of one level (call, session or toolkit) and the wider level behind it.

    `context` is one object, an iterable of objects, or a mapping: names to objects (`{"replica": db}`), or classes to
    the objects that stand for them. Another call's scope stands for all that it finds. Raises `PegboardError` for a
    mapping whose object is not an instance of its class.
    """

    __slots__ = ("_found", "_named", "_objects", "_passed_on", "level", "wider")

    def __init__(self, context: Any = (), *, level: str = "toolkit", wider: Scope | None = None) -> None:
        self.level = level
        self.wider = wider
        self._found: dict[tuple[Any, str | None], Any] = {}
        self._named: dict[str, Any] = {}
        self._objects: list[tuple[type, Any]] = []
        self._passed_on: Scope | None = None
        if type(context) is tuple and not context:
            return  # as most sessions: to ask whether this is a Mapping takes as long as all the rest
        if type(context) is Scope:
            self._passed_on = context
            return
        if isinstance(context, Mapping):
            self._add_mapping(context)
        elif type(context) in _SPREAD or isinstance(context, Iterator | ValuesView):
            self._objects.extend((type(given), given) for given in context)
        elif context is not None:
            self._objects.append((type(context), context))

    def _add_mapping(self, context: Mapping[Any, Any]) -> None:
        for key, given in context.items():
            if isinstance(key, str):
                self._named[key] = given
                self._objects.append((type(given), given))
            elif isinstance(key, type) and (is_instance(given, key) or is_unseen_protocol(key)):
                self._objects.append((key, given))
            else:
                kind = type(given).__name__
                raise PegboardError(f"context keys are names, or classes of their objects; {key!r} fits no {kind}")

    def find(self, wanted: Any, name: str | None = None) -> Any:
        """The object for a parameter of class `wanted` (and the name `name`), or MISSING.

        Levels are searched innermost first, in each the exact class before subclasses. Raises `MissingContextError`
        when two objects of one level fit equally well.
        """
        key = (wanted, name)
        try:
            return self._found[key]
        except KeyError:
            found = self._search(wanted, name)
        except TypeError:  # an unhashable annotation cannot be remembered
            return self._search(wanted, name)
        self._found[key] = found
        return found

    def _search(self, wanted: Any, name: str | None) -> Any:
        found = self._here(wanted, name)
        if found is MISSING and self.wider is not None:
            return self.wider.find(wanted, name)
        return found

    def within(self, context: Any) -> Scope:
        """A scope in which `context` comes first and this one after it."""
        return Scope(context, level=self.level, wider=self)

    def _here(self, wanted: Any, name: str | None) -> Any:
        if self._passed_on is not None:
            return self._passed_on.find(wanted, name)
        cls = get_origin(wanted) or wanted
        if name is not None:
            candidate = self._named.get(name, MISSING)
            fits = candidate is MISSING or is_unseen_protocol(cls) or is_instance(candidate, cls)
            return candidate if fits else MISSING
        exact = [given for known, given in self._objects if known is cls]
        fitting = exact or [given for _, given in self._objects if is_instance(given, cls)]
        distinct = list({id(given): given for given in fitting}.values())
        if len(distinct) > 1:
            kinds = sorted(type(candidate).__qualname__ for candidate in distinct)
            shown = getattr(cls, "__qualname__", str(cls))
            remedy = (
                f"two objects fit {shown} at the {self.level} level ({', '.join(kinds)}); "
                f'name them, context={{"main": ..., "other": ...}}, and ask with Annotated[{shown}, Inject("main")]'
            )
            raise MissingContextError({"type": shown, "level": self.level, "candidates": kinds, "remedy": remedy})
        return distinct[0] if distinct else MISSING

    def given(self) -> Iterator[tuple[Any, Any]]:
        """The objects, innermost first, each with what it is found by: its class, and its name if it has one."""
        yield from (*self._objects, *self._named.items()) if self._passed_on is None else self._passed_on.given()
        if self.wider is not None:
            yield from self.wider.given()

    def classes(self) -> frozenset[Any]:
        """The classes that objects are registered under, here and further out."""
        return frozenset(key for key, _ in self.given() if not isinstance(key, str))

    def levels(self) -> Iterator[str]:
        """The names of the levels, innermost first."""
        yield self.level
        if self.wider is not None:
            yield from self.wider.levels()


def is_unseen_protocol(cls: Any) -> bool:
    """Whether `cls` is a protocol that `isinstance` cannot check: its objects are taken at the program's word."""
    return bool(getattr(cls, "_is_protocol", False)) and not getattr(cls, "_is_runtime_protocol", False)


def is_instance(candidate: Any, cls: Any) -> bool:
    """`isinstance`, which says no where that raises: for a protocol that is not runtime-checkable, say."""
    return tried(isinstance, candidate, cls) is True
