"""kill -9 under load: no outcome that a caller got is lost, what is unknown is known as such, the chain is whole."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from pegboard_journal import Journal
from tests.plugins.journal.desk import laborer, url_of
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 here")


SLOW = [pytest.param(40, seed, marks=pytest.mark.slow) for seed in range(5)]


def are_at_work(logs: list[Path]) -> bool:
    """Whether each process has made calls."""
    return all(log.exists() and log.stat().st_size for log in logs)


@pytest.mark.parametrize(("kills", "seed"), [(4, 9), *SLOW])
def test_killed_at_random_moments(tmp_path: Path, kills: int, seed: int) -> None:
    url, chance, processes = url_of(tmp_path), random.Random(seed), min(kills, 8)
    acknowledged: set[str] = set()
    unfinished: set[str] = set()
    forking = laborer("until_killed", url)
    assert forking.stdin is not None
    assert forking.stdout is not None
    for round_ in range(kills // processes):
        logs = [tmp_path / f"{round_}-{number}.log" for number in range(processes)]
        print(json.dumps(list(map(str, logs))), file=forking.stdin, flush=True)
        children = json.loads(forking.stdout.readline())["children"]
        assert eventually(partial(are_at_work, logs))
        for child in children:
            time.sleep(chance.uniform(0.0, 0.05))
            os.kill(child, signal.SIGKILL)
        assert json.loads(forking.stdout.readline())["signals"] == [signal.SIGKILL] * processes
        for log in logs:  # the last line may have been cut in two
            acknowledged.update(line for line in log.read_text("utf-8").split("\n")[:-1] if line)
        with Journal(url) as journal:
            found = {entry.call_id: entry.status for entry in journal.calls()}
            assert {found.get(call_id) for call_id in acknowledged} <= {"success"}
            running = {call_id for call_id, status in found.items() if status == "running"}
            assert {entry.call_id for entry in journal.unfinished()} == running
            assert unfinished <= running  # what was unknown stays so
            assert len(running - unfinished) <= processes  # each was in one call
            unfinished = running
    with Journal(url) as journal:
        assert journal.verify(journal.head) == []
    assert acknowledged
    forking.communicate()
    assert forking.returncode == 0
