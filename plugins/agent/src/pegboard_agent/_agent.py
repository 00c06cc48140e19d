"""Agents: a model, a toolkit, and the loop between them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Literal, TypeAlias, final

from attrs import define, field

from pegboard import Emitter, ExecutionPolicy, Session, ToolCall, ToolError, Toolkit, tool
from pegboard_agent._answer import Answer
from pegboard_agent._approval import approver_of
from pegboard_agent._conversation import Conversation, Emit
from pegboard_agent._conversations import Conversations
from pegboard_agent._events import Event
from pegboard_agent._limits import Limits
from pegboard_agent._messages import Message
from pegboard_agent._models.model import ChatModel
from pegboard_agent._request import Choice
from pegboard_agent._run import AgentStoppedError, Run
from pegboard_agent._stores.memory import Memory
from pegboard_agent._stores.protocol import ConversationStore
from pegboard_agent._sub_agent import Begun, caller_of, report, tool_name

__all__ = ["Agent", "AgentStoppedError"]

AgentInput: TypeAlias = str | Message | None
"""The message to an agent; None: no new message, go on."""


def _or_empty(toolkit: Toolkit | Session | None) -> Toolkit | Session:
    return Toolkit(plugins=()) if toolkit is None else toolkit


def _or_own(memory: ConversationStore | None) -> ConversationStore:
    return Memory() if memory is None else memory


def _or_no_limits(limits: Limits | None) -> Limits:
    return Limits() if limits is None else limits


def _is(kind: type | tuple[type, ...], example: str) -> Callable[[Any, Any, Any], None]:
    """A validator: a value of the wrong type is reported at once, and not in the middle of a conversation."""

    def validate(agent: Any, attribute: Any, given: Any) -> None:
        if not isinstance(given, kind):
            raise TypeError(f"{attribute.name} is such as {example}, not {type(given).__name__}")

    return validate


def _most(agent: Any, attribute: Any, given: Any) -> None:
    if type(given) is not int or given < 1:
        raise ValueError(f"max_iterations must be a whole number >= 1, not {given!r}")


def _prompt(agent: Any, attribute: Any, given: Any) -> None:
    if not isinstance(given, str) and not callable(given):
        raise TypeError(f"system_prompt is a text, or a function of the session, not {type(given).__name__}")


def _choice(agent: Any, attribute: Any, given: Any) -> None:
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) and name for name in names):
        known = '"auto", "required", "none", the name of a tool or a list of names'
        raise TypeError(f"first_tool_choice is {known}, not {given!r}")


def _known(agent: Any, attribute: Any, given: Any) -> None:
    if given not in ("native", "json_schema"):
        raise ValueError(f'tool_protocol is "native" or "json_schema", not {given!r}')


@final
@define(eq=False, repr=False)
class Agent:
    """Answers messages with a model that may call the tools of a toolkit, a session or a view.

    Raises `RegistrationError` for an output type without a mapping, ValueError for an invalid protocol or number,
    TypeError if the model, the toolkit or the memory is of another kind.

    Args:
        name: Sender of its answers, and name of its tool.
        model: The model that answers, such as `OpenAIChat("...")`.
        toolkit: What the model may call: a toolkit, a session or a view. None for no tools.
        system_prompt: Text that begins every request, or a function of the session, sync or async, that makes it once
            for each conversation.
        max_iterations: How often the model may make calls before it has to answer without.
        context: Objects that tools get by type, as in `toolkit.session`; those of `call(..., context=)` come before
            them.
        memory: Where conversations are kept: `Memory()`, `Memory(path)`, `PostgresMemory(url)` or a `ConversationStore`
            of your own. None: a `Memory()` of its own.
        output: Type of the answer's `data`. None for an answer in text.
        tool_protocol: How calls are written: `"native"`, or `"json_schema"` for small models and for servers without
            support for tools.
        approver: Who decides on calls that need approval. None: the approver of the toolkit.
        limits: How much one run may use. None for no limits.
        first_tool_choice: Tool choice of the first request after a message: `"auto"`, `"required"`, `"none"`, a tool's
            name, or a list of names.
    """

    name: str
    model: ChatModel = field(validator=_is(ChatModel, 'OpenAIChat("...")'))
    toolkit: Toolkit | Session = field(
        default=None, converter=_or_empty, validator=_is((Toolkit, Session), "Toolkit()")
    )
    system_prompt: str | Callable[[Session], Any] = field(default="", kw_only=True, validator=_prompt)
    max_iterations: int = field(default=10, kw_only=True, validator=_most)
    context: Any = field(default=(), kw_only=True)
    memory: ConversationStore = field(
        default=None, kw_only=True, converter=_or_own, validator=_is(ConversationStore, "Memory(path)")
    )
    output: Any = field(default=None, kw_only=True)
    tool_protocol: Literal["native", "json_schema"] = field(default="native", kw_only=True, validator=_known)
    approver: Callable[..., Any] | None = field(default=None, kw_only=True)
    limits: Limits = field(
        default=None, kw_only=True, converter=_or_no_limits, validator=_is(Limits, "Limits(requests=20)")
    )
    first_tool_choice: Choice = field(default="auto", kw_only=True, validator=_choice)
    _answer: Answer | None = field(init=False)
    """The answer that the model must give, if not just any text."""
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
        """The ids of calls that have no answer yet: because they wait for one, or because a program ended.

        It reads the store of the conversations. Exceptions of the store reach the caller.
        """
        conversation = self._conversation(session_id)
        conversation.refresh()
        return tuple(call.id for call in conversation.owed().values())

    # Asking ----------------------------------------------------------------------------------------------------

    async def call(self, message: AgentInput = None, *, session_id: str | None = None, context: Any = ()) -> Message:
        """Answer a message.

        If calls wait, `parked` names them, and the returned message is not yet the answer; `stopped` names the limit
        that ended the run. Raises `AgentStoppedError` if there is no answer, and without a message if nothing waits.

        Args:
            message: Text or a message. None goes on with calls that waited.
            session_id: Name of the conversation. None: the one that has no name.
            context: Objects that tools get by type in this run, before those of the agent.
        """
        return await self._run(message, self._conversation(session_id).turn(), context, lambda event: None)

    def call_sync(self, message: AgentInput = None, *, session_id: str | None = None, context: Any = ()) -> Message:
        """`call` for plain code; inside a running event loop it blocks that loop.

        Args:
            message: Text or a message. None goes on with calls that waited.
            session_id: Name of the conversation. None: the one that has no name.
            context: Objects that tools get by type in this run, before those of the agent.
        """

        def run() -> Message:
            return asyncio.run(self.call(message, session_id=session_id, context=context))

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run()
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(contextvars.copy_context().run, run).result()

    async def stream(
        self, message: AgentInput = None, *, session_id: str | None = None, context: Any = ()
    ) -> AsyncGenerator[Event, None]:
        """The events of a run as they happen, up to the answer. Leaving the loop early cancels the rest.

        Args:
            message: Text or a message. None goes on with calls that waited.
            session_id: Name of the conversation. None: the one that has no name.
            context: Objects that tools get by type in this run, before those of the agent.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        turn = self._conversation(session_id).turn()
        running = asyncio.create_task(self._run(message, turn, context, events.put_nowait))
        running.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            with suppress(AgentStoppedError):  # an event holds the reason
                await running
        finally:
            running.cancel()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()  # raised above, or the caller no longer waits

    async def _run(
        self, message: AgentInput, turn: AbstractAsyncContextManager[Conversation], context: Any, emit: Emit
    ) -> Message:
        given = Message("user", message) if isinstance(message, str) else message
        if given is not None and not isinstance(given, Message):
            raise TypeError(f"a message is a text or a Message, not {type(given).__name__}")
        sent = None if given is None else given.to_openai()
        async with turn as conversation:
            return await Run(self, conversation, context, emit).answer_to(sent)

    # As a tool -------------------------------------------------------------------------------------------------

    def as_tool(self, *, name: str | None = None, description: str | None = None) -> Callable[..., Any]:
        """Make a tool that asks this agent; context, approver and listeners are those of its call.

        Args:
            name: Name of the tool. None: that of the agent.
            description: Description for the model. None names the agent alone.
        """

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
            turn = conversation.turn(caller, approver_of(session))
            context = call.context.within(self.context).within((self, conversation))
            tell = partial(report, emitter=emitter, agent=self.name)
            try:
                answer = await self._run(message, turn, context, tell)
                if answer.stopped is not None:
                    raise AgentStoppedError(answer.stopped)
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
        """The tools that `toolkit.register(agent)` registers."""
        return [self.as_tool()]

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {self.model!r}, {len(self.toolkit)} tools)"
