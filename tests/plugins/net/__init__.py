"""Tests of pegboard-net."""
