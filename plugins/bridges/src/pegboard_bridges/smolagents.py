"""smolagents: tools have `inputs`, a dict of JSON types by name, and a `forward` that gives one value.

The agent checks arguments by these types before it calls the tool, and shows the model a copy of the same dict.
Pegboard shall check the arguments, and explain what is wrong. So `inputs` has the schema when it is copied, and allows
everything when it is read. There is no approval and no progress, and a model is not shown images of tools.
"""

from __future__ import annotations

from typing import Any, Final

from pegboard import ImageBlock, RegistrationError, Session, ToolCall, Toolkit
from pegboard import Tool as OurTool
from pegboard_bridges._frameworks import needs
from pegboard_bridges._inwards import ExternalTool, ExternalTools, external, given_arguments
from pegboard_bridges._outwards import OfferedTools, text_of

with needs("smolagents"):
    from smolagents import Tool, ToolCollection
    from smolagents.agent_types import AgentImage

__all__ = ["BoardTool", "from_smolagents", "to_smolagents"]

OWN: Final = "sanitize_inputs_outputs"
"""What agents pass to every tool beside its arguments: a parameter of that name is shown with an underscore more."""
TYPES: Final = ("string", "boolean", "integer", "number", "array", "object", "null")


class _Lenient(dict[str, Any]):
    """A parameter that the agent takes for an optional one."""

    def get(self, key: str, default: Any = None) -> Any:
        return True if key == "nullable" else super().get(key, default)


class _Inputs(dict[str, Any]):
    """The parameters as the model sees them. They refuse nothing: Pegboard checks the arguments."""

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> Any:
        return {"type": "any", "nullable": True}

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        return {name: dict(shown) for name, shown in self.items()}


class BoardTool(Tool):
    """A tool of the toolkit."""

    skip_forward_signature_validation = True
    name = "board_tool"
    description = ""
    inputs: dict[str, Any] = {}  # noqa: RUF012 - as the framework declares it
    output_type = "any"

    def __init__(self, offered: OfferedTools, tool: OurTool) -> None:
        self.name, self.description, self.inputs = tool.name, tool.description, _inputs(tool)
        self._offered, self._renamed = offered, _shown_as(tool)
        super().__init__()

    def __call__(self, /, *args: Any, **arguments: Any) -> Any:
        """`forward`, which is what agents mean; nothing is changed before or after it."""
        arguments.pop(OWN, None)
        return self.forward(*args, **arguments)

    def forward(self, /, *args: Any, **arguments: Any) -> Any:
        """Call it; a single dict is the arguments too."""
        given = args[0] if args else arguments
        if isinstance(given, dict) and self._renamed in given:
            given = {OWN if name == self._renamed else name: value for name, value in given.items()}
        return text_of(self._offered.call_sync(self.name, given))


def to_smolagents(source: Toolkit | Session) -> list[BoardTool]:
    """The tools that a toolkit, session or view offers now, for `ToolCallingAgent` and `CodeAgent`."""
    offered = OfferedTools(source)
    return [BoardTool(offered, tool) for tool in offered.tools]


def _inputs(tool: OurTool) -> dict[str, Any]:
    try:
        schema = tool.json_schema(refs="inline")
    except RegistrationError:  # a type that contains itself cannot be written out
        schema = dict(tool.parameters)
    required, found = schema.get("required", ()), schema.get("properties", {})
    renamed = _shown_as(tool)
    shown = {renamed if name == OWN else name: _shown(part, name in required) for name, part in found.items()}
    return _Inputs(shown)


def _shown_as(tool: OurTool) -> str:
    """The name under which the model sees a parameter called `OWN`."""
    name = OWN
    while name in tool.parameters.get("properties", {}) or name == OWN:
        name += "_"
    return name


def _shown(part: Any, required: bool) -> dict[str, Any]:
    """A parameter's schema with what every input needs: a type, and a description."""
    members = part.get("anyOf") or part.get("oneOf")
    kinds = part.get("type") or ([each.get("type", "object") for each in members] if members else list(TYPES))
    kept = {key: value for key, value in part.items() if key not in ("anyOf", "oneOf")}
    shown = {**kept, "type": kinds, "description": part.get("description", "")}
    return _Lenient(shown if required else {**shown, "nullable": True})


def from_smolagents(tools: Any) -> ExternalTools:
    """The tools of a `Tool`, a `ToolCollection`, or a list of such. Raises `NotNativeError` for anything else."""
    return external("smolagents", tools, {Tool: _external, ToolCollection: lambda collection: collection.tools})


def _external(tool: Tool) -> ExternalTool:
    def call(call: ToolCall) -> Any:
        value = _called(tool, given_arguments(call))
        return _image(value) if isinstance(value, AgentImage) else value

    shown = {name: dict(part) for name, part in tool.inputs.items()}
    required = [name for name, part in shown.items() if not part.pop("nullable", False)]
    for part in shown.values():
        if part.get("type") in ("any", "image", "audio"):  # no types of JSON
            del part["type"]
    schema = {"type": "object", "properties": shown, "required": required}
    return ExternalTool(tool.name, tool.description, schema, call, ("smolagents",))


def _called(tool: Tool, arguments: dict[str, Any]) -> Any:
    if OWN not in arguments:
        return tool(**arguments)
    if not tool.is_initialized:  # an agent's way in has another meaning for it
        tool.setup()
    return tool.forward(**arguments)


def _image(value: AgentImage) -> ImageBlock:
    from pathlib import Path

    return ImageBlock.from_bytes(Path(value.to_string()).read_bytes(), "image/png")
