"""Types: the schema is a promise."""
