"""The public conformance suite against this pack: `nox -s conformance`."""
