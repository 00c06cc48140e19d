"""Models: what answers a conversation, behind the servers of four providers.

Enters: messages of chat completions, and tools in the form of the model's dialect. Leaves: chunks of chat completions.
"""
