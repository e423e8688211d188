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
4. A question that was answered before is answered by the same numbers again. They were published already, so the
   second answer is post-processing and costs nothing. Whoever offers more for it than before gets fresh noise, and
   pays all of the offer.

What is left of a total was never spent: the theorem bounds what was published by the sum itself. So an account that
adds costs may count the sum instead of the total, once no more questions can come.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from equipoise.errors import BudgetExhausted


class Offer(NamedTuple):
    """A question, named by its bytes, and what it may cost, above 0 in units of 10^-12 of rho."""

    question: bytes
    rho: int


class PrivacyFilter:
    """The filter of one grant: its total, what was spent in how many payments, and on which questions.

    >>> account = PrivacyFilter(total=10)
    >>> account.pay(Offer(b"how many?", 6)), account.pay(Offer(b"how many?", 6)), account.left
    (6, 0, 4)
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.spent = self.payments = 0
        self._paid: dict[bytes, int] = {}

    @property
    def left(self) -> int:
        """The part of the total that is not spent, in units of 10^-12 of rho."""
        return self.total - self.spent

    def cost(self, offer: Offer) -> int:
        """Return what an offer costs now: nothing if no less was paid for the question before, else all of it."""
        return 0 if offer.rho <= self.paid_for(offer.question) else offer.rho

    def paid_for(self, question: bytes) -> int:
        """Return the most that was paid for a question at once; 0 if it was never answered."""
        return self._paid.get(sha256(question).digest(), 0)

    def check(self, offer: Offer, before: Iterable[Offer] = ()) -> None:
        """Check that an offer fits behind others that are not paid yet. Nothing is spent.

        Args:
            offer: what is asked.
            before: what will be paid before it, in order; each fits.

        Raises:
            BudgetExhausted: it costs more than will be left then. What is said is the same whether or not those
                before it are paid meanwhile.
        """
        paid: dict[bytes, int] = {}
        left, cost = self.left, 0
        for each in (*before, offer):
            left -= cost
            cost = 0 if each.rho <= paid.get(each.question, 0) else self.cost(each)
            paid[each.question] = max(each.rho, paid.get(each.question, 0))
        if cost > left:
            raise BudgetExhausted(f"your grant has rho {in_rho(left)} left, and {in_rho(cost)} is asked of it")

    def pay(self, offer: Offer) -> int:
        """Spend what an offer costs, before the data are touched, and return it. Raises `BudgetExhausted`."""
        cost = self.cost(offer)
        self.check(offer)
        if cost:
            self._paid[sha256(offer.question).digest()] = offer.rho
            self.spent += cost
            self.payments += 1
        return cost


def in_rho(units: int) -> str:
    """Return an amount of rho in words, to as many digits as whole units have.

    >>> in_rho(2_500_000_000), in_rho(1)
    ('0.0025', '0.000000000001')
    """
    return f"{units // 10**12}.{units % 10**12:012d}".rstrip("0").rstrip(".") if units else "0"
