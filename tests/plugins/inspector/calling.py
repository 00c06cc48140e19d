"""Tools that call tools: a program in code mode, a sub-agent, a function; with secrets, questions and answers."""

import pytest

from pegboard import Session, Suspend, ToolError, Toolkit, tool


@tool
def forecast(city: str) -> str:
    """Forecast the weather."""
    if city == "Atlantis":
        raise ToolError("there is no weather in Atlantis")
    return f"rain in {city}"


@tool
async def plan(city: str, session: Session) -> str:
    """Plan a day, with the weather."""
    return (await session.call("ask_weather", {"city": city})).text


@tool
def ask_weather(city: str, session: Session) -> str:
    """Ask for the weather, from plain code."""
    return session.call_sync("forecast", {"city": city}, call_id="same").text


@tool
def sign_in(user: str, password: str) -> str:
    """Sign in."""
    return f"{user} signed in with {password}"


@tool
def ask_desk(question: str) -> str:
    """Ask a person who answers later."""
    raise Suspend(f"a person thinks about {question}")


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


PROGRAM = """\
import asyncio
found = await asyncio.gather(forecast(city="Oslo"), plan(city="Rome"))
await sign_in(user="ann", password="hunter22")
answer = await ask_desk(question="when")
await delete(path="a")
await forecast(city="Atlantis")
"""


def calling_toolkit() -> Toolkit:
    """A toolkit with all of them, and code mode over them."""
    code = pytest.importorskip("pegboard_code")
    toolkit = Toolkit(plugins=())
    toolkit.register(forecast, plan, ask_weather, sign_in, ask_desk, delete)
    toolkit.register(code.CodeMode(toolkit))
    return toolkit
