"""Chaos: many calls of wild tools, disturbed at random, and what has to hold nevertheless."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from random import Random

from attrs import define, field

from pegboard import Chunk, Status, ToolCall, Toolkit, ToolResult
from tests.execution.plans import PLAIN_ENTRIES, PREPARED_ENTRIES, Plan, draw_plans, planted, spinning
from tests.execution.zoo import LOCKING, Zoo
from tests.support.residue import Open
from tests.support.waiting import PATIENCE, HangError, eventually, stacks, within

__all__ = ["ChaosError", "chaos"]

LIVING = frozenset({Status.PENDING, Status.AWAITING_APPROVAL, Status.RUNNING})
CALLERS = 12
"""Threads from which plain code calls."""
LAST = 30
"""Calls that are under way when the toolkit is closed."""
HUNG = 0.2
"""Seconds for which tools stay blocked once the toolkit is being closed."""
TOLD = 20
"""How many of the problems are told."""


class ChaosError(AssertionError):
    """Something did not hold."""


def chaos(
    seed: int, calls: int, *, patience: float = PATIENCE, debug: bool = False, processes: bool = False
) -> Counter[Status]:
    """Make so many calls of one toolkit, then close it; how the calls ended. `patience` is in seconds.

    Raises `ChaosError` for what does not hold.
    """
    draw = Random(seed)
    if processes:  # multiprocessing keeps one helper process for as long as the program runs
        resource_tracker.ensure_running()
    before = Open.now()
    toolkit = Toolkit(plugins=["process"], max_threads=draw.choice([1, 2, 4, 16]), parallel=draw.random() < 0.9)
    wave = Wave(toolkit, Zoo(toolkit, 4 * patience), patience, debug)
    try:
        wave.act([*planted(), *(spinning() if processes else ()), *draw_plans(draw, calls, "c")])
        wave.check_abandoned()
        wave.check_locks()
        wave.act(draw_plans(draw, LAST, "last"), closing_after=draw.uniform(0, 0.02))
        wave.check_stats()
    except HangError as error:
        raise ChaosError(str(error)) from error
    finally:
        wave.zoo.release.set()
        toolkit.close()
    wave.expect_none(before.residue(patience))
    return Counter(result.status for trial in wave.trials for result in trial.results)


@define
class Trial:
    """What became of a plan."""

    plan: Plan
    results: list[ToolResult] = field(factory=list)
    prepared: ToolCall | None = None
    ended: str = ""

    def problems(self) -> list[str]:
        """Each call ends in one result with its id and name, or in its caller's cancellation."""
        plan = self.plan
        allowed = ("result", "cancelled") if plan.disturbance == "cancel" else ("result",)
        got = [(result.call_id, result.name) for result in self.results]
        wanted = [(call_id, name) for call_id, (name, _) in zip(plan.ids, plan.calls, strict=True)]
        if plan.entry == "stream":  # in the order in which they end
            got, wanted = sorted(got), sorted(wanted)
        found = [f"still lives: {result}" for result in self.results if result.status in LIVING]
        if self.ended not in allowed:
            found.append(f"ended as {self.ended}")
        if got != wanted and (self.ended == "result" or len(set(got)) != len(got) or not set(got) <= set(wanted)):
            found.append(f"answered {got}")
        call = self.prepared
        if call is not None and (call.result is None or call.status in LIVING):
            unbegun = self.ended == "cancelled" and plan.after == 0 and call.status is Status.PENDING
            found += [] if unbegun else [f"not settled: {call}"]
        return [f"{problem}: {plan}" for problem in found]


