from pegboard._annotations import (
    qualified_name as qualified_name,
)
from pegboard._approval import (
    Approval as Approval,
)
from pegboard._approval import (
    ApprovalRequest as ApprovalRequest,
)
from pegboard._board import (
    Board as Board,
)
from pegboard._board import (
    Clash as Clash,
)
from pegboard._call import (
    Agent as Agent,
)
from pegboard._call import (
    CancelToken as CancelToken,
)
from pegboard._call import (
    Chunk as Chunk,
)
from pegboard._call import (
    Emitter as Emitter,
)
from pegboard._call import (
    ToolCall as ToolCall,
)
from pegboard._content import (
    Block as Block,
)
from pegboard._content import (
    DataBlock as DataBlock,
)
from pegboard._content import (
    TextBlock as TextBlock,
)
from pegboard._declare import (
    tool as tool,
)
from pegboard._declare import (
    toolset as toolset,
)
from pegboard._docstrings import (
    Docstring as Docstring,
)
from pegboard._docstrings import (
    parse_docstring as parse_docstring,
)
from pegboard._errors import (
    ConflictError as ConflictError,
)
from pegboard._errors import (
    Fault as Fault,
)
from pegboard._errors import (
    Mismatch as Mismatch,
)
from pegboard._errors import (
    PegboardError as PegboardError,
)
from pegboard._errors import (
    PluginError as PluginError,
)
from pegboard._errors import (
    ProcessDiedError as ProcessDiedError,
)
from pegboard._errors import (
    RegistrationError as RegistrationError,
)
from pegboard._errors import (
    SettingsError as SettingsError,
)
from pegboard._errors import (
    Suspend as Suspend,
)
from pegboard._errors import (
    ToolError as ToolError,
)
from pegboard._errors import (
    TransferError as TransferError,
)
from pegboard._errors import (
    UnknownNameError as UnknownNameError,
)
from pegboard._extension import (
    Accelerator as Accelerator,
)
from pegboard._extension import (
    Backend as Backend,
)
from pegboard._extension import (
    Command as Command,
)
from pegboard._extension import (
    Converter as Converter,
)
from pegboard._extension import (
    Dialect as Dialect,
)
from pegboard._extension import (
    Injector as Injector,
)
from pegboard._extension import (
    Job as Job,
)
from pegboard._extension import (
    LiveSource as LiveSource,
)
from pegboard._extension import (
    Middleware as Middleware,
)
from pegboard._extension import (
    Offer as Offer,
)
from pegboard._extension import (
    ToolSource as ToolSource,
)
from pegboard._extension import (
    TypeHandler as TypeHandler,
)
from pegboard._extension import (
    Types as Types,
)
from pegboard._foreign import (
    ForeignSchema as ForeignSchema,
)
from pegboard._group import (
    Group as Group,
)
from pegboard._markers import (
    MISSING as MISSING,
)
from pegboard._markers import (
    Computed as Computed,
)
from pegboard._markers import (
    Inject as Inject,
)
from pegboard._markers import (
    Injected as Injected,
)
from pegboard._markers import (
    Locked as Locked,
)
from pegboard._markers import (
    Param as Param,
)
from pegboard._markers import (
    Secret as Secret,
)
from pegboard._markers import (
    injectable as injectable,
)
from pegboard._media import (
    AudioBlock as AudioBlock,
)
from pegboard._media import (
    FileBlock as FileBlock,
)
from pegboard._media import (
    ImageBlock as ImageBlock,
)
from pegboard._media import (
    LinkBlock as LinkBlock,
)
from pegboard._media import (
    VideoBlock as VideoBlock,
)
from pegboard._permission import (
    Permission as Permission,
)
from pegboard._plans import (
    record_member as record_member,
)
from pegboard._plans import (
    record_plan as record_plan,
)
from pegboard._plans import (
    shaped as shaped,
)
from pegboard._plugin_record import (
    PluginRecord as PluginRecord,
)
from pegboard._plugin_record import (
    PluginState as PluginState,
)
from pegboard._plugin_reports import (
    PluginChanges as PluginChanges,
)
from pegboard._plugin_reports import (
    PluginFailure as PluginFailure,
)
from pegboard._policy import (
    ExecutionPolicy as ExecutionPolicy,
)
from pegboard._result import (
    Note as Note,
)
from pegboard._result import (
    Status as Status,
)
from pegboard._result import (
    ToolOutput as ToolOutput,
)
from pegboard._result import (
    ToolResult as ToolResult,
)
from pegboard._schema import (
    SchemaRef as SchemaRef,
)
from pegboard._session import (
    Session as Session,
)
from pegboard._shapes import (
    Check as Check,
)
from pegboard._shapes import (
    Choice as Choice,
)
from pegboard._shapes import (
    Deferred as Deferred,
)
from pegboard._shapes import (
    FixedItems as FixedItems,
)
from pegboard._shapes import (
    Items as Items,
)
from pegboard._shapes import (
    Mapped as Mapped,
)
from pegboard._shapes import (
    Member as Member,
)
from pegboard._shapes import (
    Nullable as Nullable,
)
from pegboard._shapes import (
    Record as Record,
)
from pegboard._shapes import (
    Scalar as Scalar,
)
from pegboard._shapes import (
    Shape as Shape,
)
from pegboard._shapes import (
    Tagged as Tagged,
)
from pegboard._shapes import (
    Text as Text,
)
from pegboard._shapes import (
    TypePlan as TypePlan,
)
from pegboard._shapes import (
    Union as Union,
)
from pegboard._sources import (
    SourceRecord as SourceRecord,
)
from pegboard._tool import (
    Origin as Origin,
)
from pegboard._tool_facts import (
    Hints as Hints,
)
from pegboard._tool_facts import (
    Parameter as Parameter,
)
from pegboard._tool_facts import (
    ToolSchema as ToolSchema,
)
from pegboard._toolkit import (
    Tool as Tool,
)
from pegboard._toolkit import (
    Toolkit as Toolkit,
)
from pegboard._toolset import (
    Toolset as Toolset,
)
from pegboard._version import (
    __version__ as __version__,
)
from pegboard.hookspecs import (
    hookimpl as hookimpl,
)

