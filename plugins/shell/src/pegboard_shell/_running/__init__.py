"""Running: one command from its start to its end, under a supervisor where there can be one.

In comes a `Launch`; out goes an `Outcome`: how it ended, and what it wrote, in bounded memory.
"""
