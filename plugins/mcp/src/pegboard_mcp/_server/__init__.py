"""A toolkit as an MCP server: which tools are served, how, and which messages and questions its clients get.

Requests of clients enter and become calls of a session; results leave as answers.
"""
