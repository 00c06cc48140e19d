"""The workspace itself: metadata, commands and what is in the tree agree."""
