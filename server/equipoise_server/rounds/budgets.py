"""What operators and auditors see of both ledgers."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise_server.ledger import accounts, journal
from equipoise_server.ledger.conversion import epsilon_for
from equipoise_server.mechanisms.interface import Budget
from equipoise_server.rounds.paging import cut_page, page_limit
from equipoise_server.rounds.records import AccountRecord, JournalRecord
from equipoise_server.rounds.rows import read_dataset
from equipoise_server.storage.store import Store


@dataclass(frozen=True)
class Budgets:
    """Views of the accounts and of the journal of one store."""

    store: Store

    def accounts(self, dataset: str, page_size: int, page_token: str) -> tuple[list[AccountRecord], str]:
        """The accounts of a dataset in the order of their names. Raises `NotFound`."""
        limit = page_limit(page_size)
        with self.store.read() as connection:
            read_dataset(connection, dataset)
            found = accounts.page(connection, dataset, page_token, limit + 1)
        return cut_page([_converted(account) for account in found], limit, lambda record: record.name)

    def journal(self, page_size: int, page_token: str) -> tuple[list[JournalRecord], str]:
        """The journal from its beginning; a page's token is its last sequence number."""
        limit = page_limit(page_size)
        if page_token and not (page_token.isascii() and page_token.isdigit() and len(page_token) < 19):
            raise InvalidArgument("page_token", "is not one that this server gave")
        with self.store.read() as connection:
            found = journal.page(connection, int(page_token or 0), limit + 1)
        return cut_page(found, limit, lambda record: str(record.sequence))


def _converted(account: accounts.Account) -> AccountRecord:
    cap = Budget(account.cap.epsilon, account.cap.delta)
    return AccountRecord(
        account.name,
        cap,
        spent=Budget(epsilon_for(account.spent, cap.delta), cap.delta),
        committed=Budget(epsilon_for(account.committed, cap.delta), cap.delta),
    )
