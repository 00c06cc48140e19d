"""The shape of the source: who may import whom, and what importing costs."""
