"""Other people's clients in front of one board: whether each of them reads the same answers."""
