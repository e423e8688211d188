"""The accounts as the journal makes them: recomputed entry by entry, and compared with what stands on them.

The journal's chain shows that no entry was changed; this shows that the accounts say what the entries say, so that
nobody has lowered an amount or raised a cap beside the journal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_accounts
from equipoise_server.ledger.caps import Cap, Composition, combined
from equipoise_server.ledger.journal import JournalRecord

Lost = dict[str, list[tuple[float | None, Cost]]]  # by account: at which order it was counted, and how much


@dataclass
class Replayed:
    """One account as its entries make it: charges by round, and what belongs to no round."""

    composition: Composition
    cap: Cap
    reserved: dict[str, Cost] = field(default_factory=dict)
    spent: list[Cost] = field(default_factory=list)

    def total(self, costs: list[Cost]) -> Cost:
        """What costs make up on this account."""
        return combined(costs, self.composition, self.cap)

    @property
    def totals(self) -> tuple[Cost, Cost]:
        """What is spent, and what is spent or reserved."""
        return self.total(self.spent), self.total([*self.spent, *self.reserved.values()])


def replay(entries: Iterable[JournalRecord]) -> dict[str, Replayed]:
    """Every account by its name. Raises `DataLoss` for entries that cannot follow one another."""
    replayed: dict[str, Replayed] = {}
    lost: Lost = {}
    for entry in entries:
        try:
            _apply(replayed, lost, entry)
        except (KeyError, ValueError, TypeError):
            raise DataLoss(f"entry {entry.sequence} of the budget journal cannot follow those before it") from None
    return replayed


def check_accounts(connection: Connection) -> None:
    """Check the journal's chain and every account against it. Raises `DataLoss` naming the entry or the account."""
    replayed = replay(journal.verified(connection))
    for held in all_accounts(connection):
        made = replayed.pop(held.name, None)
        if made is None or (made.composition, made.cap, *made.totals) != (
            held.composition,
            held.cap,
            held.spent,
            held.committed,
        ):
            raise DataLoss(f"account {held.name} does not say what the budget journal says")
    if replayed:
        raise DataLoss(f"account {min(replayed)} is in the budget journal, but not in the store")


def _apply(replayed: dict[str, Replayed], lost: Lost, entry: JournalRecord) -> None:
    name, events = entry.account, json.loads(entry.events)
    match entry.action:
        case "open-account":
            order = events.get("order")
            made = Replayed(Composition(events["composition"]), _cap(events, order))
            # What was counted in another way was counted anew behind the opening.
            made.spent.extend(cost for counted_at, cost in lost.pop(name, []) if counted_at == order)
            replayed[name] = made
        case "set-cap":
            replayed[name].cap = _cap(events, replayed[name].cap.order)
        case "reserve":
            replayed[name].reserved[entry.round_id] = entry.cost
        case "spend":
            replayed[name].spent.append(replayed[name].reserved.pop(entry.round_id))
        case "release":
            del replayed[name].reserved[entry.round_id]
        case "write-off" if name in replayed:
            replayed[name].spent.append(entry.cost)
        case "write-off" if name:
            lost.setdefault(name, []).append((events.get("order"), entry.cost))
        case _:
            pass


def _cap(events: dict[str, Any], order: float | None) -> Cap:
    return Cap(events["cap"]["epsilon"], events["cap"]["delta"], order)
