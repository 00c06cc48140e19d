"""Types: from an annotation to its shape, its schema, and the code that structures values.

Annotations enter; `TypePlan`s leave.
"""
