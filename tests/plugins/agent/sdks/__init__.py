"""The providers' own SDKs as oracles: run by `nox -s sdks`, which installs them; skipped everywhere else."""
