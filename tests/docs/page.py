"""Runs a page's examples: `python` blocks in one namespace, and the blocks that show what they print."""

import contextlib
import io
import json
import sys
from pathlib import Path
from types import ModuleType

from sybil import Example
from sybil.document import Document
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser

from pegboard import Toolkit


class Page:
    """A Markdown page. A `text` block is what the `python` block before it prints, a `json` block the same as data."""

    def __init__(self, path: Path) -> None:
        self._printed = ""
        self._python = PythonEvaluator()
        languages = {"python": self._run, "text": self._compare_text, "json": self._compare_data}
        self._document = Document.parse(str(path), *(CodeBlockParser(*language) for language in languages.items()))

    def run(self) -> int:
        """Run the page from top to bottom; return the number of examples. Raises what an example raises."""
        module = ModuleType("__main__")  # dataclasses look up the module that they are defined in
        self._document.namespace = vars(module)
        before = sys.modules["__main__"]
        sys.modules["__main__"] = module
        examples = list(self._document.examples())
        try:
            for example in examples:
                self._evaluate(example)
        finally:
            sys.modules["__main__"] = before
            for toolkit in vars(module).values():
                if isinstance(toolkit, Toolkit):
                    toolkit.close()
        return len(examples)

    @staticmethod
    def _evaluate(example: Example) -> None:
        try:
            example.evaluate()
        except BaseException as error:
            error.add_note(f"in the example at {example.path}:{example.line}")
            raise

    def _run(self, example: Example) -> None:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self._python(example)
        self._printed = printed.getvalue()

    def _compare_text(self, example: Example) -> None:
        assert self._printed.rstrip("\n") == str(example.parsed).rstrip("\n")

    def _compare_data(self, example: Example) -> None:
        assert json.loads(self._printed) == json.loads(example.parsed)
