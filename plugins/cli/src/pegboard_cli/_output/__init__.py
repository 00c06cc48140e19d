"""Output: what commands print, what they know of a tool as data, and the codes that they exit with.

In come values; out goes text in which nothing of a pack acts on a terminal. No toolkit is made here.
"""
