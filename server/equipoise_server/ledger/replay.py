"""The accounts as the journal makes them: recomputed entry by entry, and compared with what stands on them.

The journal's chain shows that no entry was changed; this shows that the accounts say what the entries say, so that
nobody has lowered an amount, raised a cap or settled a charge beside the journal. The limits are left out: another
version of the library that converts the cap may round them otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from equipoise.accounting import Cost
from equipoise.errors import DataLoss
from equipoise.model.accounts import JournalEntry
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import all_accounts
from equipoise_server.ledger.caps import Cap, Composition, combined
from equipoise_server.ledger.charges import all_charges

Lost = dict[str, list[tuple[float | None, Cost]]]  # by account: at which order it was counted, and how much


@dataclass
class Replayed:
    """One account as its entries make it: states and costs of charges by round, and what belongs to no round."""

    composition: Composition
    cap: Cap
    charges: dict[str, tuple[str, Cost]] = field(default_factory=dict)
    lost: list[Cost] = field(default_factory=list)

    def settle(self, round_id: str, state: str) -> None:
        """Spend or release what is reserved. Raises `KeyError` where nothing is."""
        was, cost = self.charges[round_id]
        if was != "reserved":
            raise KeyError(round_id)
        self.charges[round_id] = (state, cost)

    def total(self, *states: str) -> Cost:
        """What the charges in these states make up, with what was lost."""
        live = [cost for state, cost in self.charges.values() if state in states]
        return combined([*self.lost, *live], self.composition, self.cap)


def replay(entries: Iterable[JournalEntry]) -> dict[str, Replayed]:
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
    replayed, charges = replay(journal.verified(connection)), all_charges(connection)
    for held in all_accounts(connection):
        made = replayed.pop(held.name, None)
        if (
            made is None
            or (made.composition, made.cap) != (held.composition, held.cap)
            or (made.total("spent"), made.total("spent", "reserved")) != (held.spent, held.committed)
            or made.charges != charges.get(held.name, {})
        ):
            raise DataLoss(f"account {held.name} does not say what the budget journal says")
    if replayed:
        raise DataLoss(f"account {min(replayed)} is in the budget journal, but not in the store")


def _apply(replayed: dict[str, Replayed], lost: Lost, entry: JournalEntry) -> None:
    name, events = entry.account, json.loads(entry.events)
    match entry.action:
        case "open-account":
            order = events.get("order")
            made = Replayed(Composition(events["composition"]), _cap(events, order))
            if any(counted_at != order for counted_at, _ in lost.get(name, [])):
                raise ValueError(name)
            made.lost.extend(cost for _, cost in lost.pop(name, []))
            replayed[name] = made
        case "set-cap":
            replayed[name].cap = _cap(events, replayed[name].cap.order)
        case "reserve":
            replayed[name].charges[entry.round_id] = ("reserved", entry.cost)
        case "spend":
            replayed[name].settle(entry.round_id, "spent")
        case "release":
            replayed[name].settle(entry.round_id, "released")
        case "write-off" if name in replayed:
            replayed[name].lost.append(entry.cost)
        case "write-off" if name:
            lost.setdefault(name, []).append((events.get("order"), entry.cost))
        case _:
            pass


def _cap(events: dict[str, Any], order: float | None) -> Cap:
    return Cap(events["cap"]["epsilon"], events["cap"]["delta"], order)
