"""Trials of a pack: its wheel in fresh environments, each with a Python and a core, with conformance and its own tests.

In comes the pack's folder; out go outcomes, one for each environment.
"""
