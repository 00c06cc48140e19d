"""Who may come in, and as whom: addresses, tokens and callers of a served board; OAuth at a server.

Requests and tokens enter; callers and their sessions leave.
"""
