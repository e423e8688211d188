"""What an open grant has spent: counted before the worker reads anything, and refused where it is too much."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise_server.sessions.pending_statements import PendingStatement


class GrantSpending:
    """The spending of one session: by the account of a grant, and without one, where nothing is paid."""

    def __init__(self, account: GrantAccount | None = None) -> None:
        self.account = account
        self._ahead = None if account is None else account.copy()

    def check(self, waiting: Collection[PendingStatement], wanted: Wanted | None) -> None:
        """Check that one more statement fits behind those that wait to be taken, and count on it from then on.

        Whether those are paid meanwhile makes no difference: what a statement costs depends on their order alone.

        Args:
            waiting: the statements that were accepted and are not paid yet, in their order.
            wanted: what is asked of a grant; None elsewhere.

        Raises:
            BudgetExhausted: it costs more than what will be left.
        """
        if self.account is None or self._ahead is None or wanted is None:
            return
        if self._ahead.asked != self.account.asked + len(waiting):
            # Some of them were forgotten, because their stream has ended.
            self._ahead = self.account.copy()
            for pending in waiting:
                if pending.wanted is not None:
                    self._ahead.pay(pending.wanted)
        self._ahead.pay(wanted)

    def pay(self, taken: Iterable[PendingStatement]) -> None:
        """Count what statements cost that are taken now, in their order. `check` let each of them in."""
        for pending in taken:
            if self.account is not None and pending.wanted is not None:
                pending.cost = self.account.pay(pending.wanted)
