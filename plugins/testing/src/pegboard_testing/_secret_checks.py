"""Checks that secrets of the settings stay secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pegboard import PegboardError, Toolkit
from pegboard.inspection import plugins_of
from pegboard_testing._findings import Finding

__all__ = ["check_secrets"]

_TELLING = re.compile(r"(.*_)?(api_?key|key|token|secret|password|passphrase|credentials?)")


def check_secrets(plugin: Any, pack: str, cls: type, settings: Mapping[str, Any]) -> Iterator[Finding]:
    """No secret of the settings in anything that people, models or logs read."""
    import attrs

    fields = [field for field in attrs.fields(cls) if field.init]
    for field in fields:
        if _TELLING.fullmatch(field.name) and not field.metadata.get("secret") and _takes_text(cls, field):
            remedy = 'declare it attrs.field(default="", repr=False, metadata={"secret": True})'
            yield Finding("secrets", f"the setting {field.name!r} looks like a secret and is none", remedy)
    secret = [field for field in fields if field.metadata.get("secret") and _takes_text(cls, field)]
    marks = {field.alias: f"conformance-{field.name}-0123456789abcdef" for field in secret}
    for where, text in _places(plugin, pack, cls, {**settings, **marks}) if marks else ():
        for name, mark in sorted(marks.items()):
            if mark in text:
                remedy = "keep it out: attrs.field(repr=False), pegboard.Secret(...), no secrets in names and texts"
                yield Finding("secrets", f"the secret setting {name!r} shows in {where}", remedy)


def _takes_text(cls: type, field: Any) -> bool:
    from typing import get_args, get_type_hints

    annotation = get_type_hints(cls).get(field.name)
    return annotation is str or str in get_args(annotation)


def _places(plugin: Any, pack: str, cls: type, section: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """All texts that a toolkit with these settings shows, each with the name of its place for messages."""
    try:
        toolkit = Toolkit(plugins=[plugin], settings={pack: section})
    except PegboardError as error:  # it refuses made-up secrets; what it says about them must not repeat them
        yield "the error for a value that it refuses", str(error)
        return
    with toolkit:
        plugins = plugins_of(toolkit)
        yield "the repr of the settings", repr(plugins.settings_of(pack))
        yield "what `pegboard settings` shows", repr(plugins.settings.effective())
        yield "toolkit.problems", "\n".join(toolkit.problems)
        yield "a traceback in toolkit.plugin_errors", "\n".join(each.traceback for each in toolkit.plugin_errors)
        for tool in toolkit.all_tools:
            yield f"the repr of {tool.name}", f"{tool!r} {toolkit.toolsets!r}"
            described = [tool.description, tool.parameters, tool.returns]
            yield f"the schema of {tool.name}", json.dumps(described, default=repr)
            refused = toolkit.prepare(tool.name, {"no such argument": 1}).result
            yield f"what {tool.name} says to wrong arguments", f"{refused!r} {refused and refused.to_dict()}"
