from pegboard._base.errors import (
    ConflictError as ConflictError,
)
from pegboard._base.errors import (
    Fault as Fault,
)
from pegboard._base.errors import (
    Mismatch as Mismatch,
)
from pegboard._base.errors import (
    PegboardError as PegboardError,
)
from pegboard._base.errors import (
    PluginError as PluginError,
)
from pegboard._base.errors import (
    RegistrationError as RegistrationError,
)
from pegboard._base.errors import (
    SettingsError as SettingsError,
)
from pegboard._base.errors import (
    Suspend as Suspend,
)
from pegboard._base.errors import (
    ToolError as ToolError,
)
from pegboard._base.errors import (
    TransferError as TransferError,
)
from pegboard._base.errors import (
    UnknownNameError as UnknownNameError,
)
from pegboard._base.errors import (
    describe_exception as describe_exception,
)
from pegboard._base.markers import (
    MISSING as MISSING,
)
from pegboard._base.markers import (
    Computed as Computed,
)
from pegboard._base.markers import (
    Inject as Inject,
)
from pegboard._base.markers import (
    Injected as Injected,
)
from pegboard._base.markers import (
    Locked as Locked,
)
from pegboard._base.markers import (
    Param as Param,
)
from pegboard._base.markers import (
    Secret as Secret,
)
from pegboard._base.markers import (
    injectable as injectable,
)
from pegboard._base.redaction import (
    Redaction as Redaction,
)
from pegboard._board.board import (
    Board as Board,
)
from pegboard._board.board import (
    Clash as Clash,
)
from pegboard._model.call import (
    Agent as Agent,
)
from pegboard._model.call import (
    CancelToken as CancelToken,
)
from pegboard._model.call import (
    Chunk as Chunk,
)
from pegboard._model.call import (
    Emitter as Emitter,
)
from pegboard._model.call import (
    ToolCall as ToolCall,
)
from pegboard._model.media import (
    AudioBlock as AudioBlock,
)
from pegboard._model.media import (
    FileBlock as FileBlock,
)
from pegboard._model.media import (
    ImageBlock as ImageBlock,
)
from pegboard._model.media import (
    LinkBlock as LinkBlock,
)
from pegboard._model.media import (
    VideoBlock as VideoBlock,
)
from pegboard._model.plugin_record import (
    NotOffered as NotOffered,
)
from pegboard._model.plugin_record import (
    PluginRecord as PluginRecord,
)
from pegboard._model.plugin_record import (
    PluginState as PluginState,
)
from pegboard._model.policy import (
    ExecutionPolicy as ExecutionPolicy,
)
from pegboard._model.policy import (
    Permission as Permission,
)
from pegboard._model.program import (
    Approval as Approval,
)
from pegboard._model.program import (
    ApprovalRequest as ApprovalRequest,
)
from pegboard._model.program import (
    Group as Group,
)
from pegboard._model.program import (
    PluginFailure as PluginFailure,
)
from pegboard._model.program import (
    Toolset as Toolset,
)
from pegboard._model.result import (
    Block as Block,
)
from pegboard._model.result import (
    DataBlock as DataBlock,
)
from pegboard._model.result import (
    Note as Note,
)
from pegboard._model.result import (
    Status as Status,
)
from pegboard._model.result import (
    TextBlock as TextBlock,
)
from pegboard._model.result import (
    ToolOutput as ToolOutput,
)
from pegboard._model.result import (
    ToolResult as ToolResult,
)
from pegboard._model.shapes import (
    Check as Check,
)
from pegboard._model.shapes import (
    Choice as Choice,
)
from pegboard._model.shapes import (
    Deferred as Deferred,
)
from pegboard._model.shapes import (
    FixedItems as FixedItems,
)
from pegboard._model.shapes import (
    Items as Items,
)
from pegboard._model.shapes import (
    Mapped as Mapped,
)
from pegboard._model.shapes import (
    Member as Member,
)
from pegboard._model.shapes import (
    Nullable as Nullable,
)
from pegboard._model.shapes import (
    Record as Record,
)
from pegboard._model.shapes import (
    Scalar as Scalar,
)
from pegboard._model.shapes import (
    Shape as Shape,
)
from pegboard._model.shapes import (
    Tagged as Tagged,
)
from pegboard._model.shapes import (
    Text as Text,
)
from pegboard._model.shapes import (
    TypePlan as TypePlan,
)
from pegboard._model.shapes import (
    Union as Union,
)
from pegboard._model.tool import (
    Hints as Hints,
)
from pegboard._model.tool import (
    Origin as Origin,
)
from pegboard._model.tool import (
    Parameter as Parameter,
)
from pegboard._model.tool import (
    Tool as Tool,
)
from pegboard._model.tool import (
    ToolSchema as ToolSchema,
)
from pegboard._model.tool import (
    tool as tool,
)
from pegboard._model.tool import (
    toolset as toolset,
)
from pegboard._schema.foreign import (
    ForeignSchema as ForeignSchema,
)
from pegboard._schema.nodes import (
    SchemaRef as SchemaRef,
)
from pegboard._schema.vet import (
    Judge as Judge,
)
from pegboard._schema.vet import (
    SchemaPart as SchemaPart,
)
from pegboard._schema.vet import (
    spend as spend,
)
from pegboard._toolkit.live_sources import (
    SourceRecord as SourceRecord,
)
from pegboard._toolkit.session import (
    Session as Session,
)
from pegboard._toolkit.toolkit import (
    Toolkit as Toolkit,
)
from pegboard._tools.docstrings import (
    Docstring as Docstring,
)
from pegboard._tools.docstrings import (
    parse_docstring as parse_docstring,
)
from pegboard._types.annotations import (
    qualified_name as qualified_name,
)
from pegboard._types.plans import (
    record_member as record_member,
)
from pegboard._types.plans import (
    record_plan as record_plan,
)
from pegboard._types.plans import (
    shaped as shaped,
)
from pegboard.extension import (
    Backend as Backend,
)
from pegboard.extension import (
    BoundDialect as BoundDialect,
)
from pegboard.extension import (
    Change as Change,
)
from pegboard.extension import (
    Command as Command,
)
from pegboard.extension import (
    Converter as Converter,
)
from pegboard.extension import (
    Dialect as Dialect,
)
from pegboard.extension import (
    EnteredCall as EnteredCall,
)
from pegboard.extension import (
    Guard as Guard,
)
from pegboard.extension import (
    Injector as Injector,
)
from pegboard.extension import (
    Job as Job,
)
from pegboard.extension import (
    LiveSource as LiveSource,
)
from pegboard.extension import (
    Middleware as Middleware,
)
from pegboard.extension import (
    Offer as Offer,
)
from pegboard.extension import (
    SuspendedCalls as SuspendedCalls,
)
from pegboard.extension import (
    ToolSource as ToolSource,
)
from pegboard.extension import (
    TypeHandler as TypeHandler,
)
from pegboard.extension import (
    Types as Types,
)
from pegboard.extension import (
    Verdict as Verdict,
)
from pegboard.hookspecs import (
    hookimpl as hookimpl,
)

