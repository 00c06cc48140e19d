"""A span and a journal's entry of one call: arguments and result lose their secrets once, for both."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pegboard import Redaction, Secret, Toolkit, tool
from tests.plugins.otel.conftest import Collected

journals = pytest.importorskip("pegboard_journal")
SECRET = "s3cr3t-of-the-board"


@tool
def pay(amount: int, key: str) -> dict[str, Any]:
    """Pay."""
    return {"key": key, "paid": amount, "ü": [key]}


@tool
async def pay_later(amount: int, key: str) -> dict[str, Any]:
    """Pay, on a loop."""
    await asyncio.sleep(0)
    return {"key": key, "paid": amount, "ü": [key]}


@tool
def refuse(amount: int, key: str) -> str:
    """Fail."""
    raise ValueError(f"not {amount} with {key}")


def both(path: Path, plugins: list[str], content: str = "redacted") -> Toolkit:
    settings = {"journal": {"url": f"sqlite:///{path}/calls.db", "content": content}, "otel": {"content": True}}
    toolkit = Toolkit(plugins=plugins, settings=settings)
    toolkit.register(pay, pay_later, refuse)
    for name in ("pay", "pay_later", "refuse"):
        toolkit.set_presets(name, {"key": Secret(SECRET)})
    return toolkit


@pytest.mark.parametrize("plugins", [["journal", "otel"], ["otel", "journal"]])
@pytest.mark.parametrize("content", ["redacted", "digest"])
def test_one_text_for_both(
    tmp_path: Path, collected: Collected, monkeypatch: pytest.MonkeyPatch, plugins: list[str], content: str
) -> None:
    redacted: list[Any] = []
    deep = Redaction.deep

    def counted(self: Redaction, value: Any, inside: tuple[int, ...] = ()) -> Any:
        redacted.extend([] if inside or not isinstance(value, dict) else [value])
        return deep(self, value, inside)

    monkeypatch.setattr(Redaction, "deep", counted)
    with both(tmp_path, plugins, content) as toolkit:
        for name in ("pay", "pay_later"):
            asyncio.run(toolkit.call(name, '{"amount": 3}'))
        toolkit.call_sync("refuse", {"amount": 3})
        recorded = [(entry.arguments, entry.result) for entry in journals.Journal.of(toolkit).calls()]
    assert sum("paid" in each for each in redacted) == 2
    assert sum(each == {"amount": 3} for each in redacted) == 3
    told = [
        (span.attributes.get("gen_ai.tool.call.arguments"), span.attributes.get("gen_ai.tool.call.result"))
        for span in collected.spans
        if span.attributes is not None
    ]
    paid = '{"amount":3}', '{"key":"***","paid":3,"\\u00fc":["***"]}'
    assert told == [paid, paid, ('{"amount":3}', None)]
    assert SECRET not in str(collected.spans[2].status.description)
    if content == "redacted":
        assert recorded == [paid, paid, ('{"amount":3}', '"not 3 with ***"')]


def test_without_a_url_the_span_has_its_own(collected: Collected) -> None:
    with Toolkit(plugins=["journal", "otel"], settings={"otel": {"content": True}}) as toolkit:
        toolkit.register(pay, presets={"key": "plain"})
        toolkit.call_sync("pay", '{"amount": 3}')
    assert dict(collected.one().attributes or {})["gen_ai.tool.call.arguments"] == '{"amount": 3}'
