"""Budgets and what is spent of them: accounts and the entries of their journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import StrEnum
from types import MappingProxyType

from equipoise.accounting import Cost

# For which units a round counts on an analyst's accounts, by its own unit. A statement that is changed changes what
# its analyst asks, so a round that protects all of that protects each statement. The converse does not hold.
COUNTED_FOR = MappingProxyType({"query": ("query",), "analyst": ("analyst", "query")})


@dataclass(frozen=True)
class Budget:
    """An (epsilon, delta) pair."""

    epsilon: float
    delta: float


class Danger(StrEnum):
    """What an operator has to accept by its name before anything is charged (`model.dangers`).

    EPSILON: an epsilon above 10, of the data or of analysts. DELTA: a delta of 1 in as many as are protected, or
    more. NOISE: answers are expected to err by less than one person's records. PROMISE: no interval is promised to
    be narrower than everything.
    """

    EPSILON = "epsilon"
    DELTA = "delta"
    NOISE = "noise"
    PROMISE = "promise"


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What is counted where rounds add, and the two limits, each of which is held for itself.

    `order`: the Renyi order at which the account counts, fixed with both limits when it was opened. None: rounds do
    not add, only the worst one counts.
    """

    order: float | None = None
    divergence: float = 0.0
    max_divergence: float = 0.0
    delta: float = 0.0
    max_delta: float = 0.0

    @property
    def in_words(self) -> str:
        """Divergence and delta, each of its limit, and the order, as every command, page and refusal says it."""
        if self.order is None:
            return "only the worst round counts"
        divergence = f"divergence {counted_digits(self.divergence)} of {left_digits(self.max_divergence)}"
        delta = f"delta {counted_digits(self.delta)} of {left_digits(self.max_delta)}"
        return f"{divergence} and {delta} at Renyi order {self.order:g}"

    @property
    def left_in_words(self) -> str:
        """What is left of both limits, each for itself."""
        if self.order is None:
            return "the whole cap: only the worst round counts"
        divergence, delta = self.max_divergence - self.divergence, self.max_delta - self.delta
        return f"divergence {left_digits(max(divergence, 0.0))} and delta {left_digits(max(delta, 0.0))}"


@dataclass(frozen=True)
class Account(Counted):
    """A budget account: its cap, what is spent, and what is spent or reserved, all at the cap's delta.

    What is counted is spent or reserved.
    """

    name: str
    cap: Budget
    spent: Budget
    committed: Budget


@dataclass(frozen=True)
class AccountCharge(Counted):
    """What one round counts on one account, in the account's own way.

    `budget`: what the round alone means as a pair at the cap's delta. `refusal`: of a plan, why the account does
    not admit the round now; empty where it does, and of a round that is open.
    """

    account: str
    cap: Budget
    budget: Budget
    refusal: str = ""

    @property
    def all_in_words(self) -> str:
        """What the round counts on the account, of its limits, and what it alone means as a pair of the cap."""
        alone, cap = (f"({each.epsilon:.4g}, {each.delta:.3g})" for each in (self.budget, self.cap))
        return f"{self.account}: {self.in_words}; alone {alone} of the cap's {cap}"


@dataclass(frozen=True)
class JournalEntry:
    """One line of the hash-chained budget journal; `events` is JSON. `action` is one of

    "open-account": an account's cap and how it counts, and beside which others for the same records; "set-cap":
    another cap; "reserve", "spend" and "release": a round's charge; "reduce": what is left of a grant's charge once
    it can spend no more; "run": data may be touched from here on; "write-off": what a lost part of the journal may
    have spent.

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


def counted_digits(amount: float) -> str:
    """Write an amount that counts in six digits that are not below it."""
    return _six_digits(amount, ROUND_CEILING)


def left_digits(amount: float) -> str:
    """Write a limit, or what is left of it, in six digits that are not above it."""
    return _six_digits(amount, ROUND_FLOOR)


def _six_digits(amount: float, rounding: str) -> str:
    return f"{float(Context(prec=6, rounding=rounding).create_decimal(Decimal(repr(amount)))):g}"
