"""The board as an MCP server: which tools are served, how, and what its clients are told and asked.

Requests of clients enter and become calls of a session; results leave as answers.
"""
