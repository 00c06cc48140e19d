"""Pegboard in one file: write tools, show them to a model, and run the calls that it sends back.

Run it with `nox -s demo`, or with `python quickstart.py` wherever pegboard[all] is installed. No model is needed: the
calls below are what a model would send, and the agent talks to a server on this machine with prepared answers.
`--model NAME --base-url URL` lets it talk to a real one.
"""

import argparse
import asyncio
import json
import os
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pegboard
from pegboard import (
    Approval,
    ApprovalRequest,
    Injected,
    Param,
    Secret,
    Tool,
    ToolCall,
    Toolkit,
    ToolResult,
    ToolSchema,
    tool,
)
from pegboard_agent import Agent, CallEnded, Final, Memory, Message, OpenAIChat
from pegboard_testing import ScriptedServer

# -- Tools are typed functions and methods. Types become the schema, docstrings its descriptions. ----------------------


class WeatherService:
    """A toy: the sun always shines."""

    @tool
    def get_weather(self, city: str) -> str:
        """Get current weather for a city.

        Args:
            city: City name
        """
        return f"Weather in {city}: Sunny, 25°C"

    @tool
    def get_forecast(self, city: str, days: Annotated[int, Param("Number of days", ge=1, le=14)]) -> str:
        """Get weather forecast for the next days."""
        return f"{days}-day forecast for {city}: Mostly sunny"


