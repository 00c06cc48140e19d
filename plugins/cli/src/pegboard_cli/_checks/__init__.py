"""Checks: what `pegboard doctor` looks at.

In comes a toolkit, or its plugins; out go findings: what is wrong, and the command or line that fixes it.
"""
