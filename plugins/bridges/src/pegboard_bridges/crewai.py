"""CrewAI: tools have a pydantic model of their arguments, and give text.

The model has to give the schema only: it has no fields and checks nothing, for Pegboard checks the arguments. CrewAI
caches results and does not call a tool again with the same arguments; tools of a toolkit are always called. Progress
goes to its event bus, as `BoardProgress`; it has no approval of single calls that waits for an answer.
"""

from __future__ import annotations

from typing import Any

from pegboard import Chunk, Session, ToolCall, Toolkit
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, failed, given_arguments
from pegboard_bridges._outwards import OfferedTools, progress_of, text_of

with needs("crewai"):
    from crewai.events import crewai_event_bus
    from crewai.events.base_events import BaseEvent
    from crewai.tools import BaseTool
    from crewai.tools.tool_failure import ToolFailure
    from pydantic import BaseModel, ConfigDict

__all__ = ["BoardProgress", "BoardTool", "from_crewai", "to_crewai"]


class BoardProgress(BaseEvent):
    """Progress of a running tool; `done` of `total` if the tool reports them."""

    type: str = "board_progress"
    call_id: str = ""
    tool: str = ""
    text: str = ""
    done: float | None = None
    total: float | None = None


class _Arguments(BaseModel):
    """Takes any arguments."""

    model_config = ConfigDict(extra="allow")


def _never(_arguments: Any = None, _result: Any = None) -> bool:
    return False


class BoardTool(BaseTool):
    """A tool of the toolkit."""

    offered: Any = None

    def _run(self, /, **arguments: Any) -> Any:
        result = self.offered.call_sync(self.name, arguments, on_chunk=self._tell)
        return ToolFailure(message=text_of(result)) if result.is_error else text_of(result)

    async def _arun(self, /, **arguments: Any) -> Any:
        result = await self.offered.call(self.name, arguments, on_chunk=self._tell)
        return ToolFailure(message=text_of(result)) if result.is_error else text_of(result)

    def _tell(self, chunk: Chunk) -> None:
        crewai_event_bus.emit(self, event=BoardProgress(**progress_of(chunk)))


def to_crewai(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for `Agent(tools=...)`.

    CrewAI shows names in lower case, and makes every parameter required: it asks providers for strict schemas.
    """
    offered = OfferedTools(source)
    return [
        BoardTool(
            name=tool.name,
            description=tool.description,
            args_schema=_arguments(tool),
            cache_function=_never,
            offered=offered,
        )
        for tool in offered.tools
    ]


def _arguments(tool: OurTool) -> type[BaseModel]:
    def model_json_schema(cls: type[BaseModel], *_: Any, **__: Any) -> dict[str, Any]:
        return tool.json_schema()  # a copy, which CrewAI changes

    return type(f"{tool.name}_arguments", (_Arguments,), {"model_json_schema": classmethod(model_json_schema)})


def from_crewai(tools: Any) -> ExternalTools:
    """The tools of a `BaseTool` or a list of such. Raises `NotNativeError` for anything else."""
    return external("crewai", tools, {BaseTool: _external})


def _external(tool: BaseTool) -> ExternalTool:
    def call(call: ToolCall) -> Any:
        value = tool.run(**given_arguments(call))
        return failed(call, value.as_agent_message()) if isinstance(value, ToolFailure) else value

    return ExternalTool(tool.name, tool.description, tool.args_schema.model_json_schema(), call, ("crewai",))