class Calculator:
    """Async tools are tools like any other."""

    @tool
    async def add(self, a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @tool
    async def multiply(self, a: float, b: float) -> float:
        """Multiply two numbers."""
        return a * b


# -- Dataclasses are types too, as soon as the pack pegboard-dataclasses is installed. ---------------------------------


@dataclass
class Item:
    name: str
    price: float
    quantity: int = 1


@dataclass
class Order:
    customer: str
    items: list[Item]


@tool
def cost_of(order: Order) -> float:
    """Add up what an order costs."""
    return sum(item.price * item.quantity for item in order.items)


# -- What the model must not know or choose is filled in by the program. -----------------------------------------------


@dataclass
class User:
    address: str


@tool(requires_approval=True)
def send_email(to: str, subject: str, api_key: str, sender: Injected[User]) -> str:
    """Send an email."""
    assert api_key, "the preset below fills this in"
    return f"Sent {subject!r} from {sender.address} to {to}"


def approver(request: ApprovalRequest) -> bool | Approval:
    """Decide about a call before it runs, in place of a person."""
    print(f"approve {request.tool.name} to {request.arguments['to']}?")
    if request.arguments["to"].endswith("@example.com"):
        return True
    return Approval.deny("Emails may go to example.com only.")


# -- Now the program. --------------------------------------------------------------------------------------------------


async def main(model: OpenAIChat) -> None:
    """Assemble a toolkit and use it."""
    page = readme()
    settings = {"documents": {"base_dir": str(page.parent)}, "files": {"base_dir": str(page.parent), "read_only": True}}
    # Toolkit() registers the tools of every installed pack; register() adds the program's own.
    async with Toolkit(settings=settings, context=User("ada@example.com"), approver=approver) as toolkit:
        toolkit.register(WeatherService(), Calculator(), cost_of)
        toolkit.register(send_email, presets={"api_key": Secret(os.environ.get("EMAIL_API_KEY", "made-up"))})

        heading("A bad call is a result, not an exception; it says what to correct")
        show(await toolkit.call("get_forecast", {"town": "Beijing", "days": "three"}))
        show(await toolkit.call("get_wether", {"city": "Beijing"}))

        heading("Some calls need approval; the model sees neither the API key nor the sender")
        show(await toolkit.call("send_email", {"to": "bob@example.com", "subject": "Lunch?"}))
        show(await toolkit.call("send_email", {"to": "eve@elsewhere.example", "subject": "Lunch?"}))

        await ask(model)

        heading("The same two calls without an agent; both run at once")
        weather = ToolCall("call_1", "get_weather", '{"city": "Beijing"}')
        addition = ToolCall("call_2", "add", '{"a": 15, "b": 27}')
        for result in await toolkit.call_many([weather, addition]):
            show(result)

        heading("JSON arguments arrive as dataclasses")
        items = [{"name": "tea", "price": 4.5}, {"name": "cup", "price": 9, "quantity": 2}]
        show(await toolkit.call("cost_of", {"order": {"customer": "Ada", "items": items}}))

        heading("A tool of an installed pack: the first and the last lines of a README")
        show(await toolkit.call("view_text_file", {"file_path": page.name, "ranges": "1,5"}))
        show(await toolkit.call("view_text_file", {"file_path": page.name, "ranges": "-5,-1"}))

        heading("Another pack reads documents (PDF, Office, HTML ...), part by part")
        show(await toolkit.call("document_read", {"path": page.name, "max_chars": 250}))

        if "local_text_to_audio" in toolkit:
            heading("An engine of this machine speaks: a recording for the program, and no key is needed")
            spoken = await toolkit.call("local_text_to_audio", {"text": "Hello from Pegboard!"})
            print(f"{spoken.name}: {spoken.status}\n    {spoken.content[0]!r}, {spoken.metadata['duration']} s")

        heading("Prepare a call now, execute it later")
        call = toolkit.prepare("get_forecast", {"city": "Beijing", "days": 3})
        print(f"checked: {call.name} {dict(call.typed)} is {call.status}")
        show(await call.execute())

        heading("All tools: those that are installed and those that this program registered")
        print_tools(toolkit)
        heading("What a model sees of two of them")
        for name in ("get_forecast", "send_email"):
            print_schema(toolkit[name].schema())


async def ask(model: OpenAIChat) -> None:
    """Let an agent answer a question with two tools."""
    toolkit = Toolkit(plugins=())
    toolkit.register(WeatherService(), Calculator())
    agent = Agent(
        "Assistant",
        model,
        toolkit,
        system_prompt="You are a helpful assistant. Use the available tools to answer questions.",
        memory=Memory(),
        max_iterations=5,
    )
    question = Message("user", "What's the weather in Beijing? Also, what is 15 + 27?", name="user")

    heading(f"An agent asks {model.model} and answers")
    print("Question:", question.text)
    async for event in agent.stream(question):
        match event:
            case CallEnded():
                show(event.result)
            case Final():
                print("Answer:", event.message.text)


# -- The rest only prints. ---------------------------------------------------------------------------------------------


def readme() -> Path:
    """The README of the checkout; where only wheels are installed, the file that carries pegboard's own."""
    here, core = Path(__file__).resolve(), Path(pegboard.__file__).resolve()
    for folder in (*here.parents, *core.parents):
        if (folder / "noxfile.py").is_file() and (folder / "README.md").is_file():
            return folder / "README.md"
    return next(core.parents[1].glob("pegboard-*.dist-info/METADATA"))


def heading(text: str) -> None:
    """Print what comes next."""
    print(f"\n{text}\n{'-' * len(text)}")


def print_tools(toolkit: Toolkit) -> None:
    """Print a table with a line for every tool, and what is wrong, if anything is."""
    rows = [("TOOL", "PACK", "VERSION", "PARAMETERS")]
    rows += [(t.name, t.origin.distribution or "this program", t.origin.version or "-", parameters(t)) for t in toolkit]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for problem in toolkit.problems:
        print("problem:", problem)


def parameters(tool: Tool) -> str:
    """Name the parameters of a tool; those that the model does not see say where they come from."""
    names = ", ".join(p.name if p.source == "model" else f"{p.name} ({p.source})" for p in tool.params)
    return textwrap.shorten(names, 48, placeholder=" ...")


def print_schema(schema: ToolSchema) -> None:
    """Print a tool as it is described to a model."""
    for line in f"{schema.name}: {schema.description}\n{layout(schema.parameters)}".splitlines():
        print(textwrap.fill(line, 100, subsequent_indent=" " * 8))


def layout(schema: object, indent: str = "    ") -> str:
    """Write JSON on one line if it fits, else with a line for each member."""
    text = json.dumps(schema)
    if len(indent) + len(text) < 90 or not isinstance(schema, dict):
        return indent + text
    members = [f'{indent}  "{key}": {layout(member, indent + "  ").lstrip()}' for key, member in schema.items()]
    return "\n".join([indent + "{", ",\n".join(members), indent + "}"])


def show(result: ToolResult) -> None:
    """Print how a call ended and what the model reads."""
    print(f"{result.name}: {result.status}", textwrap.indent(result.text, "    "), sep="\n")


def command_line() -> argparse.Namespace:
    """Read which model the agent asks."""
    parser = argparse.ArgumentParser(description="Pegboard in one file.")
    parser.add_argument("--model", help="a real model for the agent; its key comes from OPENAI_API_KEY")
    parser.add_argument("--base-url", default="https://api.openai.com/v1", help="the server that has it")
    return parser.parse_args()


if __name__ == "__main__":
    given = command_line()
    if given.model:
        asyncio.run(main(OpenAIChat(given.model, base_url=given.base_url)))
    else:
        calls = [("get_weather", {"city": "Beijing"}), ("add", {"a": 15, "b": 27})]
        with ScriptedServer(calls, "It is sunny in Beijing, 25°C, and 15 + 27 is 42.") as server:
            asyncio.run(main(OpenAIChat("a scripted model", base_url=server.url, api_key="")))
