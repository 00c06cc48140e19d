"""The pack pegboard-msgspec."""
