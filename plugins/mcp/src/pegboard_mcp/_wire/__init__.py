"""What both sides stand on: processes, pipes and streams to a server, loops, the SDK, and why something went wrong.

Messages and bytes enter and leave; nothing here knows a tool, a board or a session.
"""
