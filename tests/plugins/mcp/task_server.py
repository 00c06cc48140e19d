"""A server of the SDK that answers calls with tasks; run as a script, over stdio, or over HTTP at a port.

`task_server.py STORE [PORT]`: the tasks of the tool `durable` are in the folder STORE, and outlive the process. In it
are also the names of the tasks that were cancelled, and whether a client has looked at any.
"""

import asyncio
import itertools
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import time
from typing import Any, Final

import uvicorn
from mcp import MCPError
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolResult,
    ListToolsResult,
    RequestParams,
    TextContent,
    Tool,
    ToolExecution,
)

TASKS: Final = "io.modelcontextprotocol/tasks"
POLL: Final = 60
"""Milliseconds."""
NEW: Final = {"taskId": "", "createdAt": "2026-11-27T10:00:00Z", "lastUpdatedAt": "2026-11-27T10:00:00Z", "ttlMs": None}
NAME: Final = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SUPPORT: Final[dict[str, Any]] = {"needs_task": "required", "may_take_task": "optional", "never_task": "forbidden"}
TOOLS: Final = (
    *SUPPORT,
    *(
        "steps",
        "asks",
        "asks_twice",
        "samples",
        "fails",
        "ends",
        "errs",
        "forever",
        "durable",
        "lazy",
        "hasty",
        "odd",
        "crashes",
    ),
)
FORM: Final = {"mode": "form", "message": "Who are you?", "requestedSchema": NAME}
QUESTIONS: Final = {"who": {"method": "elicitation/create", "params": FORM}}
NEXT: Final = {"method": "elicitation/create", "params": {**FORM, "message": "And who else?"}}
SAMPLES: Final = {"model": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}}


class Named(RequestParams):
    task_id: str


class Answered(Named):
    input_responses: dict[str, Any]


class Task:
    """A task: the states that it shows to looks, one after the other; the last one stays."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self.states = list(states)
        self.answers: dict[str, Any] = {}

    def look(self) -> dict[str, Any]:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def working(message: str | None = None) -> dict[str, Any]:
    return {"status": "working", "statusMessage": message, "pollIntervalMs": POLL}


def asking(questions: dict[str, Any]) -> dict[str, Any]:
    return {"status": "input_required", "inputRequests": questions, "pollIntervalMs": POLL}


def done(text: str, **more: Any) -> dict[str, Any]:
    return {"status": "completed", "result": {"content": [{"type": "text", "text": text}], **more}}


def task_of(name: str, text: str) -> Task:
    """The task that a call of a tool becomes."""
    match name:
        case "steps":
            return Task(working("one"), working("one"), working("two"), working(), done(text))
        case "asks" | "asks_twice":
            return Task(asking(QUESTIONS))
        case "samples":
            return Task(asking(SAMPLES))
        case "fails":
            return Task(working(), {"status": "failed", "error": {"code": -32603, "message": "no disk is left"}})
        case "ends":
            return Task(working(), {"status": "cancelled", "statusMessage": "an operator ended it"})
        case "errs":
            return Task(done("it came to nothing", isError=True))
        case "forever":
            return Task(working("for ever"))
        case "odd":
            return Task({"status": "resting"})
    return Task(working(), done(text))


class TaskServer:
    """Answers with tasks whom it may, and must not whom it may not."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.tasks: dict[str, Task] = {}
        self.numbers = itertools.count(1)
        self.server: Any = Server("tasks", on_list_tools=self.list, on_call_tool=self.call)
        self.server.add_request_handler("tasks/get", Named, self.get)
        self.server.add_request_handler("tasks/update", Answered, self.update)
        self.server.add_request_handler("tasks/cancel", Named, self.cancel)

    async def list(self, context: Any, parameters: Any) -> Any:
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description="A tool.",
                    input_schema=schema,
                    execution=ToolExecution(task_support=SUPPORT[name]) if name in SUPPORT else None,
                )
                for name in TOOLS
            ]
        )

    async def call(self, context: Any, parameters: Any) -> Any:
        name, text = parameters.name, parameters.arguments["text"]
        if not self.takes_tasks(context):
            if name == "needs_task":
                raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "it needs tasks", {"requiredCapabilities": {}})
            return CallToolResult(content=[TextContent(text=f"{text}, at once")])
        if name == "never_task":
            return CallToolResult(content=[TextContent(text=f"{text}, at once")])
        task_id = f"{name}-{next(self.numbers)}"
        if name == "durable":
            (self.store / task_id).write_text(f"{time() + float(text)}")
        else:
            self.tasks[task_id] = task_of(name, f"{text}, as a task")
        intervals = {"lazy": 86_400_000, "hasty": -1}
        first = {**working("it begins"), "pollIntervalMs": intervals.get(name, POLL)}
        return {"resultType": "task", **NEW, **first, "taskId": task_id}

    def takes_tasks(self, context: Any) -> bool:
        declared = context.session.client_capabilities
        return declared is not None and TASKS in (declared.extensions or {})

    async def get(self, context: Any, parameters: Named) -> dict[str, Any]:
        if not self.takes_tasks(context):
            raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "it needs tasks", {"requiredCapabilities": {}})
        (self.store / "looked").touch()
        if parameters.task_id.startswith("crashes") and parameters.task_id in self.tasks:
            os._exit(3)
        if (kept := self.store / parameters.task_id).exists():
            state = done("it has lasted") if time() > float(kept.read_text()) else working()
        else:
            state = self.task(parameters).look()
        return {**NEW, **state, "taskId": parameters.task_id}

    async def update(self, context: Any, parameters: Answered) -> dict[str, Any]:
        task = self.task(parameters)
        task.answers |= parameters.input_responses
        if parameters.task_id.startswith("asks_twice") and len(task.answers) == 1:
            task.states = [asking({**QUESTIONS, "else": NEXT})]
        else:
            said = [each.get("content") or each["action"] for each in task.answers.values()]
            task.states = [working(), done(f"{said}")]
        return {}

    async def cancel(self, context: Any, parameters: Named) -> dict[str, Any]:
        self.task(parameters).states = [{"status": "cancelled"}]
        with (self.store / "cancelled").open("a") as file:
            file.write(f"{parameters.task_id}\n")
        return {}

    def task(self, parameters: Named) -> Task:
        if parameters.task_id not in self.tasks:
            raise MCPError(INVALID_PARAMS, "there is no such task")
        return self.tasks[parameters.task_id]


async def over_stdio(server: Any) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def application(server: Any, port: int) -> Any:
    """It says where it is once it can be reached."""
    app = server.streamable_http_app(host="127.0.0.1")
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(of: Any) -> AsyncIterator[Any]:
        async with inner(of) as state:
            print(f"serving at http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
            yield state

    app.router.lifespan_context = lifespan
    return app


def main() -> None:
    tasks = TaskServer(Path(sys.argv[1]))
    if len(sys.argv) == 2:
        asyncio.run(over_stdio(tasks.server))
    else:
        port = int(sys.argv[2])
        config = uvicorn.Config(application(tasks.server, port), log_level="warning")
        with socket.create_server(("127.0.0.1", port)) as listening:  # before it says so
            uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
