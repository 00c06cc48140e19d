"""Runs every client against the board, and writes the page that says which of them reads what.

`python -m tests.plugins.mcp.interop.matrix` runs them all; `--write` writes the page.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.plugins.mcp import peers
from tests.plugins.mcp.interop.fixture import EXPECTED, METHOD
from tests.plugins.mcp.over_http import started
from tests.workspace.project import ROOT

HERE = Path(__file__).parent
WRAPPED = "x-fastmcp-wrap-result"


class Column(NamedTuple):
    """One client in one era of the protocol."""

    title: str
    era: str
    client: str
    mode: str
    stdio: tuple[str, ...] = ()
    """The tools that it is asked for over stdio, where that is not all of them."""


# Over stdio it starts the board for every call anew.
FEW = ("text", "maybe_nothing", "list_of_blocks", "failure", "large")
COLUMNS = (
    Column("Python SDK 2.3", "2026-07-28", "sdk2", "auto"),
    Column("Python SDK 2.3", "2025-11-25", "sdk2", "legacy"),
    Column("Python SDK 1.30", "2025-11-25", "sdk1", ""),
    Column("fastmcp 4.1", "2026-07-28", "fastmcp", "auto"),
    Column("fastmcp 4.1", "2025-11-25", "fastmcp", "legacy"),
    Column("TypeScript SDK 2.4", "2026-07-28", "typescript", "auto"),
    Column("TypeScript SDK 2.4", "2025-11-25", "typescript", "legacy"),
    Column("TypeScript SDK 1.32", "2025-11-25", "typescript", "v1"),
    Column("pydantic-ai 2.68", "2026-07-28", "pydantic_ai", "auto"),
    Column("pydantic-ai 2.68", "2025-11-25", "pydantic_ai", "legacy"),
    Column("openai-agents 0.24", "2025-11-25", "openai_agents", ""),
    Column("langchain-mcp-adapters 0.3", "2025-11-25", "langchain", ""),
    Column("inspector 2.12", "2026-07-28", "inspector", "auto", FEW),
    Column("inspector 2.12", "2025-11-25", "inspector", "legacy", FEW),
)
NEXT = "text"
"""What is called after a call that is refused."""
ENVIRONMENTS = {
    "sdk1": "sdk1",
    "langchain": "sdk1",
    "fastmcp": "fastmcp",
    "pydantic_ai": "fastmcp",
    "openai_agents": "fastmcp",
}
"""Of the clients in Python, but for that of this environment."""


ERAS = ("2026-07-28", "2025-11-25")
STDIO = (sys.executable, str(HERE / "fixture.py"), "stdio")
# What a client reads otherwise, for reasons of its own: by title, era, transport and tool.
LARGE = "it raises: its reader takes no event over 1 MiB"
ENDS = "it raises, and so do all later calls: its connection ends with HTTP 403"
UNASKED = "it says that it cannot ask the user, and reads an error"
AUDIO = "it raises: it cannot show audio to a model"
BOTH = ("stdio", "http")
ASKING = ("approved", "asks", "asks_with_a_form", "task_that_asks")
REASONS = {
    ("fastmcp 4.1", "2025-11-25", "http", "large"): LARGE,
    ("pydantic-ai 2.68", "2025-11-25", "http", "large"): LARGE,
    ("Python SDK 1.30", "2025-11-25", "http", "scoped"): ENDS,
    ("langchain-mcp-adapters 0.3", "2025-11-25", "http", "scoped"): ENDS,
    **{("langchain-mcp-adapters 0.3", "2025-11-25", way, "audio"): AUDIO for way in BOTH},
    **{("openai-agents 0.24", "2025-11-25", way, name): UNASKED for way in BOTH for name in ASKING},
    **{("inspector 2.12", era, "http", name): UNASKED for era in ERAS for name in ASKING},
}
PAGE = ROOT / "docs" / "packs" / "mcp-clients.md"
PAGE_TEXT = """# MCP clients

