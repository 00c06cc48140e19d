"""Policies: what may be said, and whose word counts."""

import asyncio
import copy
import pickle
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard import ExecutionPolicy, Tool, Toolkit, tool
from pegboard._execution import stages

DEFAULTS: dict[str, Any] = {
    "timeout": 300.0,
    "max_attempts": 1,
    "initial_backoff": 1.0,
    "backoff_multiplier": 2.0,
    "max_backoff": 30.0,
    "jitter": True,
    "retry_on": (Exception,),
}
SAID = st.fixed_dictionaries(
    {},
    optional={
        "timeout": st.one_of(st.none(), st.floats(0.5, 600)),
        "max_attempts": st.integers(1, 9),
        "initial_backoff": st.floats(0, 9),
        "backoff_multiplier": st.floats(1, 9),
        "max_backoff": st.floats(0, 99),
        "jitter": st.booleans(),
        "retry_on": st.sampled_from([(OSError,), (ValueError, KeyError), ()]),
    },
)


def merged(*levels: dict[str, Any]) -> dict[str, Any]:
    """What counts, by the plainest means: the widest level first, each next one over it."""
    fields = dict(DEFAULTS)
    for level in levels:
        fields.update(level)
    return fields


def policy(said: dict[str, Any] | None) -> ExecutionPolicy | None:
    return None if said is None else ExecutionPolicy(**said)


def in_force(call: Any, name: str, said: dict[str, Any] | None) -> dict[str, Any]:
    """The policy that a call runs under."""
    with mock.patch.object(stages, "begin", wraps=stages.begin) as begun:
        assert call(name, policy=policy(said)).text == "ran"
    return {field: getattr(begun.call_args.args[0].policy, field) for field in DEFAULTS}


MAYBE = st.one_of(st.none(), SAID)


class TestWhoseWordCounts:
    def test_each_level_over_the_next(self) -> None:
        def fail() -> None:
            raise ValueError("not yet")

        def attempts(count: int) -> ExecutionPolicy:
            return ExecutionPolicy(max_attempts=count)

        with Toolkit(plugins=(), policy=ExecutionPolicy(max_attempts=2, initial_backoff=0)) as toolkit:
            toolkit.register(fail, name="bare")
            toolkit.register(tool(policy=attempts(4))(fail), name="own")
            session = toolkit.session(policy=attempts(3))
            assert toolkit.call_sync("bare").attempts == 2
            assert session.call_sync("bare").attempts == 3
            assert session.call_sync("own").attempts == 4
            assert session.call_sync("own", policy=attempts(5)).attempts == 5

    @given(MAYBE, MAYBE, MAYBE, MAYBE, st.one_of(st.none(), st.floats(0.5, 600)))
    @settings(max_examples=60)
    def test_field_by_field(self, toolkits: Any, sessions: Any, tools: Any, calls: Any, seconds: Any) -> None:
        @tool(policy=policy(tools), timeout=seconds, locks="always takes the steps")
        def run() -> str:
            return "ran"

        own = {} if seconds is None else {"timeout": seconds}
        with Toolkit(plugins=(), policy=policy(toolkits)) as toolkit:
            toolkit.register(run)
            session = toolkit.session(policy=policy(sessions))
            inner = session.session()  # says nothing
            for call, levels in (
                (toolkit.call_sync, [toolkits or {}]),
                (session.call_sync, [toolkits or {}, sessions or {}]),
                (inner.call_sync, [toolkits or {}, sessions or {}]),
            ):
                assert in_force(call, "run", calls) == merged(*levels, tools or {}, own, calls or {})

    @given(SAID, SAID, SAID)
    def test_of_three_it_does_not_matter_which_two_merge_first(self, a: Any, b: Any, c: Any) -> None:
        call, tool_, wide = ExecutionPolicy(**a), ExecutionPolicy(**b), ExecutionPolicy(**c)
        assert call.merged_over(tool_).merged_over(wide) == call.merged_over(tool_.merged_over(wide))

    def test_a_limit_lifted_by_a_narrower_level_stays_lifted(self) -> None:
        assert ExecutionPolicy(timeout=None).merged_over(ExecutionPolicy(timeout=5)).timeout is None
        assert "timeout" in ExecutionPolicy(timeout=None).given

    def test_what_is_no_policy(self) -> None:
        with Toolkit(plugins=()) as toolkit:
            toolkit.register(lambda: "ran", name="run")
            result = toolkit.call_sync("run", policy={"timeout": 5})  # type: ignore[arg-type]
            assert (result.status, result.error is not None and result.error.kind) == ("error", "setup")


