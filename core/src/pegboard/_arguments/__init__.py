"""Arguments: from what a model sent to the values of a function's parameters.

JSON text or data enters; values, or problems written for a model, leave.
"""
