"""The cost that a round counts on each of its accounts, and whether the accounts have room for it.

Every function works in the transaction of the connection that it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.errors import BudgetExhausted, NotFound
from equipoise.model.accounts import AccountCharge
from equipoise.model.rounds import MechanismPlan, Terms
from equipoise_server.ledger.account_names import holder
from equipoise_server.ledger.accounts import Account, check_room, open_account, unopened
from equipoise_server.ledger.accounts import account as read_account
from equipoise_server.ledger.caps import Cap, Composition, account_charge
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.terms.checks import UNITS, adds, analyst_accounts, charges_of
from equipoise_server.rounds.terms.open_charges import pending_costs
from equipoise_server.storage.tables.round import datasets


@dataclass(frozen=True)
class Asked:
    """The cost that a round counts on one account, and the costs that other open rounds will reserve there."""

    on: Account
    cost: Cost
    pending: Sequence[Cost]

    def shown(self, refusal: str = "") -> AccountCharge:
        """Return the charge as operators and auditors see it, with the account's limits."""
        return account_charge(self.on.name, self.on.cap, self.cost, refusal)

    @property
    def refusal(self) -> str:
        """The reason why the account has no room; empty where it has room."""
        try:
            check_room(self.on, self.pending, self.cost)
        except BudgetExhausted as error:
            return error.message
        return ""


def open_accounts(connection: Connection, account: str, terms: Terms, time: datetime) -> None:
    """Open the accounts of a round's analysts where they are missing. `account`: that of the round's dataset."""
    caps = _analyst_caps(connection, account)
    for name, unit in analyst_accounts(account, terms).items():
        open_account(connection, time, name, account=account, composition=UNITS[unit], cap=caps[unit])


def check_accounts(connection: Connection, account: str, terms: Terms, plan: MechanismPlan) -> None:
    """Check that a round to be opened has room on its dataset's account, in all parts.

    Raises:
        BudgetExhausted: an account has no room; the message names the account.
    """
    for asked in _charges_asked(connection, account, terms, plan):
        check_room(asked.on, asked.pending, asked.cost)


def planned_charges(
    connection: Connection, account: str, terms: Terms, plan: MechanismPlan
) -> tuple[AccountCharge, ...]:
    """Return the charges of a plan on the data account and on one analyst account.

    The analyst account is the first one that refuses the round, or the first one if all admit the round. An account
    that does not exist yet is treated as it would be opened.

    Returns:
        One charge for each of the two accounts, with the reason why the account refuses it now, if it does.
    """
    shown: dict[bool, AccountCharge] = {}
    for asked in _charges_asked(connection, account, terms, plan):
        of_data = holder(asked.on.name) is None
        if of_data in shown and shown[of_data].refusal:
            continue
        refusal = asked.refusal
        if of_data not in shown or refusal:
            shown[of_data] = asked.shown(refusal)
    return tuple(shown.values())


def round_charges(connection: Connection, opened: RoundRecord) -> tuple[AccountCharge, ...]:
    """Return the charges of an opened round on the data account and on its first analyst account."""
    charges = charges_of(opened.account, opened.terms, opened.plan)[:2]
    accounts = [read_account(connection, charge.account) for charge in charges]
    return tuple(
        Asked(on, charge.counted(on.cap.order), ()).shown() for charge, on in zip(charges, accounts, strict=True)
    )


def _charges_asked(connection: Connection, account: str, terms: Terms, plan: MechanismPlan) -> Iterator[Asked]:
    caps, charges = _analyst_caps(connection, account), charges_of(account, terms, plan)
    units = analyst_accounts(account, terms)

    def standing(name: str) -> Account:
        try:
            return read_account(connection, name)
        except NotFound:
            unit = units[name]
            return unopened(connection, name, account=account, composition=UNITS[unit], cap=caps[unit])

    held = {charge.account: standing(charge.account) for charge in charges}
    # Under parallel composition only the worst round counts, so this one must fit by itself, whatever others take.
    adding = [each for each in held.values() if each.composition is Composition.SEQUENTIAL]
    pending = pending_costs(connection, account, adding)
    for charge in charges:
        on = held[charge.account]
        yield Asked(on, charge.counted(on.cap.order), [*pending.get(on.name, {}).values()])


def _analyst_caps(connection: Connection, account: str) -> dict[str, Cap]:
    """Return the caps under which the analysts' accounts of `account` are opened, by their unit."""
    caps = datasets.c.analyst_epsilon, datasets.c.analyst_delta, datasets.c.analyst_order
    row = connection.execute(select(*caps).where(datasets.c.name == account)).one()
    return {
        unit: Cap(row.analyst_epsilon, row.analyst_delta, row.analyst_order if adds(unit) else None)
        for unit in UNITS
    }
