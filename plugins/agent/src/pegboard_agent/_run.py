"""Runs: one message to an agent, and all steps to its answer."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from inspect import isawaitable
from typing import Any, Final, Protocol, final

from pegboard import PegboardError, Status
from pegboard_agent._answer import Answer, WrongAnswerError
from pegboard_agent._approval import announced
from pegboard_agent._conversation import Conversation, Emit
from pegboard_agent._events import ApprovalNeeded, CallEnded, Parked, ReasoningDelta, Stopped, TextDelta
from pegboard_agent._events import Final as FinalEvent
from pegboard_agent._json_schema import NO_STEP, step_in
from pegboard_agent._limits import Limits, Meter
from pegboard_agent._messages import CUT_OFF, SENT_BACK, Message
from pegboard_agent._models.model import ChatModel, Reply, streamed, why_it_failed
from pegboard_agent._models.provider import PROVIDER
from pegboard_agent._request import Choice, Request, request_for, request_in_words
from pegboard_agent._usage import reported

__all__ = ["AgentStoppedError", "Run"]

MOST_WRONG_ANSWERS: Final = 2
ALONE: Final = "call this alone, when you have read the results of the other calls"
NO_MORE_STEPS: Final = "You may call no more tools. Answer now, with what you know."
NO_ANSWER: Final = "(No answer: the model may call no more tools, and had nothing to say.)"
WENT_ON: Final = "the answer of this call has not come; the user went on without it"
NOT_RUN: Final = "this call did not run: the run was stopped at its limit"


class AgentStoppedError(PegboardError):
    """An agent has no answer; the message says why."""


class RunningAgent(Protocol):
    """The part of an agent that a run needs."""

    name: str
    model: ChatModel
    system_prompt: Any
    max_iterations: int
    limits: Limits
    first_tool_choice: Choice
    tool_protocol: Any
    output: Any
    _answer: Answer | None
    """The answer that the model must give, if not just any text."""


@final
class Run:
    """One run of an agent: a message, and all steps to its answer. `emit` gets each event."""

    def __init__(self, agent: RunningAgent, conversation: Conversation, context: Any, emit: Emit) -> None:
        self._agent = agent
        self._conversation = conversation
        self._context = context
        self._emit = emit
        self._native = agent.tool_protocol == "native"
        self._answer_name: str | None = None  # set if the answer has to be a call
        self._has_called = False  # since the user's last message
        caller = conversation.caller
        self._meter = conversation.meter = Meter(agent.limits, None if caller is None else caller.meter)
        self._prompt = ""
        self._wrong_answers = 0

    async def answer_to(self, message: dict[str, Any] | None) -> Message:
        """The answer, or a message about calls that wait or a limit that is reached.

        Raises `AgentStoppedError` if there is no answer.
        """
        seconds = self._agent.limits.seconds
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                with announced(self._conversation.session, lambda request: self._emit(ApprovalNeeded(request))):
                    return await self._loop(message)
        except AgentStoppedError as stop:
            self._emit(Stopped(str(stop), stop.__cause__))
            raise
        except TimeoutError:
            if not deadline.expired():
                raise
            return self._stopped(f"limits.seconds: no answer within {seconds:g} s")

    async def _loop(self, message: dict[str, Any] | None) -> Message:
        """Send the conversation to the model and run its calls until there is an answer."""
        conversation, model, most = self._conversation, self._agent.model, self._agent.max_iterations
        self._prompt = await self._system_prompt()
        waiting = await conversation.perform(self._context, self._emit, self._meter)
        if message is not None:
            conversation.refuse(WENT_ON)
            conversation.add(message)
        elif waiting:
            return self._ended(waiting, self._meter.reached)
        self._has_called = message is None
        if not conversation.goes_on:
            raise AgentStoppedError(f"{conversation} has nothing to go on with; call the agent with a message")
        choice = "auto" if message is None else self._agent.first_tool_choice
        connected = getattr(model, "connected", None)  # for a whole run, if it has connections
        async with connected() if connected else nullcontext(model) as model:
            for _ in range(most):
                answer = self._over() or await self._step(await self._ask(model, choice))
                if answer is not None:
                    return answer
                choice = "auto"
            self._emit(Stopped(gave_up := f"max_iterations: no answer after {most} requests to the model"))
            answer = self._over() or await self._step(await self._ask(model, "none", last=True), last=True)
        if answer is None:
            raise AgentStoppedError(gave_up)
        return answer

    async def _ask(self, model: ChatModel, choice: Choice, *, last: bool = False) -> Reply:
        """One response of the model to the conversation so far."""
        messages = await self._conversation.to_send()
        request = self._request(model, choice, messages, last=last)
        self._conversation.keep_shown()
        reply = Reply()
        self._meter.count_request()
        try:
            async with streamed(model, request.messages, request.tools, request.options) as chunks:
                async for chunk in chunks:
                    text, reasoning = reply.feed(chunk)
                    if reasoning:
                        self._emit(ReasoningDelta(reasoning))
                    if text and self._native:
                        self._emit(TextDelta(text))
        except Exception as error:
            raise AgentStoppedError(why_it_failed(error)) from error
        finally:
            self._meter.count(reported(reply.usage))
        return reply

    async def _system_prompt(self) -> str:
        """The system prompt. A function is called once for each conversation, which keeps the result."""
        prompt, conversation = self._agent.system_prompt, self._conversation
        if isinstance(prompt, str):
            return prompt
        if conversation.system_prompt is None:
            text = prompt(conversation.session)
            text = await text if isawaitable(text) else text
            if not isinstance(text, str):
                raise TypeError(f"the function system_prompt gives a text, not {type(text).__name__}")
            conversation.add({"system_prompt": text})
        return conversation.system_prompt or ""

    def _request(self, model: ChatModel, choice: Choice, kept: list[dict[str, Any]], *, last: bool) -> Request:
        agent, session = self._agent, self._conversation.session
        system = {"role": "system", "content": self._prompt}
        messages = [*([system] if self._prompt else []), *kept]
        answer, how = None, ""
        if agent._answer is not None:
            answer = agent._answer.tool_beside({tool.name for tool in session.all_tools})
            self._answer_name = answer.name
            how = agent._answer.how_to_write(answer.name) if self._native else ""
        if last:
            messages.append({"role": "user", "content": f"{NO_MORE_STEPS}{how}"})
        try:
            if self._native or answer is None:
                return request_for(model, session, answer, choice, messages)
            return request_in_words(session, answer, choice, messages)
        except PegboardError as error:  # an invalid choice, or an unknown dialect
            raise AgentStoppedError(str(error)) from error

    async def _step(self, reply: Reply, *, last: bool = False) -> Message | None:
        """Run the calls of a response, or return its answer. Calls beside the `last` answer do not run."""
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
            text = message["content"] or (NO_ANSWER if last else "")
            words = {name: value for name, value in message.items() if name != "tool_calls"} | {"content": text}
            return await self._answered(words, text, in_words=True, is_cut_off=reply.is_at_its_limit)
        self._has_called = True
        self._conversation.add({**message, **({CUT_OFF: True} if is_cut else {})})
        if answers and not is_cut:
            self._conversation.refuse(ALONE, answers)
        if not is_cut and (reason := self._meter.reached):
            return self._stopped(reason)
        waiting = await self._conversation.perform(self._context, self._emit, self._meter)
        return self._ended(waiting, self._meter.reached) if waiting else None

    def _over(self) -> Message | None:
        """The message that ends the run, if a limit is reached; None if not."""
        return None if (reason := self._meter.reached) is None else self._stopped(reason)

    def _stopped(self, reason: str) -> Message:
        """End the run at a limit: calls that are owed an answer do not run, except those that wait outside of it."""
        owed = self._conversation.owed()
        waiting = {number: call.id for number, call in owed.items() if call.status is Status.SUSPENDED}
        for result in self._conversation.refuse(NOT_RUN, sorted(owed.keys() - waiting.keys()), Status.DENIED):
            self._emit(CallEnded(result))
        return self._ended(tuple(waiting.values()), reason)

    def _ended(self, waiting: tuple[str, ...], reason: str | None) -> Message:
        """The message of a run that ends without an answer."""
        if waiting:
            self._emit(Parked(waiting))
        if reason is not None:
            self._emit(Stopped(reason))
        usage = self._meter.usage
        return Message("assistant", "", self._agent.name, parked=waiting, stopped=reason, usage=usage)

    async def _answered(
        self, message: dict[str, Any], reply: str, *, in_words: bool = False, is_cut_off: bool = False
    ) -> Message | None:
        """The answer; None if it is not of the agent's `output` type and the model has to answer again."""
        text, data = reply, None
        if self._agent._answer is not None:
            try:
                text, data = self._agent._answer.read(reply, in_words=in_words)
            except WrongAnswerError as error:
                self._send_back(message, str(error))
                return None
            if text and not (in_words and self._native):
                self._emit(TextDelta(text))
        # Reasoning is kept if the turn has calls, and data of the provider only with the very text that it belongs to.
        members = [*(["reasoning_content"] if self._has_called else []), *([PROVIDER] if text == reply else [])]
        kept = {name: message[name] for name in members if name in message}
        self._conversation.add({"role": "assistant", "content": text, **kept})
        data = None if self._agent.output is None else data
        name, usage = self._agent.name, self._meter.usage
        answer = Message("assistant", text, name, data=data, usage=usage, is_cut_off=is_cut_off)
        await self._conversation.write()  # an answer is stored before its event
        self._emit(FinalEvent(answer))
        return answer

    def _send_back(self, message: dict[str, Any], reason: str) -> None:
        """Send the model the reason why its answer is wrong. Raises `AgentStoppedError` after too many of them."""
        self._conversation.add(message)
        if not self._conversation.refuse(reason):
            how = f"\nAnswer by calling {self._answer_name}." if self._native else ""
            self._conversation.add({"role": "user", "content": f"Error: {reason}{how}", SENT_BACK: True})
        self._wrong_answers += 1
        if self._wrong_answers > MOST_WRONG_ANSWERS:
            raise AgentStoppedError(f"the answer was wrong {self._wrong_answers} times: {reason}")
