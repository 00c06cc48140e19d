"""The formats of model providers as plain functions over dicts: definitions, calls, results. No SDK is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pegboard import Dialect, hookimpl
from pegboard_dialects._losses import Loss

__all__ = ["Loss", "provide_dialects", "write_schema"]


def write_schema(schema: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """A JSON Schema in another dialect of schemas, for `tool.json_schema(dialect="openapi-3.0")`.

    Its `$defs` become `components`, which belong at the root of the document that takes the schema.

    Raises ValueError for another dialect than `openapi-3.0`, which is the only one.

    Args:
        schema: The schema.
        dialect: `"openapi-3.0"`.
    """
    from pegboard_dialects._openapi_3_0 import to_openapi

    if dialect != "openapi-3.0":
        raise ValueError(f"schemas are written as 'openapi-3.0', not as {dialect!r}")
    return to_openapi(schema)


@hookimpl
def provide_dialects() -> Iterable[Dialect]:
    """The dialects `openai`, `openai-responses`, `anthropic`, `gemini`, `dashscope` and `mcp`."""
    from pegboard_dialects import _anthropic, _dashscope, _gemini, _mcp, _openai, _responses

    return [each.DIALECT for each in (_openai, _responses, _anthropic, _gemini, _dashscope, _mcp)]