@define(eq=False)
class Wave:
    """The calls of one toolkit, from an event loop and from some plain threads."""

    toolkit: Toolkit
    zoo: Zoo
    patience: float
    debug: bool
    trials: list[Trial] = field(factory=list)
    chunks: Counter[str] = field(factory=Counter)

    def act(self, plans: list[Plan], *, closing_after: float | None = None) -> None:
        """Make the calls, and close the toolkit meanwhile if so said. All of them end, and no task is left."""
        trials = [Trial(plan) for plan in plans]
        within(lambda: asyncio.run(self._act(trials, closing_after), debug=self.debug), 2 * self.patience)
        self.trials += trials
        self.expect_none([problem for trial in trials for problem in trial.problems()])

    def check_abandoned(self) -> None:
        """Threads that are in a tool now are counted as abandoned; at least the two that were planted."""
        self._settles(lambda: 2 <= self.toolkit.stats["abandoned_threads"] == len(self.zoo.inside))

    def check_locks(self) -> None:
        """Every lock is free."""
        for name in LOCKING:
            result = within(lambda name=name: self.toolkit.call_sync(name), self.patience)  # type: ignore[misc]
            self.expect_none([] if result.status is Status.SUCCESS else [f"{name} afterwards: {result.text}"])

    def check_stats(self) -> None:
        """When the blocked tools are released, nothing runs and nothing waits; every call was counted."""
        self.zoo.release.set()
        for name in ("running", "waiting", "abandoned_threads"):
            self._settles(lambda name=name: self.toolkit.stats[name] == 0)  # type: ignore[misc]
        answered = sum(len(trial.results) for trial in self.trials) + len(self.zoo.nested)
        counted = sum(tool["calls"] for tool in self.toolkit.stats["tools"].values())
        self.expect_none([] if counted >= answered else [f"{counted} calls were counted, {answered} were answered"])

    def expect_none(self, problems: list[str]) -> None:
        """Raise `ChaosError` if there are problems."""
        if problems:
            raise ChaosError("\n".join(problems[:TOLD]))

    def _settles(self, condition: Callable[[], bool]) -> None:
        if not eventually(condition, self.patience):
            stats = {name: count for name, count in self.toolkit.stats.items() if name != "tools"}
            raise ChaosError(f"never settled: {stats}, {len(self.zoo.inside)} threads are in tools\n{stacks()}")

    async def _act(self, trials: list[Trial], closing_after: float | None) -> None:
        callers = ThreadPoolExecutor(CALLERS + 1, thread_name_prefix="caller")
        tasks = [asyncio.create_task(self._disturbed(trial, callers), name=str(trial.plan)) for trial in trials]
        try:
            if closing_after is not None:
                await asyncio.sleep(closing_after)
                asyncio.get_running_loop().call_later(HUNG, self.zoo.release.set)  # closing waits for blocked tools
                await asyncio.wait_for(asyncio.wrap_future(callers.submit(self.toolkit.close)), self.patience)
            _, late = await asyncio.wait(tasks, timeout=self.patience)
        finally:
            callers.shutdown(wait=False, cancel_futures=True)
        if late:
            raise ChaosError("\n".join(["did not end:", *[task.get_name() for task in late][:TOLD], stacks()]))
        for task in tasks:
            task.result()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # given up after their grace, which a busy machine may use up; they end all the same
            await asyncio.wait(others, timeout=self.patience)
        self.expect_none([f"a task is left: {task}" for task in others if not task.done()])

    async def _disturbed(self, trial: Trial, callers: ThreadPoolExecutor) -> None:
        plan = trial.plan
        if plan.entry in PREPARED_ENTRIES:
            name, arguments = plan.calls[0]
            trial.prepared = self.toolkit.prepare(name, arguments, call_id=plan.ids[0])
        if plan.entry in PLAIN_ENTRIES:
            running: asyncio.Future[None] = asyncio.wrap_future(callers.submit(self._made_plainly, trial))
        else:
            running = asyncio.ensure_future(self._made(trial))
        if plan.disturbance in ("cancel", "stop"):
            await asyncio.sleep(plan.after)
            if plan.disturbance == "cancel":
                running.cancel()
            elif trial.prepared is not None:
                trial.prepared.stop()
        try:
            await running
            trial.ended = "result"
        except asyncio.CancelledError:
            trial.ended = "cancelled"
        except BaseException as error:  # noqa: BLE001 - what leaves a call is what is looked for
            trial.ended = repr(error)

    async def _made(self, trial: Trial) -> None:
        plan = trial.plan
        if trial.prepared is not None:
            runs = [trial.prepared.execute(policy=plan.policy) for _ in range(1 + (plan.entry == "twice"))]
            answers = await asyncio.gather(*runs)
            trial.results = [answer for number, answer in enumerate(answers) if answer not in answers[:number]]
        elif plan.entry == "call":
            (name, arguments), (call_id,) = plan.calls[0], plan.ids
            options = {"call_id": call_id, "policy": plan.policy, "on_chunk": self._heard}
            trial.results = [await self.toolkit.call(name, arguments, **options)]  # type: ignore[arg-type]
        elif plan.entry == "batch":
            trial.results = await self.toolkit.call_many(plan.sent(), policy=plan.policy)
        else:
            async for event in self.toolkit.stream(plan.sent(), policy=plan.policy):
                if isinstance(event, ToolResult):
                    trial.results.append(event)
                else:
                    self.chunks[event.call_id] += 1

    def _made_plainly(self, trial: Trial) -> None:
        plan = trial.plan
        if trial.prepared is not None:
            trial.results = [trial.prepared.execute_sync(policy=plan.policy)]
        elif plan.entry == "plain":
            (name, arguments), (call_id,) = plan.calls[0], plan.ids
            trial.results = [self.toolkit.call_sync(name, arguments, call_id=call_id, policy=plan.policy)]
        else:
            trial.results = self.toolkit.call_many_sync(plan.sent(), policy=plan.policy)

    def _heard(self, chunk: Chunk) -> None:
        self.chunks[chunk.call_id] += 1
        if self.chunks[chunk.call_id] % 7 == 0:
            raise SystemExit("listeners fail too")
