"""What the tools take and return."""

from typing import Literal, TypeAlias

from attrs import frozen

__all__ = ["Content", "Hit", "Page", "Recency"]

Content: TypeAlias = Literal["page", "article", "raw"]
Recency: TypeAlias = Literal["day", "week", "month", "year"]


@frozen
class Page:
    """A part of a page as text. `next_start` is where the next part begins; None at the end of the page."""

    url: str
    title: str
    text: str
    start: int
    total_chars: int
    next_start: int | None
    media_type: str
    status: int


@frozen
class Hit:
    """A page that a search found. `published` is a date, as the service says it."""

    title: str
    url: str
    snippet: str
    published: str | None