__all__ = [
    "MISSING",
    "Accelerator",
    "Agent",
    "Approval",
    "ApprovalRequest",
    "AudioBlock",
    "Backend",
    "Block",
    "Board",
    "CancelToken",
    "Check",
    "Choice",
    "Chunk",
    "Clash",
    "Command",
    "Computed",
    "ConflictError",
    "Converter",
    "DataBlock",
    "Deferred",
    "Dialect",
    "Docstring",
    "Emitter",
    "ExecutionPolicy",
    "Fault",
    "FileBlock",
    "FixedItems",
    "ForeignSchema",
    "Group",
    "Hints",
    "ImageBlock",
    "Inject",
    "Injected",
    "Injector",
    "Items",
    "Job",
    "LinkBlock",
    "LiveSource",
    "Locked",
    "Mapped",
    "Member",
    "Middleware",
    "Mismatch",
    "Note",
    "Nullable",
    "Offer",
    "Origin",
    "Param",
    "Parameter",
    "PegboardError",
    "Permission",
    "PluginChanges",
    "PluginError",
    "PluginFailure",
    "PluginRecord",
    "PluginState",
    "ProcessDiedError",
    "Record",
    "RegistrationError",
    "Scalar",
    "SchemaRef",
    "Secret",
    "Session",
    "SettingsError",
    "Shape",
    "SourceRecord",
    "Status",
    "Suspend",
    "Tagged",
    "Text",
    "TextBlock",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolOutput",
    "ToolResult",
    "ToolSchema",
    "ToolSource",
    "Toolkit",
    "Toolset",
    "TransferError",
    "TypeHandler",
    "TypePlan",
    "Types",
    "Union",
    "UnknownNameError",
    "VideoBlock",
    "__version__",
    "hookimpl",
    "injectable",
    "parse_docstring",
    "qualified_name",
    "record_member",
    "record_plan",
    "shaped",
    "tool",
    "toolset",
]
