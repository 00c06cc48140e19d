"""The toolkit and its sessions: the one room that joins all the others.

Programs enter here, by `Toolkit` and `Session`.
"""
