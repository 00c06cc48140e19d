"""Stores of conversations, the locks that keep programs apart, and how much of a long conversation is sent."""
