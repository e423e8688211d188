"""What statements of a grant cost: what they are wanted to be known by, less what the analyst knows already.

A statement is offered `r` to be known as precisely as `r` alone would buy. What it costs is what is missing:
nothing where earlier answers of the same grant tell it as precisely or more precisely, and otherwise what buys the
rest, in noise of its own that is combined with them by inverse variance. Costs are functions of what was asked, in
exact fractions, so that analyst, server and auditor come to the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from equipoise.accounting import PrivacyFilter
from equipoise.queries.grant_reach import PaidNoise
from equipoise.queries.meanings import Meaning
from equipoise.queries.own_precision import MeasuredPrecision, OwnPrecision


class Wanted(NamedTuple):
    """A statement of a grant: what it asks, and as precisely as `rho` alone would buy, in units of 10^-12.

    `measured`: what the dataset's standing measurement tells of it, at no cost; None: nothing.
    """

    meaning: Meaning
    rho: int
    measured: MeasuredPrecision | None = None


class GrantAccount:
    """One grant: its privacy filter, and how precisely what was paid for is known.

    `asked`: how many statements were paid, also with nothing. `noises`: what was drawn, by the keys of meanings.
    """

    def __init__(self, total: int) -> None:
        self.filter = PrivacyFilter(total)
        self.precision = OwnPrecision()
        self.asked = 0
        self.noises: dict[bytes, PaidNoise] = {}

    def copy(self) -> GrantAccount:
        """Return a copy, which goes on by itself."""
        made = GrantAccount(self.filter.total)
        made.filter.spent, made.filter.payments = self.filter.spent, self.filter.payments
        made.precision, made.asked = self.precision.copy(), self.asked
        made.noises = self.noises.copy()
        return made

    def cost(self, wanted: Wanted) -> int:
        """Return what a statement costs now, in units of 10^-12 of rho: what is missing, rounded up; or nothing."""
        missing = wanted.rho - wanted.meaning.moved * self.precision.known(wanted.meaning, wanted.measured)
        return max(0, math.ceil(missing))

    def pay(self, wanted: Wanted) -> int:
        """Spend what a statement costs, before the data are touched, and return it.

        Args:
            wanted: what is asked.

        Raises:
            BudgetExhausted: it costs more than what is left. Nothing is spent, and nothing counts as asked.
        """
        cost = self.cost(wanted)
        self.filter.pay(cost)
        if cost:
            self.precision.learn(wanted.meaning, cost)
            own, key = Fraction(cost, wanted.meaning.moved), wanted.meaning.key
            before = self.noises.get(key, PaidNoise(len(self.noises) + 1, own, Fraction(0)))
            self.noises[key] = before._replace(precision=before.precision + own)
        self.asked += 1
        return cost
