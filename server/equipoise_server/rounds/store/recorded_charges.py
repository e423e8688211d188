"""What records say of a round's charges."""

from __future__ import annotations

from sqlalchemy import Connection

from equipoise.accounting import Cost
from equipoise.records.item_parts import AccountCharge
from equipoise_server.ledger import charges
from equipoise_server.ledger.account_names import analyst_account
from equipoise_server.rounds.records import RoundRecord


def charges_of_round(connection: Connection, round_id: str) -> tuple[AccountCharge, ...]:
    """Return what each account is charged for a round."""
    return tuple(AccountCharge(charge.account, charge.cost) for charge in charges.of_round(connection, round_id))


def charges_by_analyst(connection: Connection, moved: RoundRecord) -> dict[str, tuple[str, Cost]]:
    """Return the state and the amount of each analyst's own charge, where there is one."""
    charge_of = {each.account: (each.state, each.cost) for each in charges.of_round(connection, moved.id)}
    accounts = {
        share.analyst: analyst_account(moved.account, moved.terms.unit, share.analyst)
        for share in moved.terms.shares
    }
    return {analyst: charge_of[account] for analyst, account in accounts.items() if account in charge_of}
