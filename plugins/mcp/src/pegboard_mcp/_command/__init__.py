"""`pegboard serve`: the command, the program that it serves, and the entries of clients' configurations.

Arguments enter; a server that runs, or an entry, leaves.
"""
