"""Pegboard: typed Python functions as tools for LLM agents, from an ecosystem of separately installable packs."""

# The public names and the modules that hold them; `__init__.pyi` lists the same for type checkers. A module is loaded
# when the first of its names is asked for (PEP 562): `import pegboard` itself costs next to nothing.
_HOMES = {
    "_types.annotations": "qualified_name",
    "_board.board": "Board Clash",
    "_model.call": "Agent CancelToken Chunk Emitter ToolCall",
    "_tools.docstrings": "Docstring parse_docstring",
    "_base.errors": "ConflictError Fault Mismatch PegboardError PluginError RegistrationError "
    "SettingsError Suspend ToolError TransferError UnknownNameError describe_exception",
    "extension": "Backend BoundDialect Change Command Converter Dialect EnteredCall Guard Injector Job LiveSource "
    "Middleware Offer SuspendedCalls ToolSource TypeHandler Types Verdict",
    "_schema.foreign": "ForeignSchema",
    "_schema.vet": "Judge SchemaPart spend",
    "_base.redaction": "Redaction",
    "_base.markers": "MISSING Computed Inject Injected Locked Param Secret injectable",
    "_model.media": "AudioBlock FileBlock ImageBlock LinkBlock VideoBlock",
    "_types.plans": "record_member record_plan shaped",
    "_model.program": "Approval ApprovalRequest Group PluginFailure Toolset",
    "_model.plugin_record": "PluginRecord PluginState NotOffered",
    "_model.policy": "ExecutionPolicy Permission",
    "_model.result": "Block DataBlock Note Status TextBlock ToolOutput ToolResult",
    "_schema.nodes": "SchemaRef",
    "_toolkit.session": "Session",
    "_model.shapes": "Check Choice Deferred FixedItems Items Mapped Member Nullable Record Scalar Shape Tagged Text "
    "TypePlan Union",
    "_toolkit.live_sources": "SourceRecord",
    "_model.tool": "Hints Origin Parameter ToolSchema tool toolset",
    "_toolkit.toolkit": "Tool Toolkit",
    "hookspecs": "hookimpl",
}
_home_of = {name: home for home, names in _HOMES.items() for name in names.split()}

# Computed from the one list above, which the stub spells out; without what a star would put in the place of typing's.
__all__ = sorted({*_home_of, "__version__"} - {"Text", "Union"})  # noqa: PLE0605 - as just said


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version

        return version("pegboard")
    from importlib import import_module

    if name not in _home_of:
        from pegboard._base.deprecations import warn_of

        found = warn_of(f"pegboard.{name}", stacklevel=2)
        if found is None:
            raise AttributeError(f"module 'pegboard' has no attribute {name!r}")
        return __getattr__(found.instead)
    value = globals()[name] = getattr(import_module(f"pegboard.{_home_of[name]}"), name)
    return value


def __dir__():
    return sorted({*_home_of, "__version__"})
