"""How far a source has been read: what it reports while it reads, for whoever waits."""

from __future__ import annotations

from collections.abc import Callable

# Called from any thread, a few times a second, with how much is done, and of how much.
OnRead = Callable[[int, int], None]


def unseen(done: int, total: int) -> None:
    """Report `done` of `total` rows to nobody."""
