"""What records say of a round's charges."""

from __future__ import annotations

from sqlalchemy import Connection

from equipoise.accounting import Cost, charge_of, events_from_json
from equipoise.model.rounds import GRANT
from equipoise.records.item_parts import AccountCharge
from equipoise_server.ledger import charges
from equipoise_server.ledger.account_names import analyst_account, data_account
from equipoise_server.rounds.records import RoundRecord


def charges_of_round(connection: Connection, round_id: str) -> tuple[AccountCharge, ...]:
    """Return what each account is charged for a round."""
    return tuple(AccountCharge(charge.account, charge.cost) for charge in charges.of_round(connection, round_id))


def spent_of_grant(connection: Connection, moved: RoundRecord) -> int | None:
    """Return what the data account is charged for a grant, in units of 10^-12 of rho; None for any other round."""
    if moved.terms.mechanism != GRANT:
        return None
    account = data_account(moved.account)
    (events,) = (each.events for each in charges.of_round(connection, moved.id) if each.account == account)
    return charge_of(events_from_json(events)).rho


def charges_by_analyst(connection: Connection, moved: RoundRecord) -> dict[str, tuple[str, Cost]]:
    """Return the state and the amount of each analyst's own charge, where there is one."""
    charge_of = {each.account: (each.state, each.cost) for each in charges.of_round(connection, moved.id)}
    accounts = {
        share.analyst: analyst_account(moved.account, moved.terms.unit, share.analyst)
        for share in moved.terms.shares
    }
    return {analyst: charge_of[account] for analyst, account in accounts.items() if account in charge_of}
