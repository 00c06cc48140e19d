"""Tools: from functions, objects, classes and schemas to `Tool`s with compiled call plans.

What is to be registered enters; `Tool`s leave.
"""
