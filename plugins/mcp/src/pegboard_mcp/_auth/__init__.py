"""Access: addresses, tokens and callers of a served toolkit; OAuth at a server.

Requests and tokens enter; callers and their sessions leave.
"""
