"""Sizes and tokens of pages, the same for every list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from equipoise.errors import InvalidArgument

DEFAULT_PAGE = 100
MAX_PAGE = 1000

Item = TypeVar("Item")


def page_limit(page_size: int) -> int:
    """Return the number of items of a page; 0 stands for 100. Raises `InvalidArgument` below 0 or above 1,000."""
    if not 0 <= page_size <= MAX_PAGE:
        raise InvalidArgument("page_size", f"must be at most {MAX_PAGE:,}")
    return page_size or DEFAULT_PAGE


def cut_page(items: Sequence[Item], limit: int, token_of: Callable[[Item], str]) -> tuple[list[Item], str]:
    """Return the first `limit` of at most `limit + 1` items, and the next page's token, empty at the end.

    Args:
        items: in the order of the list.
        limit: how many a page holds.
        token_of: gives the token that names an item.
    """
    shown = list(items[:limit])
    return shown, token_of(shown[-1]) if len(items) > limit else ""


def page_number(page_token: str) -> int:
    """Return the number that a page token is; 0 for the empty token. Raises `InvalidArgument` for other tokens."""
    if page_token and not (page_token.isascii() and page_token.isdigit() and len(page_token) < 19):
        raise InvalidArgument("page_token", "is not a page token issued by this server")
    return int(page_token or 0)
