"""Results: from what a function returned or raised to content, data and a `ToolResult`.

Values and exceptions enter; results leave.
"""
