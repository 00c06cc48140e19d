"""An answer of a given type: the model calls a tool that is never registered; its one parameter is the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Container
from typing import Any, Final, final

from pegboard import Tool, Toolkit, TypeHandler

__all__ = ["Answer", "WrongAnswerError"]

FINAL_ANSWER: Final = "final_answer"
_FENCED: Final = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


class WrongAnswerError(Exception):
    """An answer does not have its type; the message is for the model."""


@final
class Answer:
    """An answer of the type `output`, as a toolkit's `types` map it.

    The parameters of the tool are the members of a record; for any other type there is one parameter, `answer`. Raises
    `RegistrationError` for a type without a mapping.
    """

    def __init__(self, output: Any, types: Any) -> None:
        async def final_answer(answer: Any) -> None:
            """Give the final answer, once you know all that it takes. Call it alone."""

        final_answer.__annotations__["answer"] = output
        self._toolkit = Toolkit(plugins=())
        self._toolkit.register_type(
            TypeHandler(lambda annotation: annotation == output, lambda _, __: types.plan(output))
        )
        (tool,) = self._toolkit.register(final_answer)
        self._is_text = output is str
        parameters = tool.parameters
        members = parameters["properties"]["answer"]
        self._is_record = members.get("type") == "object" and "properties" in members
        if self._is_record:
            definitions = {"$defs": parameters["$defs"]} if "$defs" in parameters else {}
            parameters = {**members, **definitions}
        self._tool = Tool.external(FINAL_ANSWER, tool.description, parameters)

    def tool_beside(self, names: Container[str]) -> Tool:
        """The tool under a name that is not among `names`: underscores are added to its own name if necessary."""
        name = FINAL_ANSWER
        while name in names:
            name += "_"
        return self._tool.evolve(name=name)

    def how_to_write(self, name: str) -> str:
        """How to answer in text if the tool of this name cannot be called; empty if any text is an answer."""
        if self._is_text:
            return ""
        what = "the arguments" if self._is_record else 'the argument "answer"'
        return f" Write nothing but JSON: {what} of {name}."

    def read(self, reply: str, *, in_words: bool) -> tuple[str, Any]:
        """The arguments of the tool, or the text that the model wrote instead: as text, and as a value of the type.

        Raises `WrongAnswerError`.
        """
        if in_words and self._is_text:
            return reply, reply
        fenced = _FENCED.fullmatch(reply)
        try:
            given = json.loads(fenced[1] if fenced else reply)
        except (ValueError, RecursionError):
            raise WrongAnswerError("the answer is no JSON") from None
        if self._is_text and isinstance(given, dict) and len(given) == 1:  # under any name
            (given,) = given.values()
        wrapped = in_words or self._is_record or not isinstance(given, dict)
        call = self._toolkit.prepare(FINAL_ANSWER, {"answer": given} if wrapped else given)
        if call.result is not None:
            reason = call.result.text.removeprefix("Error: ")
            raise WrongAnswerError(reason.replace("\nanswer.", "\n") if self._is_record else reason)
        plain = call.arguments["answer"]
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False), call.typed["answer"]
