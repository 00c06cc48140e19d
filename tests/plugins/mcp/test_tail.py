"""The end of what a server writes to stderr, as others are told of it: nothing that a terminal would obey."""

import sys

import pytest

from pegboard import Toolkit
from pegboard_mcp import McpServer
from pegboard_mcp._wire.terminal import say

HOSTILE = "\x1b[2J\x9b2J\u202e\U000e0041\rover"
SPELLED = r"\x1b[2J\x9b2J\u202e\U000e0041\rover"


def test_in_problems_and_results() -> None:
    code = f"import sys; sys.stderr.buffer.write({f'one {HOSTILE}'.encode()!r}); sys.exit(1)"
    server = McpServer.stdio(sys.executable, ["-c", code], name="far")
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        (source,) = toolkit.sources
        for problems in (toolkit.problems, source.problems):
            assert f"one {SPELLED}" in " ".join(problems)


def test_a_secret_is_masked_before_anything_is_spelled() -> None:
    secret = "s3cret\u202eturned\u200dvalue"
    code = "import os, sys; sys.stderr.buffer.write(os.environb[b'TOKEN']); sys.exit(1)"
    server = McpServer.stdio(sys.executable, ["-c", code], name="far", env={"TOKEN": secret})
    with Toolkit(plugins=()) as toolkit:
        toolkit.register(server)
        assert "stderr ends" in " ".join(toolkit.problems)
        assert "s3cret" not in " ".join(toolkit.problems)


def test_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    assert capsys.readouterr().err == f"{SPELLED}\n"
