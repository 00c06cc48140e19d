"""The documentation: every example runs, every printed result is what is printed."""