These clients read the answers of a [served toolkit](mcp-serving.md) as the toolkit meant them, over stdio and HTTP: the
content, the data and `isError` are the same, and nothing is raised. A framework for agents also has to make something
of each answer for its model.

| client | protocol |
|---|---|
{clients}

Tried were {tools} tools, one for each kind of answer, and a page, resources and a prompt. `task` and `task_that_asks`
belong to a server behind the toolkit that runs them as tasks. `scoped` needs a scope that no caller has: the call is
refused, over HTTP with 403, and the next call is answered.

## Exceptions

The reason lies with the client in each case.

| client | protocol | over | tool | what happens |
|---|---|---|---|---|
{exceptions}

The inspector is its command line. It starts the server anew for every call, so over stdio only {few} tools are tried.

`python -m tests.plugins.mcp.interop.matrix --write` writes this page, and the slow tests run every case. The tools are
in `tests/plugins/mcp/interop/fixture.py`.
"""


def command_of(column: Column) -> list[str]:
    """What runs a client; made once in the folder of the peers."""
    if column.client == "typescript":
        script = peers.beside_node_clients(HERE / "client_typescript.mjs")
        return [peers.node(), script, column.mode]
    if column.client == "inspector":
        script = peers.node_peer(*peers.INSPECTOR)
        return [sys.executable, str(HERE / "client_inspector.py"), peers.node(), script, column.mode]
    known = ENVIRONMENTS.get(column.client)
    python = sys.executable if known is None else peers.python_client(known)
    return [python, str(HERE / "client_python.py"), column.client, column.mode]


def answers(column: Column, names: Iterable[str], *target: str) -> dict[str, Any]:
    """What a client says of the cases."""
    cases = {name: EXPECTED[name][0] for name in names}
    run = subprocess.run(
        [*command_of(column), *target],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    if run.returncode:
        return {"tools": [], "results": {name: {"raised": run.stderr.strip()[-300:]} for name in cases}}
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def difference(expected: Any, result: dict[str, Any], tool: dict[str, Any]) -> str:
    """What a client read otherwise; nothing where it is the same."""
    if "meta" in expected and tool.get("_meta") != expected["meta"]:
        return f"_meta of the tool is {tool.get('_meta')}"
    if "refused" in expected:
        return _acceptance(result)
    if "raised" in result:
        return f"raises {result['raised']}"
    schema = tool.get("outputSchema") or {}
    data = result.get("structuredContent")
    if schema.get(WRAPPED) and isinstance(data, dict):
        data = data.get("result", "no result")
    if bool(result.get("isError")) != expected["error"]:
        return f"isError is {result.get('isError')}"
    if data != expected["data"]:
        return f"data is {data!r:.200}"
    return _blocks(expected, _bare(result))


def _blocks(expected: Any, read: list[dict[str, Any]]) -> str:
    """Which block is another; nothing where they are the same."""
    if len(read) != len(expected["content"]):
        return f"{len(read)} blocks"
    for said, wanted in zip(read, expected["content"], strict=True):
        if expected["error"] and said["type"] == "text" == wanted["type"] and said["text"].startswith(wanted["text"]):
            continue
        if said != wanted:
            return f"a block is {json.dumps(said)[:200]}"
    return ""


def _acceptance(result: dict[str, Any]) -> str:
    """Why a call was not refused as it should be; nothing where it was."""
    if not ("raised" in result or result.get("isError")):
        return "the call is not refused"
    return f"the next call fails: {result['ended']}" if result["ended"] else ""


def _bare(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The content, without members that are null, which some clients show, and without what is for other boards.

    What a resource holds, and what a prompt says, is brought into the form of content.
    """

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(member) for name, member in value.items() if member is not None and name != "_meta"}
        return value

    contents = [{"type": "resource", "resource": each} for each in result.get("contents", ())]
    messages = [{**each["content"], "role": each["role"]} for each in result.get("messages", ())]
    return [bare(block) for block in (*result.get("content", ()), *contents, *messages)]


