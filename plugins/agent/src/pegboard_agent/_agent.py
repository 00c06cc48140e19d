"""Agents: a model, a toolkit, and the loop between them."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Literal, TypeAlias, final

from attrs import define, field

from pegboard import Emitter, ExecutionPolicy, PegboardError, Session, ToolCall, ToolError, Toolkit, tool
from pegboard_agent._answer import FINAL_ANSWER, Answer, WrongAnswerError
from pegboard_agent._conversation import Conversation, Emit
from pegboard_agent._conversations import Conversations
from pegboard_agent._events import Event, Final, Parked, Stopped, TextDelta
from pegboard_agent._json_schema import NO_STEP, in_words, step_in
from pegboard_agent._messages import CUT_OFF, Message
from pegboard_agent._model import ChatModel, Reply, streamed, why_it_failed
from pegboard_agent._stores.memory import Memory
from pegboard_agent._stores.protocol import ConversationStore
from pegboard_agent._sub_agent import Begun, caller_of, report, tool_name

__all__ = ["Agent", "AgentStoppedError"]

MOST_WRONG_ANSWERS = 2
ALONE = "call this alone, when you have read the results of the other calls"
NO_MORE_STEPS = "You may call no more tools. Answer now, with what you know."
NO_ANSWER = "(No answer: the model may call no more tools, and had nothing to say.)"
WENT_ON = "the answer of this call has not come; the user went on without it"


Said: TypeAlias = str | Message | None
"""What an agent is asked; None: nothing new, go on."""


class AgentStoppedError(PegboardError):
    """An agent has no answer; the message says why."""


def _or_empty(toolkit: Toolkit | Session | None) -> Toolkit | Session:
    return Toolkit(plugins=()) if toolkit is None else toolkit


def _or_own(memory: ConversationStore | None) -> ConversationStore:
    return Memory() if memory is None else memory


def _is(kind: type | tuple[type, ...], example: str) -> Callable[[Any, Any, Any], None]:
    """A validator: what is given by mistake is named at once, and not in the middle of a conversation."""

    def validate(agent: Any, attribute: Any, given: Any) -> None:
        if not isinstance(given, kind):
            raise TypeError(f"{attribute.name} is such as {example}, not {type(given).__name__}")

    return validate


def _most(agent: Any, attribute: Any, given: Any) -> None:
    if type(given) is not int or given < 1:
        raise ValueError(f"max_iterations must be a whole number >= 1, not {given!r}")


def _known(agent: Any, attribute: Any, given: Any) -> None:
    if given not in ("native", "json_schema"):
        raise ValueError(f'tool_protocol is "native" or "json_schema", not {given!r}')


@final
@define(eq=False, repr=False)
class Agent:
    """Answers messages with a model that may call the tools of a toolkit, a session or a view.

    `max_iterations` is how often the model may ask for calls before it has to answer without. `context` and `approver`
    are as in `toolkit.session`. `memory` is a `ConversationStore`: `Memory()`, `Memory(path)`, `PostgresMemory(url)`.
    With `output=`, a type, the answer's `data` is of it. `tool_protocol="json_schema"` is for small models, and servers
    that know no tools.

    Raises `RegistrationError` for an output type without a mapping, ValueError for a
    protocol or a number that does not exist, TypeError for what is no model, toolkit or memory.
    """

    name: str
    model: ChatModel = field(validator=_is(ChatModel, 'OpenAIChat("...")'))
    toolkit: Toolkit | Session = field(
        default=None, converter=_or_empty, validator=_is((Toolkit, Session), "Toolkit()")
    )
    system_prompt: str = field(default="", kw_only=True)
    max_iterations: int = field(default=10, kw_only=True, validator=_most)
    context: Any = field(default=(), kw_only=True)
    memory: ConversationStore = field(
        default=None, kw_only=True, converter=_or_own, validator=_is(ConversationStore, "Memory(path)")
    )
    output: Any = field(default=None, kw_only=True)
    tool_protocol: Literal["native", "json_schema"] = field(default="native", kw_only=True, validator=_known)
    approver: Callable[..., Any] | None = field(default=None, kw_only=True)
    _answer: Answer | None = field(init=False)
    """What the model has to answer with, if it is more than any text."""
    _begun: Begun = field(init=False)
    _conversations: Conversations = field(init=False)

    def __attrs_post_init__(self) -> None:
        toolkit = self.toolkit.toolkit
        output = str if self.output is None and self.tool_protocol == "json_schema" else self.output
        self._answer = None if output is None else Answer(output, toolkit.types)
        self._begun = Begun(self.name)
        self._conversations = Conversations(self.memory, self._new_session)

    def _new_session(self) -> Session:
        return self.toolkit.session(context=self.context, approver=self.approver, agent=self)

    def _conversation(self, session_id: str | None) -> Conversation:
        return self._conversations[session_id]

    def owed(self, session_id: str | None = None) -> tuple[str, ...]:
        """The ids of calls that have no answer yet: of those that wait for one, or because a program ended.

        It reads the store of the conversations, and raises what that raises.
        """
        conversation = self._conversation(session_id)
        conversation.refresh()
        return tuple(call.id for call in conversation.owed().values())

    # Asking ----------------------------------------------------------------------------------------------------

    async def call(self, message: Said = None, *, session_id: str | None = None, context: Any = ()) -> Message:
        """The answer to `message`; without one go on where calls were waiting. `session_id` names the conversation.

        `parked` of the answer names calls that wait: then it is none yet. Raises `AgentStoppedError` for no answer, and
        without a message where there is nothing to go on with.
        """
        return await self._run(message, self._conversation(session_id).turn(), context, lambda event: None)

    def call_sync(self, message: Said = None, *, session_id: str | None = None, context: Any = ()) -> Message:
        """`call` for plain code; inside a running event loop it blocks that loop."""

        def run() -> Message:
            return asyncio.run(self.call(message, session_id=session_id, context=context))

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, run).result()

    async def stream(
        self, message: Said = None, *, session_id: str | None = None, context: Any = ()
    ) -> AsyncGenerator[Event, None]:
        """Everything on the way to the answer, as it happens. Leaving early cancels the rest."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        turn = self._conversation(session_id).turn()
        running = asyncio.create_task(self._run(message, turn, context, events.put_nowait))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            with suppress(AgentStoppedError):  # an event has told why
                await running
        finally:
            running.cancel()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # raised above, or the caller no longer waits

    async def _run(
        self, message: Said, turn: AbstractAsyncContextManager[Conversation], context: Any, emit: Emit
    ) -> Message:
        said = Message("user", message) if isinstance(message, str) else message
        if said is not None and not isinstance(said, Message):
            raise TypeError(f"a message is a text or a Message, not {type(said).__name__}")
        sent = None if said is None else said.to_openai()
        async with turn as conversation:
            return await Run(self, conversation, context, emit).answer_to(sent)

    # As a tool -------------------------------------------------------------------------------------------------

    def as_tool(self, *, name: str | None = None, description: str | None = None) -> Callable[..., Any]:
        """A tool that asks this agent; context, approver and listeners are those of its call."""

        async def ask(
            message: str, call: ToolCall, session: Session, emitter: Emitter, session_id: str | None = None
        ) -> str:
            """Ask.

            Args:
                message: What to ask or to tell it; it knows nothing else of this conversation
                session_id: To go on with an earlier conversation: the session_id of its answers
            """
            if not message.strip():
                raise ToolError("message is empty; say what to ask")
            caller = caller_of(call)
            own_id = self._begun.id_for(caller, session, session_id)
            conversation = self._conversation(own_id)
            turn = conversation.turn(caller, session.approver)
            context = call.context.within(self.context).within((self, conversation))
            tell = partial(report, emitter=emitter, agent=self.name)
            try:
                answer = await self._run(message, turn, context, tell)
            except AgentStoppedError as error:
                raise ToolError(f"session_id: {own_id}\n\n{self.name} stopped: {error}") from error
            text = answer.text or "(No response)"
            if answer.is_cut_off:
                text = f"{text}\n\n(The answer was cut off at its length limit; ask for the rest with this session_id.)"
            if answer.parked:
                waiting = f"{self.name} waits for the answers of {', '.join(answer.parked)}"
                text = f"(No response yet: {waiting}. Ask it again later, with this session_id.)"
            return f"session_id: {own_id}\n\n{text}"

        about = description or f"Ask the agent {self.name!r}. It has tools and a memory of its own."
        return tool(name=name or tool_name(self.name), description=about, policy=ExecutionPolicy(timeout=None))(ask)

    def tools(self) -> list[Callable[..., Any]]:
        """What `toolkit.register(agent)` registers."""
        return [self.as_tool()]

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {self.model!r}, {len(self.toolkit)} tools)"


