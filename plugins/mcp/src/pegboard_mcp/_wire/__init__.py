"""What client and server share: processes, pipes and streams to a server, loops, the SDK, and reasons of failures.

Messages and bytes enter and leave; nothing here knows a tool, a toolkit or a session.
"""
