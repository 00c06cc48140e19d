"""MCP servers as sources of tools: `McpServer`, its connection, and each of its tools.

Calls of a toolkit enter and go to the server; its answers leave as results.
"""