@final
class Run:
    """One run of an agent: a message, and everything that it takes to answer it. `emit` is told all of it."""

    def __init__(self, agent: Agent, conversation: Conversation, context: Any, emit: Emit) -> None:
        self._agent = agent
        self._conversation = conversation
        self._context = context
        self._emit = emit
        self._native = agent.tool_protocol == "native"
        self._answer_name: str | None = None  # if it has to be given by a call
        self._has_called = False  # in this turn of the user's
        self._usage: Counter[str] = Counter()
        self._wrong_answers = 0

    async def answer_to(self, message: dict[str, Any] | None) -> Message:
        """The loop: ask the model, make its calls, ask again. Raises `AgentStoppedError` if that leads to no answer."""
        waiting = await self._conversation.perform(self._context, self._emit)
        if message is not None:
            self._conversation.refuse(WENT_ON)
            self._conversation.add(message)
        elif waiting:
            return self._parked(waiting)
        self._has_called = message is None
        try:
            if not self._conversation.goes_on:
                nothing = f"{self._conversation} has nothing to go on with; call the agent with a message"
                raise AgentStoppedError(nothing)
            model, most = self._agent.model, self._agent.max_iterations
            connected = getattr(model, "connected", None)  # for a whole run, if it has connections
            async with connected() if connected else nullcontext(model) as model:
                for _ in range(most):
                    answer = await self._step(await self._ask(model))
                    if answer is not None:
                        return answer
                gave_up = Stopped(f"max_iterations: no answer after {most} requests to the model")
                self._emit(gave_up)
                answer = await self._step(await self._ask(model, last=True), last=True)
        except AgentStoppedError as stop:
            self._emit(Stopped(str(stop), stop.__cause__))
            raise
        if answer is None:
            raise AgentStoppedError(gave_up.reason)
        return answer

    async def _ask(self, model: ChatModel, *, last: bool = False) -> Reply:
        """One response of the model, to the conversation so far; for the `last` one there are no tools any more."""
        agent, conversation = self._agent, self._conversation
        definitions = [] if last else conversation.dialect.tools()  # of now: groups may have been switched
        if agent._answer is not None:
            self._answer_name = FINAL_ANSWER  # or that with underscores, where a tool has the name
            while any(each["function"]["name"] == self._answer_name for each in definitions):
                self._answer_name += "_"
            definitions = [*definitions, agent._answer.definition(self._answer_name)]
        system = {"role": "system", "content": agent.system_prompt}
        messages = [*([system] if agent.system_prompt else []), *await conversation.to_send()]
        if last:
            messages.append({"role": "user", "content": NO_MORE_STEPS})
        options: dict[str, Any] = {}
        if not self._native:
            messages, options = in_words(messages, definitions)
            definitions = []
        reply = Reply()
        try:
            async with streamed(model, messages, definitions, options) as chunks:
                async for chunk in chunks:
                    text = reply.feed(chunk)
                    if text and self._native:
                        self._emit(TextDelta(text))
        except Exception as error:
            raise AgentStoppedError(why_it_failed(error)) from error
        self._usage.update({key: count for key, count in reply.usage.items() if type(count) is int})
        return reply

    async def _step(self, reply: Reply, *, last: bool = False) -> Message | None:
        """Do what the model asks for; the answer, if it is that. Calls beside the `last` answer do not run."""
        message = reply.message(self._conversation.dialect)
        if not self._native:
            step = step_in(reply.text)
            if step is None and not last:
                self._send_back(message, NO_STEP)
                return None
            message = step or message
        calls = message.get("tool_calls", [])
        if reply.finish == "content_filter" and not calls and not reply.text:
            raise AgentStoppedError("the server's content filter held the answer back")
        answers = [n for n, call in enumerate(calls) if call["function"]["name"] == self._answer_name]
        is_cut = reply.cuts(calls)
        if answers and (last or (len(answers) == len(calls) and not is_cut)):
            return await self._answered(message, calls[answers[0]]["function"]["arguments"])
        if last or not calls:
            said = message["content"] or (NO_ANSWER if last else "")
            words = {name: value for name, value in message.items() if name != "tool_calls"} | {"content": said}
            return await self._answered(words, said, in_words=True, is_cut_off=reply.is_at_its_limit)
        self._has_called = True
        self._conversation.add({**message, **({CUT_OFF: True} if is_cut else {})})
        if answers and not is_cut:
            self._conversation.refuse(ALONE, answers)
        waiting = await self._conversation.perform(self._context, self._emit)
        return self._parked(waiting) if waiting else None

    def _parked(self, waiting: tuple[str, ...]) -> Message:
        self._emit(Parked(waiting))
        return Message("assistant", "", self._agent.name, parked=waiting)

    async def _answered(
        self, message: dict[str, Any], said: str, *, in_words: bool = False, is_cut_off: bool = False
    ) -> Message | None:
        """The answer, unless it has to go back because it has not the type that was asked for."""
        text, data = said, None
        if self._agent._answer is not None:
            try:
                text, data = self._agent._answer.read(said, in_words=in_words)
            except WrongAnswerError as error:
                self._send_back(message, str(error))
                return None
            if text and not (in_words and self._native):
                self._emit(TextDelta(text))
        reasoning = "reasoning_content"  # goes back with the whole turn, where that has calls
        thought = {reasoning: message[reasoning]} if self._has_called and reasoning in message else {}
        self._conversation.add({"role": "assistant", "content": text, **thought})
        data = None if self._agent.output is None else data
        name, usage = self._agent.name, dict(self._usage)
        answer = Message("assistant", text, name, data=data, usage=usage, is_cut_off=is_cut_off)
        await self._conversation.write()
        self._emit(Final(answer))
        return answer

    def _send_back(self, message: dict[str, Any], reason: str) -> None:
        """Tell the model what is wrong with its answer. Raises `AgentStoppedError` if it was told often enough."""
        self._conversation.add(message)
        if not self._conversation.refuse(reason):
            how = f"\nAnswer by calling {self._answer_name}." if self._native else ""
            self._conversation.add({"role": "user", "content": f"Error: {reason}{how}"})
        self._wrong_answers += 1
        if self._wrong_answers > MOST_WRONG_ANSWERS:
            raise AgentStoppedError(f"the answer was wrong {self._wrong_answers} times: {reason}")
