"""What an open grant has spent: counted before the worker reads anything, and refused where it is too much."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from equipoise.accounting import Offer, PrivacyFilter
from equipoise_server.sessions.pending_statements import PendingStatement


@dataclass(frozen=True)
class GrantSpending:
    """The spending of one session: by the filter of a grant, and without one, where nothing is paid."""

    account: PrivacyFilter | None = None

    def check(self, waiting: Iterable[PendingStatement], offer: Offer) -> None:
        """Check that one more statement fits behind those that wait to be taken. Raises `BudgetExhausted`."""
        if self.account is not None:
            self.account.check(offer, [pending.offer for pending in waiting])

    def pay(self, taken: Iterable[PendingStatement]) -> None:
        """Count what statements cost that are taken now, in their order. `check` let each of them in."""
        if self.account is not None:
            for pending in taken:
                pending.cost = self.account.pay(pending.offer)