class TestValidation:
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("max_attempts", 0),
            ("max_attempts", 2.5),
            ("max_attempts", float("inf")),
            ("max_attempts", True),
            ("max_attempts", "3"),
            ("initial_backoff", float("inf")),
            ("initial_backoff", -1),
            ("initial_backoff", float("nan")),
            ("backoff_multiplier", 0.5),
            ("backoff_multiplier", float("inf")),
            ("max_backoff", -0.1),
            ("max_backoff", True),
            ("jitter", "no"),
            ("jitter", None),
            ("retry_on", None),
            ("retry_on", "ValueError"),
            ("retry_on", [ValueError("an instance")]),
            ("retry_on", [int]),
            ("retry_on", (1,)),
            ("timeout", 0),
            ("timeout", -1),
            ("timeout", "1"),
            ("timeout", float("nan")),
        ],
    )
    def test_what_may_not(self, field: str, value: Any) -> None:
        with pytest.raises(ValueError, match=field):
            ExecutionPolicy(**{field: value})

    def test_a_name_that_is_no_field(self) -> None:
        with pytest.raises(TypeError, match="attempts"):
            ExecutionPolicy(attempts=3)  # type: ignore[call-arg]

    @given(SAID)
    def test_copies_are_the_same(self, said: dict[str, Any]) -> None:
        one = ExecutionPolicy(**said)
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            assert (other, hash(other), other.given) == (one, hash(one), frozenset(said))

    @given(SAID)
    def test_reads_as_it_was_written(self, said: dict[str, Any]) -> None:
        one = ExecutionPolicy(**{name: value for name, value in said.items() if name != "retry_on"})
        assert eval(repr(one)) == one

    def test_nothing_can_be_changed(self) -> None:
        one = ExecutionPolicy(timeout=5)
        with pytest.raises(AttributeError, match="timeout"):
            one.timeout = 6
        assert one.timeout == 5

    def test_a_default_that_was_given_is_not_the_same_as_none_given(self) -> None:
        assert ExecutionPolicy(max_attempts=1) != ExecutionPolicy()
        assert ExecutionPolicy() != "policy"
        assert ExecutionPolicy(max_attempts=1).merged_over(ExecutionPolicy(max_attempts=5)).max_attempts == 1

    def test_retry_on_takes_one_class_or_a_list(self) -> None:
        assert ExecutionPolicy(retry_on=OSError).retry_on == (OSError,)
        assert hash(ExecutionPolicy(retry_on=[OSError])) == hash(ExecutionPolicy(retry_on=(OSError,)))

    @pytest.mark.parametrize("field", ["timeout", "initial_backoff", "max_backoff"])
    def test_a_timedelta_is_its_seconds(self, field: str) -> None:
        given: dict[str, Any] = {field: timedelta(minutes=1, milliseconds=500)}
        policy = ExecutionPolicy(**given)
        assert getattr(policy, field) == 60.5
        assert eval(repr(policy)) == policy
        with pytest.raises(ValueError, match=f"{field} must be"):
            ExecutionPolicy(**{**given, field: timedelta(seconds=-1)})

    def test_timeout_of_a_tool_is_checked_where_it_is_declared(self) -> None:
        @tool(timeout=timedelta(milliseconds=20))
        async def wait() -> None:
            await asyncio.sleep(60)

        toolkit = Toolkit()
        toolkit.register(wait)
        assert toolkit.call_sync("wait").status == "timeout"
        wrong: Any
        for wrong in ("3 s", 0, True, timedelta(0)):
            with pytest.raises(ValueError, match="timeout must be"):
                tool(timeout=wrong)(wait)

    def test_of_a_tool_that_was_made_by_hand(self) -> None:
        class Fetch:
            name = "fetch"
            description = "Fetch."
            parameters = {"type": "object", "properties": {}}  # noqa: RUF012 - as users write it

            def __init__(self) -> None:
                self.ran = 0

            def call(self, call: Any) -> str:
                self.ran += 1
                raise ConnectionError("down")

        fetch = Fetch()
        with Toolkit(plugins=(), policy=ExecutionPolicy(max_attempts=3, initial_backoff=0)) as toolkit:
            (made,) = toolkit.register(fetch)
            assert isinstance(made, Tool)
            assert toolkit.call_sync("fetch").attempts == fetch.ran == 3
