"""Quantities with units, and UTC timestamps only, as types of tool parameters and results."""

from collections.abc import Iterable
from datetime import datetime

import pegboard
from acme_units._quantity import Quantity, quantity
from acme_units._utc import utc

__all__ = ["Quantity"]


@pegboard.hookimpl
def provide_types() -> Iterable[pegboard.TypeHandler]:
    """A type that Pegboard does not know, and one that it maps otherwise."""
    return [pegboard.TypeHandler(Quantity, quantity), pegboard.TypeHandler(datetime, utc)]
