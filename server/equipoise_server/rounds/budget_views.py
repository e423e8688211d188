"""What operators and auditors see of both ledgers, and how operators change a cap."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from equipoise.accounting import RHO_UNIT, Cost
from equipoise.model.accounts import Account, Budget, JournalEntry
from equipoise_server.ledger import accounts, journal
from equipoise_server.ledger.adjustments import set_cap
from equipoise_server.ledger.caps import Cap, epsilon_under
from equipoise_server.rounds.store.rounds import canonical, read_dataset
from equipoise_server.rounds.terms.open_charges import pending_costs
from equipoise_server.storage.crash_points import CrashPoint, reached
from equipoise_server.storage.idempotency import Request, first_answer, keep_answer
from equipoise_server.storage.paging import cut_page, page_limit, page_number
from equipoise_server.storage.store import Store


@dataclass(frozen=True)
class Budgets:
    """Views of the accounts and of the journal of one store."""

    store: Store

    def accounts(self, dataset: str, page_size: int, page_token: str) -> tuple[list[Account], str]:
        """The accounts of a dataset in the order of their names. Raises `NotFound`."""
        limit = page_limit(page_size)
        with self.store.read() as connection:
            read_dataset(connection, dataset)
            found = accounts.page(connection, dataset, page_token, limit + 1)
        return cut_page([_converted(account) for account in found], limit, lambda record: record.name)

    def journal(self, page_size: int, page_token: str) -> tuple[list[JournalEntry], str]:
        """The journal from its beginning; a page's token is its last sequence number."""
        limit, after = page_limit(page_size), page_number(page_token)
        with self.store.read() as connection:
            found = journal.page(connection, after, limit + 1)
        return cut_page(found, limit, lambda record: str(record.sequence))

    def history(self, account: str, page_size: int, page_token: str) -> tuple[list[JournalEntry], str]:
        """The journal's entries of one account. Raises `NotFound`."""
        limit, after = page_limit(page_size), page_number(page_token)
        with self.store.read() as connection:
            accounts.account(connection, account)
            found = journal.of_account(connection, account, after, limit + 1)
        return cut_page(found, limit, lambda record: str(record.sequence))

    def set_cap(self, account: str, cap: Cap, request: Request, now: datetime) -> Account:
        """Give an account another cap. Raises `NotFound`, `InvalidArgument`, `AlreadyExists`, `WrongState`.

        A crash before the commit means: the old cap holds, and the same request will be carried out.
        """
        with self.store.write() as connection:
            if (known := first_answer(connection, request)) is not None:
                return _record_from_json(known)
            held = accounts.account(connection, account)
            pending = pending_costs(connection, held.dataset, [held])
            set_cap(connection, account, cap, now, pending[account])
            record = _converted(accounts.account(connection, account))
            keep_answer(connection, request, canonical(asdict(record)), now)
            reached(CrashPoint.CAP_WRITTEN)
        reached(CrashPoint.CAP_COMMITTED)
        return record


def _record_from_json(text: str) -> Account:
    fields: dict[str, Any] = json.loads(text)
    amounts = {name: Budget(**fields[name]) for name in ("cap", "spent", "committed")}
    return Account(**(fields | amounts))


def _as_pair(cap: Cap, total: Cost) -> Budget:
    """An amount at the cap's delta; of nothing there is no delta either."""
    return Budget(epsilon_under(cap, total), cap.delta) if total != Cost() else Budget(0.0, 0.0)


def _converted(account: accounts.Account) -> Account:
    cap = Budget(account.cap.epsilon, account.cap.delta)
    return Account(
        account.name,
        cap,
        spent=_as_pair(account.cap, account.spent),
        committed=_as_pair(account.cap, account.committed),
        order=account.cap.order,
        divergence=account.committed.divergence / RHO_UNIT,
        most_divergence=account.limit.divergence / RHO_UNIT,
    )
