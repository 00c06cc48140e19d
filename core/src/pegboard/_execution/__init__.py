"""How calls run: the straight road of a call, its run and its stages, threads, loops, timers and limits.

A bound tool and arguments enter; one result leaves. The only room that loads asyncio.
"""
