"""The `pegboard` command."""
