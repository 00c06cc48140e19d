"""The pack pegboard-pydantic."""
