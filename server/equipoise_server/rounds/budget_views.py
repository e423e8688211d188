"""The operators' and auditors' views of accounts and journal, and the operators' change of a cap."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from equipoise.model.accounts import Account, Budget, Danger, JournalEntry
from equipoise.model.dangers import check_accepted, check_named_once, dangers_of_new_cap
from equipoise.records.codec import REAL, TEXT, Codec, object_codec, optional
from equipoise.records.public_facts import ACCEPTED, BUDGET
from equipoise_server.ledger import accounts, journal
from equipoise_server.ledger.account_names import holder
from equipoise_server.ledger.adjustments import set_cap
from equipoise_server.ledger.caps import checked_cap, counted, pair_of
from equipoise_server.rounds.store.datasets import most_people, read_dataset
from equipoise_server.rounds.store.rounds import canonical
from equipoise_server.rounds.terms.open_charges import pending_costs
from equipoise_server.storage.idempotency import make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.paging import cut_page, page_limit, page_number

# How an account is kept as the answer to the request that gave it another cap.
ACCOUNT: Codec[Account] = object_codec(
    Account,
    {
        "account": ("name", TEXT),
        "cap": ("cap", BUDGET),
        "spent": ("spent", BUDGET),
        "committed": ("committed", BUDGET),
        "order": ("order", optional(REAL)),
        "divergence": ("divergence", REAL),
        "max_divergence": ("max_divergence", REAL),
        "delta": ("delta", REAL),
        "max_delta": ("max_delta", REAL),
    },
)


@dataclass(frozen=True)
class Budgets:
    """Views of the accounts and of the journal of one store."""

    operations: Operations

    def accounts(self, dataset: str, page_size: int = 0, page_token: str = "") -> tuple[list[Account], str]:
        """Return all parts of a dataset's account in the order of their names. Raises `NotFound`."""
        limit = page_limit(page_size)
        with self.operations.store.read() as connection:
            shared = read_dataset(connection, dataset).account
            listed = accounts.page(connection, shared, page_token, limit + 1)
        return cut_page([shown_account(account) for account in listed], limit, lambda record: record.name)

    def journal(self, page_size: int = 0, page_token: str = "") -> tuple[list[JournalEntry], str]:
        """Return the journal from its beginning; a page's token is its last sequence number."""
        limit, after = page_limit(page_size), page_number(page_token)
        with self.operations.store.read() as connection:
            entries = journal.page(connection, after, limit + 1)
        return cut_page(entries, limit, lambda record: str(record.sequence))

    def history(self, account: str, page_size: int = 0, page_token: str = "") -> tuple[list[JournalEntry], str]:
        """Return the journal's entries of one account. Raises `NotFound`."""
        limit, after = page_limit(page_size), page_number(page_token)
        with self.operations.store.read() as connection:
            accounts.account(connection, account)
            entries = journal.of_account(connection, account, after, limit + 1)
        return cut_page(entries, limit, lambda record: str(record.sequence))

    def set_cap(
        self, account: str, cap: Budget, request_id: str, caller: str = "", accepted: tuple[Danger, ...] = ()
    ) -> Account:
        """Give an account another cap, and journal the change.

        Args:
            account: the account's name.
            cap: the new cap, epsilon and delta.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
            accepted: the dangers of the cap that the operator knows and wants.

        Raises:
            NotFound: there is no such account.
            InvalidArgument: the cap is below what is committed already, or has a danger that is not accepted.
            WrongState: rounds that are open could no longer be sealed; some of them must be aborted first.
        """
        checked = checked_cap("cap", cap.epsilon, cap.delta)
        check_named_once(accepted, "accepted")
        wanted = Budget(checked.epsilon, checked.delta)
        content = canonical({"cap": BUDGET.encode(wanted), "accepted": ACCEPTED.encode(accepted)})
        request = make_request(f"operator/{caller}", request_id, "set_cap", account, content)

        def work(connection: Connection, now: datetime) -> str:
            standing = accounts.account(connection, account)
            people = most_people(connection, standing.account) if holder(account) is None else None
            check_accepted(dangers_of_new_cap(wanted, people), accepted)
            pending = pending_costs(connection, standing.account, [standing])
            set_cap(connection, account, checked, now, pending[account], accepted)
            return ACCOUNT.to_text(shown_account(accounts.account(connection, account)))

        return self.operations.carry_out(request, work, lambda _, kept: ACCOUNT.from_text(kept, "the account"))


def shown_account(account: accounts.Account) -> Account:
    """Return an account as operators and auditors see it: what is spent as pairs at the cap's delta."""
    cap, counts = Budget(account.cap.epsilon, account.cap.delta), counted(account.cap, account.committed)
    return Account(
        account.name,
        cap,
        spent=pair_of(account.cap, account.spent),
        committed=pair_of(account.cap, account.committed),
        order=counts.order,
        divergence=counts.divergence,
        max_divergence=counts.max_divergence,
        delta=counts.delta,
        max_delta=counts.max_delta,
    )