__version__: str

__all__ = [
    "MISSING",
    "Agent",
    "Approval",
    "ApprovalRequest",
    "AudioBlock",
    "Backend",
    "Block",
    "Board",
    "BoundDialect",
    "CancelToken",
    "Change",
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
    "EnteredCall",
    "ExecutionPolicy",
    "Fault",
    "FileBlock",
    "FixedItems",
    "ForeignSchema",
    "Group",
    "Guard",
    "Hints",
    "ImageBlock",
    "Inject",
    "Injected",
    "Injector",
    "Items",
    "Job",
    "Judge",
    "LinkBlock",
    "LiveSource",
    "Locked",
    "Mapped",
    "Member",
    "Middleware",
    "Mismatch",
    "NotOffered",
    "Note",
    "Nullable",
    "Offer",
    "Origin",
    "Param",
    "Parameter",
    "PegboardError",
    "Permission",
    "PluginError",
    "PluginFailure",
    "PluginRecord",
    "PluginState",
    "Record",
    "Redaction",
    "RegistrationError",
    "Scalar",
    "SchemaPart",
    "SchemaRef",
    "Secret",
    "Session",
    "SettingsError",
    "Shape",
    "SourceRecord",
    "Status",
    "Suspend",
    "SuspendedCalls",
    "Tagged",
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
    "UnknownNameError",
    "Verdict",
    "VideoBlock",
    "__version__",
    "describe_exception",
    "hookimpl",
    "injectable",
    "parse_docstring",
    "qualified_name",
    "record_member",
    "record_plan",
    "shaped",
    "spend",
    "tool",
    "toolset",
]
