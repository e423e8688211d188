"""The privacy filter of a grant: questions chosen one after another, each with its own cost, within one total.

**Theorem.** Let mechanisms `M_1, M_2, ...` be run one after another. Which one is run, with which input and at
which cost `rho_k`, may depend on everything that was published before, and `M_k` is `rho_k`-zCDP given that. If on
every course of events `sum rho_k <= rho`, all that is published is `rho`-zCDP together, whenever it stops
(Feldman & Zrnic 2021 for one Renyi order; Whitehouse, Ramdas, Rogers & Wu 2023 for zCDP). By induction: given what
was published, `exp((a - 1) (L_k - a rho_k))` of the privacy loss `L_k` has a mean of at most 1, at each order `a`.
So the product over all `k` is a supermartingale, and on every course `exp((a - 1) a sum rho_k)` is at most
`exp((a - 1) a rho)`.

**Assumptions**, each of which the code keeps:

1. The total is fixed before the first question, from public facts.
2. Before a question is answered its cost is compared with what is left. A refusal depends on nothing else.
3. The cost of a question is a function of what was asked, never of the table.
4. What earlier answers tell costs nothing: they were published already, so an answer made of them is
   post-processing. Noise that is drawn anew, also for a question that was asked before, costs all that it is worth
   by itself: `rho` of independent noises on the same counts add, as their precisions do.

What is left of a total was never spent: the theorem bounds what was published by the sum itself. So an account that
adds costs may count the sum instead of the total, once no more questions can come.
"""

from __future__ import annotations

from typing import NamedTuple

from equipoise.errors import BudgetExhausted


class Offer(NamedTuple):
    """A statement, by its bytes, and how precisely it is wanted: as `rho` alone would buy, in units of 10^-12."""

    question: bytes
    rho: int


class PrivacyFilter:
    """The filter of one grant: its total, and what was spent in how many payments, in units of 10^-12 of rho.

    >>> account = PrivacyFilter(total=10)
    >>> account.pay(6)
    >>> account.left, account.payments
    (4, 1)
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.spent = self.payments = 0

    @property
    def left(self) -> int:
        """The part of the total that is not spent, in units of 10^-12 of rho."""
        return self.total - self.spent

    def check(self, cost: int) -> None:
        """Check that a cost fits into what is left. Nothing is spent.

        Args:
            cost: in units of 10^-12 of rho, at least 0.

        Raises:
            BudgetExhausted: it is more than what is left.
        """
        if cost > self.left:
            raise BudgetExhausted(f"your grant has rho {in_rho(self.left)} left, and {in_rho(cost)} is asked of it")

    def pay(self, cost: int) -> None:
        """Spend a cost, before the data are touched. Raises `BudgetExhausted`, as `check` does.

        Args:
            cost: in units of 10^-12 of rho, at least 0.
        """
        self.check(cost)
        self.spent += cost
        self.payments += cost > 0


def in_rho(units: int) -> str:
    """Return an amount of rho in words, to as many digits as whole units have.

    >>> in_rho(2_500_000_000), in_rho(1)
    ('0.0025', '0.000000000001')
    """
    return f"{units // 10**12}.{units % 10**12:012d}".rstrip("0").rstrip(".") if units else "0"
