"""The command `pegboard chat`."""

from __future__ import annotations

import asyncio
import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import AbstractContextManager, aclosing, nullcontext, redirect_stdout
from importlib import import_module
from typing import Any, TextIO

from pegboard import Approval, ApprovalRequest, PegboardError, Toolkit
from pegboard.inspection import spelled_out
from pegboard_agent._agent import Agent
from pegboard_agent._events import (
    CallEnded,
    CallStarted,
    ChunkEvent,
    Event,
    Final,
    Parked,
    ReasoningDelta,
    Stopped,
    TextDelta,
)
from pegboard_agent._limits import Limits
from pegboard_agent._stores.memory import Memory

__all__ = ["run"]

LONGEST_LINE = 500
MODELS = {
    "anthropic": "_models.anthropic.AnthropicChat",
    "gemini": "_models.gemini.GeminiChat",
    "openai": "_models.openai.OpenAIChat",
    "responses": "_models.responses.OpenAIResponses",
}


def run(arguments: list[str]) -> int:
    """Answer each line of standard input. Returns 0 at its end, 1 for a server that fails, 130 for Ctrl-C."""
    options = _parser().parse_args(arguments)
    out = sys.stdout
    try:
        with redirect_stdout(sys.stderr), Toolkit() as toolkit:  # output of plugins and tools is not the answer
            return 0 if _talk(options, toolkit, out) else 1
    except KeyboardInterrupt:
        _say("pegboard chat: interrupted")
        return 130
    except OSError as error:
        _say(f"pegboard chat: {error if error.filename is None else f'{error.filename}: {error.strerror}'}")
        return 1
    except (PegboardError, ValueError) as error:
        _say(f"pegboard chat: {error}")
        return 1


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="pegboard chat",
        description="Talk to a model that has the toolkit's tools: each line is a message. Answers go to standard "
        "output, all else to standard error. The key comes from the variable that the provider's own client reads, "
        "such as OPENAI_API_KEY or ANTHROPIC_API_KEY, for DashScope's addresses from DASHSCOPE_API_KEY.",
    )
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="the model, by the server's name for it")
    add("--provider", default="openai", choices=MODELS, help="how the server is spoken to; else %(default)s")
    add("--base-url", metavar="URL", help="the server, up to and with the version; else the provider's own")
    add("--system", default="", metavar="TEXT", help="what the model is told first")
    add("--group", action="append", default=[], metavar="NAMES", help="activate these groups of tools too: a,b")
    add("--max-requests", type=int, metavar="N", help="ask the model at most so often for one message")
    add("--max-tokens", type=int, metavar="N", help="stop a message that has taken so many tokens")
    add("--session", metavar="FILE", help="keep the conversation in this file, and go on with it")
    return parser


def _talk(options: Namespace, toolkit: Toolkit, out: TextIO) -> bool:
    """Answer the lines of the input until its end; False as soon as there is no answer."""
    for problem in toolkit.problems:
        _say(f"pegboard chat: {problem}")
    _activate(toolkit, [name.strip() for names in options.group for name in names.split(",") if name.strip()])
    server = {} if options.base_url is None else {"base_url": options.base_url}
    module, _, name = MODELS[options.provider].rpartition(".")
    model = getattr(import_module(f"{__package__}.{module}"), name)(options.model, **server)
    prompt, approver = ("> ", _approve) if sys.stdin.isatty() else ("", None)
    limits = Limits(requests=options.max_requests, tokens=options.max_tokens)
    memory, system = Memory(options.session), options.system
    agent = Agent("chat", model, toolkit, system_prompt=system, memory=memory, approver=approver, limits=limits)
    answered = not agent.owed() or asyncio.run(_answer(agent, None, out))  # the last program ended during a run
    while answered and (line := _read(prompt)):
        answered = not line.strip() or asyncio.run(_answer(agent, line.strip(), out))
    return answered


def _activate(toolkit: Toolkit, names: Iterable[str]) -> None:
    """Activate groups. A group that only tools of packs name is made. Raises ValueError for any other name."""
    made = {group.name for group in toolkit.groups}
    named = {group for tool in toolkit.all_tools for group in tool.options.groups}
    for name in names:
        if name not in made | named:
            known = ", ".join(sorted(made | named))
            raise ValueError(f"there is no group {name!r}. {f'Groups: {known}.' if known else 'There are no groups.'}")
        if name not in made:
            toolkit.create_group(name)
    toolkit.update_groups(names, True)


async def _answer(agent: Agent, message: str | None, out: TextIO) -> bool:
    """Show a run. At a terminal Ctrl-C declines the form that is asked there, and otherwise ends the command."""
    with _interrupts_questions():
        return await _shown(agent, message, out)


def _interrupts_questions() -> AbstractContextManager[None]:
    try:
        from pegboard_cli import interrupts_questions  # whose command this is
    except ImportError:
        return nullcontext()
    return interrupts_questions()


async def _shown(agent: Agent, message: str | None, out: TextIO) -> bool:
    """Show a run: on a terminal its events as they come, in a pipe only the answer. False if there is no answer."""
    live = out.isatty()
    ended = midline = False
    thought = ""
    async with aclosing(agent.stream(message)) as events:
        async for event in events:
            ended = isinstance(event, (Final, Parked))
            if isinstance(event, ReasoningDelta):
                thought += event.text
                continue
            if thought:
                _say("\n" * midline + f"[thought] {' '.join(thought.split())}"[:LONGEST_LINE])
                thought, midline = "", False
            if isinstance(event, TextDelta):
                out.write(spelled_out(event.text) if live else "")
                midline = live
            elif isinstance(event, Final):
                out.write("\n" if live else f"{event.message.text}\n")
                midline = False
            if line := " ".join(_line_about(event).split()):
                _say("\n" * midline + line[:LONGEST_LINE])
                midline = False
            out.flush()
    return ended


def _line_about(event: Event) -> str:
    """The line about an event beside the answer; empty if there is none."""
    match event:
        case CallStarted(call):
            return f"[{call.name} {_as_json(call.arguments)}]"
        case ChunkEvent(chunk):
            return chunk.text
        case CallEnded(result):
            return f"[{result.name}: {result.status.value}] {result.text}"
        case Parked(call_ids):
            return f"[waiting for the answers of {', '.join(call_ids)}]"
        case Final(message) if message.is_cut_off:
            return "[the answer was cut off at the server's length limit]"
        case Stopped(reason):
            return f"pegboard chat: {reason}"
    return ""


def _approve(request: ApprovalRequest) -> bool | Approval:
    why = f": {request.reason}" if request.reason else ""
    what = "asks for approval" if request.form is None else "asks"
    _say(f"{request.tool.name} {_as_json(dict(request.arguments))} {what}{why}")
    if request.form is not None:
        from pegboard_cli import ask_form

        return ask_form(request.form)
    return _read("Run it? (y/n) ").strip().lower() in ("y", "yes")


def _as_json(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, default=str)


def _read(prompt: str) -> str:
    _say(prompt, end="")
    return sys.stdin.readline()


def _say(line: str, end: str = "\n") -> None:
    sys.stderr.write(spelled_out(line) + end)
    sys.stderr.flush()
