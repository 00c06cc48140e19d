"""Stores of conversations, the locks between programs, and the trimming of long conversations.

A store takes the records of a conversation, one after another, and returns them in this program and in any other one.
"""
