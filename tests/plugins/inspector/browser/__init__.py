"""The page in a browser: `nox -s inspector`. Skipped where there is none."""
