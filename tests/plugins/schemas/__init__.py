"""Tests of pegboard-schemas."""
