"""Tests of pegboard-otel."""
