"""What tests of this folder share."""

from tests.support.plugin_site import site

__all__ = ["site"]
