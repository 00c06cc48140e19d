"""The dataclasses pack, tested with nothing but its own and the core's dependencies."""
