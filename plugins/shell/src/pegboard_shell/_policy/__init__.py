"""Policy: what becomes of a command before anything runs.

In comes the text that a model wrote; out goes a `Decision` with the arguments that would be run.
"""
