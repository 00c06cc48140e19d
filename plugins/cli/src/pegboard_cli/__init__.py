"""The `pegboard` command: lists, calls and checks tools, and starts packs. `main` is its entry point.

Not a plugin itself: it works where every plugin is broken or blocked. Packs add commands through the hook
`provide_commands`; those that ask the user do so with `ask_form`, inside of `interrupts_questions`.
"""

from pegboard_cli._output.forms import ask_form, interrupts_questions
from pegboard_cli._program import main

__all__ = ["ask_form", "interrupts_questions", "main"]
