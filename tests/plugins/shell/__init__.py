"""The pack `pegboard-shell`."""
