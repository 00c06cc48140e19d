"""What is registered: the board, groups, and what each session says of both and shows of them.

Tools enter; immutable snapshots leave.
"""
