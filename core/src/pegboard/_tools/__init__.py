"""Tools: from functions, objects, classes and schemas to `Tool`s with compiled call plans.

What somebody registered enters; `Tool`s leave.
"""
