"""What the tests of the agent share: seed tools, and a look at what a server was sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pegboard import ExecutionPolicy, Toolkit, tool
from pegboard_agent import Agent, ConversationStore, Event, OpenAIChat
from pegboard_testing import Raw, ScriptedServer

KEY = "sk-made-up-for-these-tests"
AT_ONCE = ExecutionPolicy(initial_backoff=0.0, max_attempts=3, timeout=60.0)


class WeatherService:
    @tool
    def get_weather(self, city: str) -> str:
        """Get current weather for a city."""
        return f"Weather in {city}: Sunny, 25°C"

    @tool
    def get_forecast(self, city: str, days: int) -> str:
        """Get weather forecast for next N days."""
        return f"{days}-day forecast for {city}: Mostly sunny"


class Calculator:
    @tool
    def add(self, a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @tool
    def multiply(self, a: float, b: float) -> float:
        """Multiply two numbers."""
        return a * b


def model_of(server: ScriptedServer, **options: Any) -> OpenAIChat:
    """A model behind a server, which is asked again at once."""
    return OpenAIChat("scripted", base_url=server.url, **{"api_key": KEY, "policy": AT_ONCE, **options})


def agent_on(server: ScriptedServer, *tools: Any, **options: Any) -> Agent:
    """An agent with these tools, else with those of the seeds."""
    toolkit = Toolkit(plugins=())
    toolkit.register(*(tools or (WeatherService(), Calculator())))
    return Agent("Assistant", model_of(server), toolkit, **options)


class Scripted:
    """A model in the program itself: what it says, one after another, as texts, messages or whole chunks.

    `messages`, `tools` and `options` are those of each request; `usage` is what each response reports.
    """

    def __init__(self, *said: Any, forever: Any = None, usage: Any = ..., **attributes: Any) -> None:
        self._said = list(said)
        self._forever = forever
        self._usage = {"prompt_tokens": 10, "completion_tokens": 5} if usage is ... else usage
        self.messages: list[list[dict[str, Any]]] = []
        self.tools: list[list[Any]] = []
        self.options: list[dict[str, Any]] = []
        vars(self).update(attributes)

    async def stream(self, messages: list[Any], tools: list[Any], **options: Any) -> AsyncIterator[Any]:
        self.messages.append(list(messages))
        self.tools.append(list(tools))
        self.options.append(options)
        said = self._said.pop(0) if self._said else self._forever
        assert said is not None, "the script is over"
        message = {"content": said} if isinstance(said, str) else said
        whole = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": self._usage}
        yield message if "choices" in message else whole


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A message with these calls."""
    functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in named]
    made = [{"id": f"c{n}", "type": "function", "function": each} for n, each in enumerate(functions)]
    return {"content": None, "tool_calls": made}


def keep(store: ConversationStore, *records: dict[str, Any], session_id: str | None = None) -> None:
    """Add to a conversation whatever it holds."""
    store.append(session_id, records, len(store.load(session_id)))


def half_said(finish: str) -> Raw:
    """An answer that ends for that reason."""
    begun = f'{{"delta": {{"content": "The first half"}}, "finish_reason": "{finish}"}}'
    return Raw(f'data: {{"choices": [{begun}]}}\n\ndata: [DONE]\n\n')


def events_of(agent: Agent, message: Any = None, **options: Any) -> list[Event]:
    """Everything that an agent does on its way to an answer."""

    async def collect() -> list[Event]:
        return [event async for event in agent.stream(message, **options)]

    return asyncio.run(collect())


async def until(come: Callable[[], bool]) -> None:
    """Wait until something has come about, on whatever thread."""
    async with asyncio.timeout(30):
        while not come():  # noqa: ASYNC110 - an event of a thread cannot be awaited
            await asyncio.sleep(0.005)


def faults_of(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a strict provider would refuse: to each call one tool message, in the order of the calls, and no others."""
    faults: list[str] = []
    owed: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            expected = owed.pop(0) if owed else None
            if message["tool_call_id"] != expected:
                faults.append(f"message {number} answers {message['tool_call_id']}, not {expected}")
            if not message["content"]:
                faults.append(f"message {number} is empty")
            continue
        if owed:
            faults.append(f"message {number} comes before the answers of {owed}")
        owed = [call["id"] for call in message.get("tool_calls") or ()]
    return faults + ([f"no answers of {owed}"] if owed else [])
