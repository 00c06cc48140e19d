"""`pegboard serve`: the command, and the entries in the configurations of clients.

Arguments enter; a server that runs, or an entry, leaves.
"""
