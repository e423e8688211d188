"""Budgets and what is spent of them: accounts and the entries of their journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from equipoise.accounting import Cost


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Account:
    """A budget account: its cap, what is spent, and what is spent or reserved, all at the cap's delta.

    `order`: the Renyi order at which it counts what rounds add, for good: a `divergence` of at most
    `max_divergence` is spent or reserved. None: rounds do not add, only the worst one counts.
    """

    name: str
    cap: Budget
    spent: Budget
    committed: Budget
    order: float | None = None
    divergence: float = 0.0
    max_divergence: float = 0.0


@dataclass(frozen=True)
class JournalEntry:
    """One line of the hash-chained budget journal; `events` is JSON. `action` is one of

    "open-account": an account's cap and how it counts, and beside which others for the same records; "set-cap":
    another cap; "reserve", "spend" and "release": a round's charge; "run": data may be touched from here on;
    "write-off": what a lost part of the journal may have spent.

    `round_id` is empty where there is none; `digest` is SHA-256 over the previous digest and this entry.
    """

    sequence: int
    time: datetime
    action: str
    account: str
    round_id: str
    cost: Cost
    events: str
    digest: bytes
