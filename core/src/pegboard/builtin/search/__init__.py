"""The search over deferred tools: what `session.search()` and the tool `search_tools` do.

Tools of a session enter; the best ones for a query leave.
"""
