from pegboard._approval import (
    Approval as Approval,
    ApprovalRequest as ApprovalRequest,
    Permission as Permission,
)
from pegboard._board import (
    Board as Board,
    Clash as Clash,
)
from pegboard._call import (
    Agent as Agent,
    CancelToken as CancelToken,
    Chunk as Chunk,
    Emitter as Emitter,
    ToolCall as ToolCall,
)
from pegboard._content import (
    AudioBlock as AudioBlock,
    Block as Block,
    DataBlock as DataBlock,
    FileBlock as FileBlock,
    ImageBlock as ImageBlock,
    LinkBlock as LinkBlock,
    TextBlock as TextBlock,
    VideoBlock as VideoBlock,
)
from pegboard._declare import (
    tool as tool,
    toolset as toolset,
)
from pegboard._docstrings import (
    Docstring as Docstring,
    parse_docstring as parse_docstring,
)
from pegboard._errors import (
    ConflictError as ConflictError,
    Fault as Fault,
    Mismatch as Mismatch,
    PegboardError as PegboardError,
    PluginError as PluginError,
    RegistrationError as RegistrationError,
    SettingsError as SettingsError,
    Suspend as Suspend,
    ToolError as ToolError,
    UnknownNameError as UnknownNameError,
)
from pegboard._extension import (
    Backend as Backend,
    Command as Command,
    Converter as Converter,
    Dialect as Dialect,
    Injector as Injector,
    Middleware as Middleware,
    ToolSource as ToolSource,
    TypeHandler as TypeHandler,
    Types as Types,
)
from pegboard._groups import (
    Group as Group,
)
from pegboard._markers import (
    Computed as Computed,
    Inject as Inject,
    Injected as Injected,
    Locked as Locked,
    MISSING as MISSING,
    Param as Param,
    Secret as Secret,
    injectable as injectable,
)
from pegboard._plans import (
    record_member as record_member,
    record_plan as record_plan,
    shaped as shaped,
)
from pegboard._plugin_record import (
    PluginFailure as PluginFailure,
    PluginRecord as PluginRecord,
    PluginState as PluginState,
)
from pegboard._policy import (
    ExecutionPolicy as ExecutionPolicy,
)
from pegboard._result import (
    Note as Note,
    Status as Status,
    ToolOutput as ToolOutput,
    ToolResult as ToolResult,
)
from pegboard._session import (
    Session as Session,
)
from pegboard._shapes import (
    Check as Check,
    Choice as Choice,
    Items as Items,
    Mapped as Mapped,
    Member as Member,
    Record as Record,
    Scalar as Scalar,
    Shape as Shape,
    Tagged as Tagged,
    Text as Text,
    TypePlan as TypePlan,
)
from pegboard._tool import (
    Hints as Hints,
    Origin as Origin,
    Parameter as Parameter,
    ToolSchema as ToolSchema,
    Toolset as Toolset,
)
from pegboard._toolkit import (
    Tool as Tool,
    Toolkit as Toolkit,
)
from pegboard._version import (
    __version__ as __version__,
)
from pegboard.hookspecs import (
    hookimpl as hookimpl,
)

__all__ = [
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
    "Dialect",
    "Docstring",
    "Emitter",
    "ExecutionPolicy",
    "Fault",
    "FileBlock",
    "Group",
    "Hints",
    "ImageBlock",
    "Inject",
    "Injected",
    "Injector",
    "Items",
    "LinkBlock",
    "Locked",
    "MISSING",
    "Mapped",
    "Member",
    "Middleware",
    "Mismatch",
    "Note",
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
    "RegistrationError",
    "Scalar",
    "Secret",
    "Session",
    "SettingsError",
    "Shape",
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
    "TypeHandler",
    "TypePlan",
    "Types",
    "UnknownNameError",
    "VideoBlock",
    "__version__",
    "hookimpl",
    "injectable",
    "parse_docstring",
    "record_member",
    "record_plan",
    "shaped",
    "tool",
    "toolset",
]
