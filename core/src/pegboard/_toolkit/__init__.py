"""The toolkit and its sessions: the one room that joins all other rooms.

Programs enter here, by `Toolkit` and `Session`.
"""
