"""A module that fails when it is imported, behind an import string."""

from tests.ecosystem.places import boom

boom()
