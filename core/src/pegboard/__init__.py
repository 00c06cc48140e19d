"""Pegboard: typed Python functions as tools for LLM agents, from an ecosystem of separately installable packs."""

# The public names and the modules that hold them; `__init__.pyi` lists the same for type checkers. A module is loaded
# when the first of its names is asked for (PEP 562): `import pegboard` itself costs next to nothing.
_HOMES = {
    "_annotations": "qualified_name",
    "_approval": "Approval ApprovalRequest",
    "_board": "Board Clash",
    "_call": "Agent CancelToken Chunk Emitter ToolCall",
    "_content": "Block DataBlock TextBlock",
    "_declare": "tool toolset",
    "_docstrings": "Docstring parse_docstring",
    "_errors": "ConflictError Fault Mismatch PegboardError PluginError ProcessDiedError RegistrationError "
    "SettingsError Suspend ToolError TransferError UnknownNameError",
    "_extension": "Accelerator Backend Command Converter Dialect Injector Job LiveSource Middleware Offer "
    "ToolSource TypeHandler Types",
    "_foreign": "ForeignSchema",
    "_group": "Group",
    "_markers": "MISSING Computed Inject Injected Locked Param Secret injectable",
    "_media": "AudioBlock FileBlock ImageBlock LinkBlock VideoBlock",
    "_permission": "Permission",
    "_plans": "record_member record_plan shaped",
    "_plugin_record": "PluginRecord PluginState",
    "_plugin_reports": "PluginChanges PluginFailure",
    "_policy": "ExecutionPolicy",
    "_result": "Note Status ToolOutput ToolResult",
    "_schema": "SchemaRef",
    "_session": "Session",
    "_shapes": "Check Choice Deferred FixedItems Items Mapped Member Nullable Record Scalar Shape Tagged Text "
    "TypePlan Union",
    "_sources": "SourceRecord",
    "_tool": "Origin",
    "_tool_facts": "Hints Parameter ToolSchema",
    "_toolkit": "Tool Toolkit",
    "_toolset": "Toolset",
    "_version": "__version__",
    "hookspecs": "hookimpl",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_home_of)  # noqa: PLE0605 - computed from the one list above; the stub spells it out


def __getattr__(name):
    home = _home_of.get(name)
    if home is None:
        raise AttributeError(f"module 'pegboard' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"pegboard.{home}"), name)
    return value


def __dir__():
    return __all__
