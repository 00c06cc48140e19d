"""Toolkits for tests: they have only what the test gives them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pegboard import Toolkit

__all__ = ["isolated_toolkit", "without_environment"]


@contextmanager
def isolated_toolkit(*plugins: Any, **options: Any) -> Iterator[Toolkit]:
    """A toolkit with these plugins and no others, whatever is installed and whatever the environment says.

    `plugins` are modules, plugin objects, or names of installed plugins; `options` are those of `Toolkit`. Meanwhile
    no variable that begins with `PEGBOARD` is set; at the end the toolkit is closed.

        def test_roll():
            with isolated_toolkit(acme_dice, settings={"acme_dice": {"sides": 6}}) as toolkit:
                assert toolkit.call_sync("roll").status == "success"

    Args:
        plugins: Modules, plugin objects, or names of installed plugins.
        options: Options of `Toolkit`.
    """
    with without_environment(), Toolkit(plugins=plugins, **options) as toolkit:
        yield toolkit


@contextmanager
def without_environment() -> Iterator[None]:
    """No variable that begins with `PEGBOARD` is set meanwhile."""
    taken = {name: os.environ.pop(name) for name in sorted(os.environ) if name.startswith("PEGBOARD")}
    try:
        yield
    finally:
        os.environ.update(taken)
