"""A toolkit with a tool of a server that asks a form, and answers with what came back."""

from typing import Any

import pytest

from pegboard import Toolkit

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Full name", "description": "As in the passport.", "minLength": 2},
        "age": {"type": "integer", "minimum": 0},
        "weight": {"type": "number"},
        "vegetarian": {"type": "boolean", "default": True},
        "color": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "days": {
            "type": "array",
            "items": {"type": "string", "enum": ["mon", "tue"]},
            "minItems": 1,
            "default": ["tue"],
        },
        "rooms": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A hall"}, {"const": "b"}]},
            "maxItems": 1,
        },
        "mail": {"type": "string", "format": "email"},
        "page": {"type": "string", "format": "uri"},
        "from": {"type": "string", "format": "date"},
        "at": {"type": "string", "format": "date-time"},
        "code": {"type": "string", "format": "password"},
        "word": {"type": "string", "pattern": "^[a-z]+$"},
    },
    "required": ["name"],
}


def asking_toolkit() -> Toolkit:
    mcp = pytest.importorskip("pegboard_mcp")
    from tests.plugins.mcp.form_server import server

    toolkit = Toolkit(plugins=())
    toolkit.register(mcp.McpServer.in_process(server()))
    return toolkit
