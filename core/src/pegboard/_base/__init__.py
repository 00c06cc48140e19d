"""What everything else stands on: errors, markers, names, effects, records.

Imports nothing of ours, so that nothing below ever has to name something above.
"""
