"""What comes from a server, as Pegboard's own: content, structured data, errors."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

from pegboard import AudioBlock, Block, Fault, FileBlock, ForeignSchema, ImageBlock, LinkBlock, Status, TextBlock
from pegboard import ToolResult as Result

__all__ = ["WRAPPED", "failure", "result_of"]

WRAPPED: Final = "x-fastmcp-wrap-result"
"""In an output schema: the value is the member `result` of an object, since older clients take nothing but objects."""


def result_of(answer: Any, name: str, returns: ForeignSchema | None, wrapped: bool, origin: dict[str, Any]) -> Result:
    """A server's answer as a result. `origin` says where it comes from, for the program."""
    content = tuple(map(_block, answer.content))
    metadata = {"mcp": _metadata(answer, origin)}
    if answer.is_error:
        text = "\n".join(block.text for block in content if block.text) or "the tool failed and did not say why"
        return Result(
            "", name, Status.ERROR, content or (TextBlock(text),), None, Fault("remote", text), metadata=metadata
        )
    data = answer.structured_content
    problems = _misfits(answer, returns)
    if problems:
        message = f"the server's answer does not fit its own output schema: {problems}"
        said = (TextBlock(f"Error: {message}"), *content)
        fault = Fault("remote_schema", message, {"structured_content": data})
        return Result("", name, Status.ERROR, said, None, fault, metadata=metadata)
    if wrapped and isinstance(data, dict) and set(data) == {"result"}:
        data = data["result"]
    if answer.structured_content is not None:
        data, text = _as_json(data)
        content = content or (TextBlock(text),)
    return Result("", name, Status.SUCCESS, content, data, metadata=metadata)


def failure(name: str, kind: str, message: str, *, status: Status = Status.ERROR, **details: Any) -> Result:
    """A call that came to nothing, with the message for the model and the details for the program."""
    return Result("", name, status, (TextBlock(f"Error: {message}"),), None, Fault(kind, message, details))


def _as_json(data: Any) -> tuple[Any, str]:
    """Data and its text. What Python reads as a number and JSON does not know, such as NaN, becomes null."""
    try:
        return data, json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        data = json.loads(json.dumps(data), parse_constant=lambda name: None)
        return data, json.dumps(data, ensure_ascii=False)


def _misfits(answer: Any, returns: ForeignSchema | None) -> str:
    if returns is None:
        return ""
    if answer.structured_content is None and "structured_content" not in answer.model_fields_set:
        return "it has no structured content"
    return "; ".join(map(str, returns.problems(answer.structured_content)))


def _metadata(answer: Any, origin: dict[str, Any]) -> dict[str, Any]:
    """What models are not shown: where the answer comes from, `_meta`, and what blocks have no place for."""
    found = dict(origin)
    if answer.meta:
        found["_meta"] = dict(answer.meta)
    extras = [_extras(each) for each in answer.content]
    if any(extras):
        found["content"] = extras
    return found


def _extras(content: Any) -> dict[str, Any]:
    if content.type == "text" and content.annotations is None and not content.meta:
        return {}  # nearly always
    dumped = content.model_dump(mode="json", by_alias=True, exclude_none=True)
    kept = {name: dumped[name] for name in ("annotations", "_meta", "icons", "size") if dumped.get(name)}
    if content.type == "resource":
        resource = dumped["resource"]
        kept["resource"] = {name: value for name, value in resource.items() if name not in ("text", "blob")}
    return kept


def _block(content: Any) -> Block:
    match content.type:
        case "text":
            return TextBlock(content.text)
        case "image":
            return ImageBlock(data=content.data, media_type=content.mime_type)
        case "audio":
            return AudioBlock(data=content.data, media_type=content.mime_type)
        case "resource_link":
            title = content.title or content.name
            return LinkBlock(str(content.uri), title, content.description, content.mime_type)
    return _resource(content.resource)


def _resource(resource: Any) -> Block:
    """An embedded resource: text that a model can read is text, anything else a file named by its URI."""
    text = getattr(resource, "text", None)
    if text is not None:
        return TextBlock(text)
    data = resource.blob or base64.b64encode(b"").decode()
    return FileBlock(data=data, media_type=resource.mime_type, name=str(resource.uri))
