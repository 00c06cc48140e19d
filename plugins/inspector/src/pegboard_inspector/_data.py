"""What the page shows of a toolkit: tools, groups, packs, and what a model would get of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs

from pegboard import PegboardError, Session, Tool
from pegboard.inspection import board_of, is_loaded, plugins_of, sources_of
from pegboard_inspector._json import dumps, pretty
from pegboard_inspector._secrecy import PRIVATE_NAMES, Secrecy
from pegboard_inspector._sources import features_of

__all__ = ["board_data", "board_marks", "dialect_data", "tokens_of", "tool_data"]

CHARACTERS: Final = 4
"""Characters of JSON that make a token, about: an estimate, for models differ."""


def board_marks(session: Session) -> tuple[Any, ...]:
    """Values that differ after the toolkit has changed."""
    toolkit = session.toolkit
    return (
        board_of(toolkit),
        tuple(map(id, session.tools)),
        session.groups,
        session.active_groups,
        toolkit.plugins,
        toolkit.sources,
        toolkit.problems,
        session.permissions,
        tuple(tuple(features_of(each)) for each in sources_of(toolkit)),
    )


def board_data(session: Session) -> dict[str, Any]:
    """The whole toolkit, with a line for each tool. Lazy tools are imported, as for the list that a model gets."""
    toolkit = session.toolkit
    offered = {tool.name for tool in session.tools}
    permissions = session.permissions
    # The toolkit may have changed in between.
    tools = [_line(tool, offered, permissions.get(tool.name, "always")) for tool in session.all_tools]
    known = {group.name: group for group in session.groups}
    named = sorted({name for tool in tools for name in tool["groups"]} - known.keys())
    registered: dict[str | None, int] = {}
    for tool in tools:
        registered[tool["pack"]] = registered.get(tool["pack"], 0) + 1
    features = {each.name: features_of(each) for each in sources_of(toolkit)}
    return {
        "tools": sorted(tools, key=lambda tool: tool["name"]),
        "groups": [
            *({**_group(each), "active": each.name in session.active_groups} for each in known.values()),
            *({"name": name, "description": "", "active": False, "managed_by": None} for name in named),
        ],
        "packs": [
            {
                "name": record.name,
                "origin": str(record.origin),
                "state": record.state.value,
                "reason": record.reason,
                "tools": registered.get(record.name, 0),
                "not_offered": [{"names": list(each.names), "reason": each.reason} for each in record.not_offered],
            }
            for record in toolkit.plugins
        ],
        "sources": [{**_source(each), "features": features.get(each.name, [])} for each in toolkit.sources],
        "problems": toolkit.problems,
        "dialects": _dialects(session),
    }


def _source(source: Any) -> dict[str, Any]:
    return {"name": source.name, "tools": len(source.tools), "problems": list(source.problems)}


def _group(group: Any) -> dict[str, Any]:
    return {"name": group.name, "description": group.description, "managed_by": group.managed_by}


def _line(tool: Tool, offered: set[str], permission: str) -> dict[str, Any]:
    data: dict[str, Any] = {
        "name": tool.name,
        "pack": tool.origin.plugin,
        "offered": tool.name in offered,
        "loaded": is_loaded(tool),
        "permission": str(permission),
        "summary": "",
        "groups": [],
        "tags": [],
    }
    if not data["loaded"]:
        return data
    try:
        summary = tool.description.strip().partition("\n")[0][:200]
        return data | {"summary": summary, "groups": list(tool.groups or tool.options.groups), "tags": list(tool.tags)}
    except PegboardError as error:
        return data | {"problem": str(error)}


def tool_data(session: Session, name: str) -> dict[str, Any]:
    """Everything about one tool, and what a model gets of it. Raises `PegboardError` for one that cannot be read."""
    tool = session[name]
    approval, presets = tool.options.requires_approval, session.presets_of(name)
    return {
        **_line(tool, {each.name for each in session.tools}, session.permissions.get(tool.name, "always")),
        "description": tool.description,
        "origin": str(tool.origin),
        "parameters": tool.parameters,
        "private_names": PRIVATE_NAMES,
        "may_hold_secrets": Secrecy(tool.parameters).is_needed,
        "returns": tool.returns,
        "hints": {hint: value for hint, value in attrs.asdict(tool.hints).items() if value is not None},
        "approval": "sometimes" if callable(approval) else "always" if approval else "never",
        "deferred": tool.options.defer,
        "for_apps_only": tool.for_apps_only,
        "examples": [dict(each) for each in tool.options.examples if isinstance(each, Mapping)],
        "hidden": [
            {"name": each.name, "source": each.source, "secret": each.name in presets and presets[each.name].secret}
            for each in tool.params
            if each.source != "model"
        ],
        "model": [_for_model(session, dialect, tool.name) for dialect in _dialects(session)],
    }


def _dialects(session: Session) -> list[str]:
    return sorted({each.value.name for each in plugins_of(session.toolkit).contributions("provide_dialects")})


def _for_model(session: Session, dialect: str, name: str) -> dict[str, Any]:
    try:
        offered = session.view(include=[name]).dialect(dialect)
        definitions, losses = offered.tools(), [str(each) for each in offered.lint()]
    except Exception as error:  # noqa: BLE001 - a pack's dialect may raise anything
        return {"dialect": dialect, "problem": f"{type(error).__name__}: {error}"}
    text = "\n".join(map(pretty, definitions))
    tokens = sum(tokens_of(dumps(each)) for each in definitions)
    return {"dialect": dialect, "text": text, "tokens": tokens, "losses": losses}


def dialect_data(session: Session, name: str) -> dict[str, Any]:
    """The list of tools as a model gets it in one dialect. Raises `PegboardError` for a dialect that there is not."""
    bound = session.dialect(name)
    definitions = bound.tools()
    tokens = [tokens_of(dumps(each)) for each in definitions]
    return {
        "dialect": name,
        "tokens": sum(tokens),
        "tools": [{"text": pretty(each), "tokens": count} for each, count in zip(definitions, tokens, strict=True)],
        "losses": [str(each) for each in bound.lint()],
    }


def tokens_of(text: str) -> int:
    """How many tokens a definition is, about."""
    return math.ceil(len(text) / CHARACTERS)
