"""Wild tools, disturbed at random: every call is answered, and nothing is left. `PEGBOARD_CHAOS_SEED=n` replays a wave.

The last tests remove what makes this so, one thing after another, and check that chaos notices.
"""

import gc
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pegboard import CancelToken, Status
from pegboard._execution.threads import WorkerPool
from tests.execution.chaos import ChaosError, chaos
from tests.support.thinning import first
from tests.support.waiting import PATIENCE

VARIABLE = "PEGBOARD_CHAOS_SEED"
WAVE = 200
WAVES = 25


@pytest.fixture(autouse=True)
def swept() -> Iterator[None]:
    """What complains when it is collected does so here."""
    yield
    gc.collect()


def wave(seed: int, *, debug: bool = False, processes: bool = False) -> Counter[Status]:
    try:
        return chaos(seed, WAVE, debug=debug, processes=processes)
    except BaseException as error:
        error.add_note(f"replay with {VARIABLE}={seed}")
        raise


def first_seed() -> int:
    return int(os.environ.get(VARIABLE) or random.randrange(10**9))


@pytest.mark.parametrize("debug", [False, True])
def test_a_wave(debug: bool) -> None:
    ended = wave(first_seed(), debug=debug)
    assert set(ended) == {Status.SUCCESS, Status.ERROR, Status.TIMEOUT, Status.CANCELLED}


@pytest.mark.slow
def test_five_thousand_calls() -> None:
    seed = first_seed()
    ended = sum((wave(seed + number, processes=number % 5 == 0) for number in range(WAVES)), Counter[Status]())
    assert ended.total() > WAVES * WAVE // 2  # the callers of many were cancelled, and have no results


@contextmanager
def no_loan(pool: WorkerPool) -> Iterator[None]:
    yield


def uncounted(pool: WorkerPool, thread: threading.Thread) -> None:
    pool._threads.discard(thread)


def deaf(token: CancelToken, reason: str = "cancelled") -> None:
    pass


# Of these, one thread: all that is planted in a wave then waits for it.
SEED = next(seed for seed in range(100) if random.Random(seed).choice([1, 2, 4, 16]) == 1)
SOON = 1.0


def test_what_is_planted_is_harmless() -> None:
    chaos(SEED, 0, patience=PATIENCE)


@pytest.mark.parametrize(
    ("owner", "name", "broken", "seen"),
    first(
        1,
        [
            (CancelToken, "cancel", deaf, "did not end.*stop.0"),
            (WorkerPool, "lent", no_loan, "did not end.*deep.0"),
            (WorkerPool, "_lose", uncounted, "never settled: .*'abandoned_threads': 0"),
        ],
    ),
    ids=["cancellation", "the slot loan", "the count of abandoned threads"],
)
def test_chaos_notices_the_loss_of(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, broken: Callable[..., object], seen: str
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(ChaosError, match=f"(?s){seen}"):
        chaos(SEED, 0, patience=SOON)
