"""What `nox -s release` checks and writes."""
