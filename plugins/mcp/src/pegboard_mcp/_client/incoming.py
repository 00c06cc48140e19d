"""Answers of a server as Pegboard's results: content, structured data, errors."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from pegboard import (
    AudioBlock,
    Block,
    DataBlock,
    Fault,
    FileBlock,
    ForeignSchema,
    ImageBlock,
    LinkBlock,
    Note,
    Redaction,
    Status,
    TextBlock,
    VideoBlock,
)
from pegboard import ToolResult as Result
from pegboard_mcp._wire.protocol import BLOCK

__all__ = ["as_json", "block_of", "block_of_resource", "failure", "redacted", "result_of"]

MOST_PROBLEMS: Final = 20
"""Problems of one answer that are reported."""
SVG: Final = "image/svg+xml"
"""An image that is text, which models are not shown as one."""


def result_of(answer: Any, name: str, returns: ForeignSchema | None, wrapped: bool, origin: dict[str, Any]) -> Result:
    """A server's answer as a result. `origin` says where it comes from, for the program."""
    content = tuple(map(block_of, answer.content))
    metadata = {"mcp": _metadata(answer, origin)}
    if answer.is_error:
        text = "\n".join(block.text for block in content if block.text) or "the tool failed and did not say why"
        return Result(
            "", name, Status.ERROR, content or (TextBlock(text),), None, Fault("remote", text), metadata=metadata
        )
    data = answer.structured_content
    problems, unchecked = _misfits(answer, returns)
    if problems:
        message = f"the server's answer does not fit its own output schema: {problems}"
        blocks = (TextBlock(f"Error: {message}"), *content)
        fault = Fault("remote_schema", message, {"structured_content": data})
        return Result("", name, Status.ERROR, blocks, None, fault, metadata=metadata)
    if wrapped and isinstance(data, dict) and set(data) == {"result"}:
        data = data["result"]
    if answer.structured_content is not None:
        data, text = as_json(data)
        content = content or (TextBlock(text),)
    notes = (Note(f"the answer was taken as it is: {unchecked}", kind="unchecked"),) if unchecked else ()
    return Result("", name, Status.SUCCESS, content, data, notes=notes, metadata=metadata)


def failure(name: str, kind: str, message: str, *, status: Status = Status.ERROR, **details: Any) -> Result:
    """The result of a failed call, with the message for the model and the details for the program."""
    return Result("", name, status, (TextBlock(f"Error: {message}"),), None, Fault(kind, message, details))


def redacted(result: Result, redact: Redaction) -> Result:
    """A failure with the secrets of its server masked."""
    error = result.error
    fault = error and Fault(error.kind, redact(error.message), redact.deep(error.details))
    content, data, metadata = redact.deep((result.content, result.data, result.metadata))
    return Result("", result.name, result.status, content, data, fault, metadata=metadata)


_JSON: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def as_json(data: Any) -> tuple[Any, str]:
    """Data and its text. What Python reads as a number and JSON does not know, such as NaN, becomes null."""
    try:
        return data, _JSON(data)
    except ValueError:
        data = json.loads(json.dumps(data), parse_constant=lambda name: None)
        return data, json.dumps(data, ensure_ascii=False)


def _misfits(answer: Any, returns: ForeignSchema | None) -> tuple[str, str]:
    """What is wrong with the structured content, and why it could not be checked."""
    if returns is None:
        return "", ""
    if answer.structured_content is None and "structured_content" not in answer.model_fields_set:
        return "it has no structured content", ""
    problems = returns.problems(answer.structured_content)
    if any(problem.unchecked for problem in problems):
        return "", str(problems[0])
    return "; ".join(map(str, problems[:MOST_PROBLEMS])), ""


def _metadata(answer: Any, origin: dict[str, Any]) -> dict[str, Any]:
    """Data for the program alone: the origin of the answer, `_meta`, and data that no block can hold."""
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
    if content.type == "resource_link" and content.title not in (None, content.name):
        kept["name"] = content.name
    if content.type == "resource":
        resource = dumped["resource"]
        kept["resource"] = {name: value for name, value in resource.items() if name not in ("text", "blob")}
    return kept


def block_of(content: Any) -> Block:
    """A piece of content as a block."""
    match content.type:
        case "text":
            return _known(content, None, None) or TextBlock(content.text)
        case "image":
            return _image(content.data, content.mime_type)
        case "audio":
            return AudioBlock(data=content.data, media_type=content.mime_type)
        case "resource_link":
            url = str(content.uri)
            title = content.title or (None if content.name == url else content.name)
            return _known(content, None, url) or LinkBlock(url, title, content.description, content.mime_type)
    return block_of_resource(content.resource)


def block_of_resource(resource: Any) -> Block:
    """An embedded resource: text that a model can read is text, an image one, anything else a file named by its URI."""
    text = getattr(resource, "text", None)
    data = base64.b64encode(text.encode()).decode() if text is not None else resource.blob or ""
    known = _known(resource, data, None)
    if known is not None:
        return known
    if text is not None:
        return TextBlock(text)
    if (resource.mime_type or "").startswith("image/") and resource.mime_type != SVG:
        return _image(data, resource.mime_type)
    return FileBlock(data=data, media_type=resource.mime_type, name=str(resource.uri))


def _image(data: str, media_type: str) -> Block:
    """An image. One without data would be refused by every model, with all that is beside it."""
    return (
        ImageBlock(data=data, media_type=media_type) if data else TextBlock("(the server sent an image without data)")
    )


def _known(content: Any, data: str | None, url: str | None) -> Block | None:
    """The block that another Pegboard server declares; None if none is declared."""
    declared = (content.meta or {}).get(BLOCK)
    kind = declared.get("kind") if isinstance(declared, Mapping) else None
    if kind == "data":
        try:
            return DataBlock(json.loads(content.text))
        except ValueError:
            return None
    if not isinstance(declared, Mapping) or kind not in _MEDIA:
        return None
    media_type, name = declared.get("media_type"), declared.get("name")
    if kind == "file":
        return FileBlock(data=data, url=url, media_type=media_type, name=name if isinstance(name, str) else None)
    return _MEDIA[kind](data=data, url=url, media_type=media_type)


_MEDIA: Final = {"image": ImageBlock, "audio": AudioBlock, "video": VideoBlock, "file": FileBlock}
