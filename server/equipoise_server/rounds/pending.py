"""What rounds that are open will reserve when they are sealed.

On every account, what is committed and what open rounds will reserve fit under the cap together. Opening a round
and setting a cap see to that; sealing moves an amount from the one to the other, and every other step only takes
away. So each open round can be sealed, in any order, and no analyst's account ever refuses a round in which others
take part. Only what is written off in a repair can come in between.

Works in the transaction of the connection it is given. Writing transactions take turns, so what is found in one
stays true until it commits.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise_server.ledger.accounts import Account
from equipoise_server.ledger.charges import Charge
from equipoise_server.rounds.rows import round_records
from equipoise_server.rounds.states import RoundState
from equipoise_server.rounds.terms import charges_of
from equipoise_server.storage.tables import rounds

Pending = Mapping[str, Mapping[str, Charge]]  # by account, then by round, oldest first


def pending_charges(connection: Connection, dataset: str) -> Pending:
    """The charges of a dataset's open rounds."""
    query = select(rounds).where(rounds.c.dataset == dataset, rounds.c.state == RoundState.OPEN.value)
    found: dict[str, dict[str, Charge]] = {}
    for record in round_records(connection, connection.execute(query.order_by(rounds.c.position))):
        for charge in charges_of(record.terms, record.plan):
            found.setdefault(charge.account, {})[record.id] = charge
    return found


def pending_on(held: Account, pending: Pending) -> dict[str, Cost]:
    """What of it one account will hold, by round, as the account counts."""
    return {round_id: charge.counted(held.cap.order) for round_id, charge in pending.get(held.name, {}).items()}
