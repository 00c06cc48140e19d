"""How calls run: the engine, the steps of a call, its fast path, threads, loops, timers and limits.

A bound tool and arguments enter; one result leaves. The only room that loads asyncio.
"""
