"""A module that fails when it is imported, behind an import string."""

from tests.support.failing import boom

boom()
