"""Stores of conversations, the locks that keep programs apart, and how much of a long conversation is sent.

Enters: records of a conversation, one after another. Leaves: the same records, in this program and in any other one.
"""