@contextmanager
def http_board() -> Iterator[str]:
    """The board over HTTP, as a URL."""
    command = [sys.executable, "-m", "tests.plugins.mcp.interop.fixture", "127.0.0.1:0"]
    with started(command, env={**os.environ, "PYTHONPATH": str(HERE.parents[3])}) as (_, url):
        yield url


def differences(column: Column, transport: str, *target: str) -> dict[str, str]:
    """By tool, what the client reads otherwise."""
    names = (column.stdio if transport == "stdio" else ()) or tuple(EXPECTED)
    refused = [name for name in names if "refused" in EXPECTED[name][1]]
    found = answers(column, [name for name in names if name not in refused], *target)
    tools = {tool["name"]: tool for tool in found["tools"]}
    results = {**found["results"], **(_refused(column, refused, *target) if refused else {})}
    compared = {
        name: difference(EXPECTED[name][1], results.get(name, {"raised": "nothing"}), tools.get(name, {}))
        for name in names
    }
    return {name: said for name, said in compared.items() if said}


def _refused(column: Column, names: Iterable[str], *target: str) -> dict[str, Any]:
    """The answers to calls that are refused, and how the next call ends: by a client of its own, which may end too."""
    found = answers(column, [*names, NEXT], *target)
    results, tools = found["results"], [tool for tool in found["tools"] if tool["name"] == NEXT]
    ended = difference(EXPECTED[NEXT][1], results[NEXT], tools[0] if tools else {})
    return {name: {**results[name], "ended": ended} for name in names}


def unexpected(column: Column, transport: str, *target: str) -> dict[str, str]:
    """What a client reads otherwise without a reason of its own, and reasons that are none any more."""
    found = differences(column, transport, *target)
    known = {
        tool: why for (title, era, way, tool), why in REASONS.items() if (title, era, way) == (*column[:2], transport)
    }
    gone = {tool: f"is the same now: {why}" for tool, why in known.items() if tool not in found}
    return {**{tool: said for tool, said in found.items() if tool not in known}, **gone}


def page() -> str:
    """The page of the documentation."""
    return PAGE_TEXT.format(
        clients="\n".join(_clients()),
        tools=sum(METHOD not in each[0] for each in EXPECTED.values()),
        exceptions="\n".join(_exceptions()),
        few=len(FEW),
    )


def _clients() -> Iterator[str]:
    """A row for each client, with the versions of the protocol that it is tried in."""
    for title in dict.fromkeys(column.title for column in COLUMNS):
        yield f"| {title} | {', '.join(column.era for column in COLUMNS if column.title == title)} |"


def _exceptions() -> Iterator[str]:
    """A row for what each client reads otherwise, with the protocols, transports and tools where it does."""
    for title, why in dict.fromkeys((key[0], why) for key, why in REASONS.items()):
        where = [key[1:] for key, reason in REASONS.items() if (key[0], reason) == (title, why)]
        eras, ways, names = (list(dict.fromkeys(column)) for column in zip(*where, strict=True))
        tools = ", ".join(f"`{name}`" for name in names)
        yield f"| {title} | {', '.join(eras)} | {', '.join(ways)} | {tools} | {why} |"


def main() -> int:
    """Print what differs, or write the page; the number of cells."""
    if "--write" in sys.argv:
        PAGE.write_text(page(), "utf-8")
        return 0
    cells = 0
    with http_board() as url:
        for column in COLUMNS:
            for transport, target in (("stdio", STDIO), ("http", (url,))):
                found = unexpected(column, transport, *target)
                cells += len(found)
                print(
                    f"{column.title} {column.era} {transport}: {len(EXPECTED) - len(found)} as the page says",
                    flush=True,
                )
                for name, said in found.items():
                    print(f"  {name}: {said}")
    return cells


if __name__ == "__main__":
    sys.exit(min(main(), 1))
