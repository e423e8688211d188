"""Compares the stored accounts with the accounts that result from replaying the journal.

The journal's chain shows that no entry was changed. The replay shows that the accounts agree with the entries: that
nobody has lowered an amount, raised a cap, settled a charge or changed its events without an entry. The entries are
replayed as an auditor replays them. The limits are not compared, because another version of the library that
converts the cap may round them differently; what fits is decided by the cap as well.
"""

from __future__ import annotations

from sqlalchemy import Connection

from equipoise.accounting import Cost, events_to_json
from equipoise.auditing.accounts import Account as ReplayedAccount
from equipoise.auditing.accounts import Accounts
from equipoise.errors import DataLoss, VerificationFailed
from equipoise_server.ledger import journal
from equipoise_server.ledger.account_names import analyst_account, data_account, holder
from equipoise_server.ledger.accounts import Account, all_accounts
from equipoise_server.ledger.caps import combined
from equipoise_server.ledger.charges import Charge, all_charges


def check_accounts(connection: Connection) -> None:
    """Check the journal's chain, and every account against the journal. Raises `DataLoss`, naming what is wrong."""
    accounts = Accounts()
    try:
        for _ in accounts.moments(journal.verified(connection)):
            pass
    except VerificationFailed as error:
        raise DataLoss(error.message) from None
    replayed, charges = dict(accounts.by_name), all_charges(connection)
    for account in all_accounts(connection):
        from_journal = replayed.pop(account.name, None)
        if from_journal is None or not _agree(from_journal, account, charges.get(account.name, {})):
            raise DataLoss(f"account {account.name} does not say what the budget journal says")
    if replayed:
        raise DataLoss(f"account {min(replayed)} is in the budget journal, but not in the store")


def _agree(from_journal: ReplayedAccount, account: Account, charges: dict[str, Charge]) -> bool:
    """Return whether an account has the composition, the cap, the charges and the totals that its entries give."""
    cap = account.cap
    counting = (account.composition, cap.epsilon, cap.delta, cap.order)
    if (from_journal.composition, from_journal.cap.epsilon, from_journal.cap.delta, from_journal.order) != counting:
        return False
    settled = {
        round_id: (charge.state, charge.cost, events_to_json(charge.mechanism, charge.parts))
        for round_id, charge in from_journal.charges.items()
    }
    if settled != {round_id: (each.state, each.cost, each.events) for round_id, each in charges.items()}:
        return False
    of_analyst = holder(account.name)
    named = data_account(account.account) if of_analyst is None else analyst_account(account.account, *of_analyst)
    if account.name != named:
        return False

    def total(*states: str) -> Cost:
        live = [charge.cost for charge in from_journal.charges.values() if charge.state in states]
        return combined([*from_journal.lost, *live], account.composition, cap)

    return (total("spent"), total("spent", "reserved")) == (account.spent, account.committed)
