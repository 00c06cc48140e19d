"""Types whose modules are loaded after the toolkit was made: their handlers wait for them."""

import datetime as dt
from decimal import Decimal
from pathlib import PurePath
from typing import Any

import pytest

from pegboard import Toolkit
from pegboard._base.errors import RegistrationError
from tests.support.interpreters import printed
from tests.types.table import type_table

LATE = """
import sys
from pegboard import Toolkit

toolkit = Toolkit(plugins=())
late = [name for name in ("datetime", "decimal", "ipaddress", "pathlib", "uuid") if name in sys.modules]
assert not late, late
import datetime, decimal, pathlib, uuid

def add(when: datetime.date, at: datetime.datetime, price: decimal.Decimal, to: pathlib.Path, key: uuid.UUID) -> str:
    return f"{when!r} {at.hour} {price!r} {to.name} {key.int}"

toolkit.register(add)
print(toolkit.call_sync("add", {
    "when": "2024-05-06", "at": "2024-05-06T07:08:09Z", "price": "1.50", "to": "a/b", "key": str(uuid.UUID(int=7)),
}).text)
"""


def test_handlers_wait_for_the_module() -> None:
    assert printed(LATE, "-I") == "datetime.date(2024, 5, 6) 7 Decimal('1.50') b 7"


class Moment(dt.datetime):
    pass


class Cents(Decimal):
    pass


@pytest.mark.parametrize("cls", [Moment, Cents])
def test_a_subclass_would_arrive_as_its_base(cls: type) -> None:
    with pytest.raises(RegistrationError, match=cls.__name__):
        type_table().plan(cls)


@pytest.mark.parametrize(("annotation", "shown"), [(dt.datetime, "datetime.datetime"), (PurePath, "pathlib.PurePath")])
def test_handlers_are_shown_by_what_they_wait_for(annotation: Any, shown: str) -> None:
    with Toolkit(plugins=()) as toolkit:
        handler, _, _ = toolkit.types.handler_for(annotation)
    assert str(handler.matches) == shown
