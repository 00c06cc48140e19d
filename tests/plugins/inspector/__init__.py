"""The inspector: who may come in, what it tells, and the page in a browser."""
