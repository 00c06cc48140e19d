"""What hangs there: the board, groups, views and permissions.

Tools enter; immutable snapshots leave.
"""
