"""Plans: which tool is called, how, and what befalls the call; all drawn from one seed before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import field, frozen

from pegboard import ExecutionPolicy
from tests.execution.zoo import FAILURES, GIFTS, HANGING, LOCKING

__all__ = ["PLAIN_ENTRIES", "PREPARED_ENTRIES", "Plan", "draw_plans", "planted", "spinning"]

LOOP_ENTRIES = ("call", "call", "prepared", "twice", "batch", "stream")
PLAIN_ENTRIES = ("plain", "plain prepared", "plain batch")
PREPARED_ENTRIES = ("prepared", "twice", "plain prepared")
STEPS = ("down", "down_later", "fan", "fan_later")
HOLDING = ("hold_a", "hold_b")

BLOCKING = 0.4
"""In how many waves tools block the event loop that they run on."""

Call = tuple[str, dict[str, Any]]


@frozen
class Plan:
    """One call, or one batch of calls: how it is made, and what befalls it after so many seconds."""

    ids: tuple[str, ...]
    calls: tuple[Call, ...]
    entry: str
    disturbance: str = "none"
    after: float = 0
    policy: ExecutionPolicy | None = field(default=None)

    def sent(self) -> list[dict[str, Any]]:
        """The calls as a batch takes them."""
        ordered = zip(self.ids, self.calls, strict=True)
        return [{"id": call_id, "name": name, "arguments": arguments} for call_id, (name, arguments) in ordered]


def planted() -> list[Plan]:
    """Two tools that block until they are abandoned, nested calls that fill the pool, and a call that is stopped."""
    quick = ExecutionPolicy(timeout=0.01)
    deep = ("down", {"path": ["fan", "down_later"], "leaf": {"name": "nap", "arguments": {"ms": 5}}})
    return [
        Plan(("hang.0", "hang.1"), (("hang", {}),) * 2, "batch", "timeout", policy=quick),
        Plan(tuple(f"deep.{number}" for number in range(10)), (deep,) * 10, "batch"),
        Plan(("stop.0",), (("hang_later", {}),), "prepared", "stop", after=0.02),
    ]


def spinning() -> list[Plan]:
    """A process that has to be killed, and one that ends."""
    long = ExecutionPolicy(timeout=1)
    return [Plan(("spin.0", "spin.1"), (("spin", {"endless": True}), ("spin", {})), "batch", "timeout", policy=long)]


def draw_plans(draw: Random, calls: int, prefix: str) -> list[Plan]:
    """Plans of about so many calls; their ids begin with `prefix`."""
    blocking = draw.random() < BLOCKING
    plans: list[Plan] = []
    while calls > 0:
        plans.append(_plan(draw, f"{prefix}{len(plans)}", blocking=blocking))
        calls -= len(plans[-1].ids)
    return plans


def _plan(draw: Random, name: str, *, blocking: bool) -> Plan:
    entry = draw.choice(LOOP_ENTRIES if draw.random() < 0.7 else PLAIN_ENTRIES)
    count = draw.randint(2, 6) if entry.endswith(("batch", "stream")) else 1
    disturbance = draw.choice(_disturbances(entry))
    # What blocks needs something to end it: a deadline, or an event loop that is not blocked itself. A deaf tool in the
    # caller's own thread is ended by nothing but a deadline, which moves it elsewhere.
    stopped = disturbance in ("cancel", "stop") and entry in LOOP_ENTRIES and not blocking
    hanging: Sequence[str] = HANGING if disturbance == "timeout" or stopped else ()
    policy = None
    if disturbance == "timeout":
        attempts = draw.choice([1, 1, 1, 2])
        policy = ExecutionPolicy(timeout=draw.uniform(0.001, 0.03), max_attempts=attempts, initial_backoff=0.001)
    return Plan(
        tuple(f"{name}.{part}" for part in range(count)),
        tuple(_call(draw, hanging, blocking=blocking) for _ in range(count)),
        entry,
        disturbance,
        draw.choice([0, 0, draw.uniform(0, 0.03)]),
        policy,
    )


def _disturbances(entry: str) -> list[str]:
    found = ["none", "timeout", "timeout"]
    found += ["cancel"] * 2 * (entry in LOOP_ENTRIES)
    return found + ["stop"] * 2 * (entry in PREPARED_ENTRIES)


def _call(draw: Random, hanging: Sequence[str], *, blocking: bool) -> Call:
    if draw.random() < 0.75:
        return _leaf(draw, hanging)
    # Who blocks a loop and waits for a lock may wait for a loop that is blocked by who waits for this one: see
    # test_two_loops_that_block_each_other.
    steps = (*STEPS, "block") if blocking else (*STEPS, *HOLDING)
    path = [draw.choice(steps) for _ in range(draw.randint(1, 4))]
    name, arguments = _leaf(draw, [name for name in HANGING if name != "lock_and_hang"], locking="block" not in path)
    leaf: dict[str, Any] = {"name": name, "arguments": arguments}
    if name in HANGING:
        leaf["timeout"] = draw.uniform(0.001, 0.02)
    return path[0], {"path": path[1:], "leaf": leaf}


def _leaf(draw: Random, hanging: Sequence[str], *, locking: bool = True) -> Call:
    kinds = {"plain": 4, "hang": 3 * bool(hanging), "flood": 2, "fail": 4, "give": 2, "lock": 2 * locking}
    kind = draw.choices(list(kinds), list(kinds.values()))[0]
    if kind == "plain":
        if draw.random() < 0.4:
            return draw.choice(["echo", "echo_later"]), {"n": draw.randrange(100)}
        return draw.choice(["nap", "nap_later", "tidy"]), {"ms": draw.choice([0, 1, 5])}
    if kind == "fail":
        return draw.choice(["fail", "fail_later", "stream_fail"]), {"how": draw.choice(sorted(FAILURES))}
    if kind == "give":
        return draw.choice(["give", "give_later"]), {"how": draw.choice(sorted(GIFTS))}
    names = {"hang": hanging, "flood": ("flood", "flood_later", "stream", "stream_later"), "lock": LOCKING}
    return draw.choice(names[kind]), {}
