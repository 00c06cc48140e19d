"""Tests of pegboard-pytest."""
