"""Models: they answer a conversation, behind the servers of four providers.

They take messages of chat completions, and tools in the form of their dialect. They yield chunks of chat completions.
"""
