"""The same work through other libraries, each in an environment of its own: `python -m tests.benchmarks --peers`.

One module for each peer, named after its distribution, says how the work goes through its narrowest public path and
through the path of its own agent; `harness` measures it inside the peer's environment, `environments` makes that, and
`table` puts the answers side by side.
"""
