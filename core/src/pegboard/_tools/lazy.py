"""Lazy tools: named by an import string, imported on first use."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from pegboard._base.errors import PegboardError, RegistrationError, describe_exception
from pegboard._model.declare import declared_options
from pegboard._model.tool import SchemaRequest, Tool, ToolOptions
from pegboard._tools.function import FunctionDefinition, TypeTables

if TYPE_CHECKING:
    from pegboard._model.facts import Parameter

__all__ = ["LazyDefinition"]


@final
class LazyDefinition:
    """Stands for the function at `"pkg.module:attribute"`; every question but its name imports it."""

    def __init__(
        self,
        target: str,
        name: str,
        assembly: TypeTables,
        failed: Callable[[str, BaseException | None], None],
        adjust: Callable[[ToolOptions], ToolOptions],
        check: Callable[[Tool], None],
    ) -> None:
        self._target = target
        self._name = name
        self._assembly = assembly
        self._failed = failed
        self._found: Any = None
        self._adjust = adjust
        self._check = check
        self._lock = threading.RLock()

    def resolve(self) -> Any:
        """The definition behind the import string. Raises `PegboardError` saying what is wrong with the pack."""
        with self._lock:
            if self._found is None:
                try:
                    found = self._load()
                    self._check(Tool(self._name, found, found.options))
                    self._found = found
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt):
                        raise
                    reason = f"{self._target} could not be loaded: {describe_exception(error)}"
                    self._failed(reason, error)
                    raise PegboardError(reason) from error
            return self._found

    @property
    def is_loaded(self) -> bool:
        """Whether the module behind the import string was imported."""
        return self._found is not None

    def _load(self) -> Any:
        module_name, _, path = self._target.partition(":")
        found: Any = importlib.import_module(module_name)
        for part in path.split("."):
            found = getattr(found, part)
        if isinstance(found, Tool):
            definition: Any = found.definition
            return definition.rebuilt(self._name, self._adjust(found.options), self._assembly)
        if isinstance(found, type) or not callable(found):
            raise RegistrationError(f"{self._target} is {found!r}; an import string names one function or one Tool")
        return FunctionDefinition(
            found, self._name, self._adjust(declared_options(found) or ToolOptions()), self._assembly
        )

    def forget(self) -> None:
        """Read the tool anew on its next use."""
        with self._lock:
            self._found = None

    def rebuilt(self, name: str, options: ToolOptions, assembly: TypeTables) -> Any:
        """The tool behind the import string under other options or in another toolkit."""
        return self.resolve().rebuilt(name, options, assembly)

    @property
    def options(self) -> ToolOptions:
        """What the function declares; nothing where it cannot be loaded, for then it cannot be called either."""
        try:
            return self.resolve().options  # type: ignore[no-any-return]
        except PegboardError:
            return ToolOptions()

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function."""
        return self.resolve().function  # type: ignore[no-any-return]

    @property
    def description(self) -> str:
        """The text for the model."""
        return self.resolve().description  # type: ignore[no-any-return]

    def schema(self, request: SchemaRequest, hidden: frozenset[str]) -> dict[str, Any] | None:
        """The rendered schema."""
        return self.resolve().schema(request, hidden)  # type: ignore[no-any-return]

    def parameters(self, hidden: frozenset[str]) -> tuple[Parameter, ...]:
        """The parameters."""
        return self.resolve().parameters(hidden)  # type: ignore[no-any-return]

    def plan(self, presets: frozenset[str], locked: frozenset[str]) -> Any:
        """The call plan."""
        return self.resolve().plan(presets, locked)

    def renderers(self) -> Any:
        """How returned values become content."""
        return self.resolve().renderers()

    def structure_preset(self, name: str, value: Any) -> Any:
        """A preset as the parameter's type."""
        return self.resolve().structure_preset(name, value)
