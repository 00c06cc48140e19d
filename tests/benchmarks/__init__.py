"""How long things take, as ratios to a floor: the same work by hand, measured in the same run.

`python -m tests.benchmarks` prints the table; `B1 B3` after it selects rows, `--quick` measures less, `--json` is for
programs, and with `--check` the exit code is 1 where a figure is not where it must be. `--compare REV` measures the
packages of a revision beside those of the checkout, `--peers` other libraries, `--imports` the modules; `--write` puts
figures, peers or imports into `docs/internals/performance.md`. Nothing here asserts a time: what a test can hold on to
without flaking (counts) is in `test_counts.py`. Every toolkit is made as a user would make it, with policy, ids,
durations, statistics, permissions and logging as they come; there is no switch for benchmarks.
"""
