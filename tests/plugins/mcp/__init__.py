"""MCP both ways: remote tools on the board, and the board as a server."""
