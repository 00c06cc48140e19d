"""kill -9 under load: no outcome that a caller got is lost, what is unknown is known as such, the chain is whole."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from pegboard_journal import Journal
from tests.plugins.journal.desk import laborer, url_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there is no kill -9 here")


PROCESSES = 4


SLOW = [pytest.param(40, seed, marks=pytest.mark.slow) for seed in range(5)]


@pytest.mark.parametrize(("kills", "seed"), [(4, 9), *SLOW])
def test_killed_at_random_moments(tmp_path: Path, kills: int, seed: int) -> None:
    url, chance = url_of(tmp_path), random.Random(seed)
    acknowledged: set[str] = set()
    unfinished: set[str] = set()
    for round_ in range(kills // PROCESSES):
        logs = [tmp_path / f"{round_}-{number}.log" for number in range(PROCESSES)]
        begun = [laborer("until_killed", url, str(log)) for log in logs]
        for each in begun:
            assert each.stdout is not None
            assert "ready" in each.stdout.readline()
        for each in begun:
            time.sleep(chance.uniform(0.0, 0.05))
            each.kill()
        for each in begun:
            each.communicate()
            assert each.returncode == -9
        for log in logs:  # the last line may have been cut in two
            acknowledged.update(line for line in log.read_text("utf-8").split("\n")[:-1] if line)
        with Journal(url) as journal:
            found = {entry.call_id: entry.status for entry in journal.calls()}
            assert {found.get(call_id) for call_id in acknowledged} <= {"success"}
            running = {call_id for call_id, status in found.items() if status == "running"}
            assert {entry.call_id for entry in journal.unfinished()} == running
            assert unfinished <= running  # what was unknown stays so
            assert len(running - unfinished) <= PROCESSES  # each was in one call
            unfinished = running
    with Journal(url) as journal:
        assert journal.verify(journal.head) == []
    assert acknowledged
