"""Settings of the whole suite."""

from hypothesis import settings

# How long an example takes says more about a shared machine than about the code.
settings.register_profile("pegboard", settings(), deadline=None)
settings.load_profile("pegboard")
