from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import acme_units
import pytest
from acme_units import Quantity
from acme_units._utc import write

from pegboard import Status, Toolkit


def double(length: Quantity) -> Quantity:
    return Quantity(length.metres * 2)


def tomorrow(moment: datetime) -> datetime:
    return moment.astimezone(timezone(timedelta(hours=2))) + timedelta(days=1)


@pytest.fixture
def toolkit() -> Iterator[Toolkit]:
    with Toolkit(plugins=[acme_units]) as toolkit:
        toolkit.register(double, tomorrow)
        yield toolkit


def test_quantity_arrives_as_an_object_and_leaves_as_text(toolkit: Toolkit) -> None:
    assert toolkit["double"].parameters["properties"]["length"]["description"].endswith("3.5 km")
    assert toolkit.call_sync("double", {"length": "3.5 km"}).text == "7000 m"
    assert toolkit.call_sync("double", {"length": "1 mm"}).text == "0.002 m"


@pytest.mark.parametrize("length", ["3.5", "km", "3,5 km", "3.5km", "3 miles", "1e3 m", "", 3.5, None])
def test_other_lengths_are_refused(toolkit: Toolkit, length: object) -> None:
    result = toolkit.call_sync("double", {"length": length})
    assert result.status is Status.INVALID


def test_model_learns_what_to_write(toolkit: Toolkit) -> None:
    assert "one of mm, cm, m, km" in toolkit.call_sync("double", {"length": "3 miles"}).text
    assert "Z at the end" in toolkit.call_sync("tomorrow", {"moment": "2024-05-06T07:08:09+02:00"}).text


def test_moments_are_in_utc(toolkit: Toolkit) -> None:
    assert toolkit.call_sync("tomorrow", {"moment": "2024-05-06T07:08:09.5Z"}).text == "2024-05-07T07:08:09.500000Z"


@pytest.mark.parametrize("moment", ["2024-05-06T07:08:09+00:00", "2024-05-06T07:08:09", "2024-02-30T07:08:09Z", 0])
def test_other_moments_are_refused(toolkit: Toolkit, moment: object) -> None:
    assert toolkit.call_sync("tomorrow", {"moment": moment}).status is Status.INVALID


def test_moment_without_a_zone_counts_as_utc() -> None:
    moment = datetime(2024, 5, 6, tzinfo=UTC)
    assert write(moment.replace(tzinfo=None)) == write(moment) == "2024-05-06T00:00:00Z"
