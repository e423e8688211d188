"""An account's charges for anybody's accountant: named parts, each with its proven guarantee, as one JSON object.

    {"version": 1, "account": ..., "composition": "sum" | "worst", "cap": {"epsilon": ..., "delta": ...},
     "sums": [[{"round": ..., "state": ..., "mechanism": ..., "events": [...]}, ...], ...]}

Charges within one of the `sums` compose; the account's total is the largest of them, as for composition "worst"
every protected unit lives in one round only. `state`: "reserved", "spent" or "written off"; each counts. An event
is one of these, with fractions as `numerator/denominator`:

    {"event": "ZCDpEvent", "name": ..., "rho": ..., "times": ...}     that many mechanisms, each rho-zCDP
    {"event": "pure", "name": ..., "epsilon": ..., "times": ...}      each epsilon-DP, so (epsilon^2 / 2)-zCDP
    {"event": "pair", "name": ..., "epsilon": ..., "delta": ...}      an (epsilon, delta) pair; pairs add

`docs/mechanisms.md` has a script that adds them up with `dp_accounting`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    Approximate,
    Concentrated,
    Cost,
    charge_of,
    parts_from_json,
    parts_to_json,
)
from equipoise.errors import DataLoss, NotFound
from equipoise.views import JournalEntry

VERSION = 1


def exported(account: str, history: Iterable[JournalEntry]) -> dict[str, Any]:
    """The object above, from the journal's entries of the account.

    Raises `NotFound` for an account that was never opened, `DataLoss` for a charge whose parts do not add up to the
    amount that was charged, and for entries that cannot follow one another.
    """
    opened: dict[str, Any] = {}
    rounds: dict[str, dict[str, Any]] = {}
    lost: list[dict[str, Any]] = []
    for entry in history:
        try:
            match entry.action:
                case "open-account" | "set-cap":
                    opened |= json.loads(entry.events)
                case "reserve":
                    rounds[entry.round_id] = _charge(entry)
                case "spend":
                    rounds[entry.round_id]["state"] = "spent"
                case "release":
                    del rounds[entry.round_id]
                case "write-off":
                    lost.append(_written_off(entry.cost))
                case _:
                    pass
        except (KeyError, ValueError, TypeError):
            raise _damaged(entry) from None
    if "composition" not in opened:
        raise NotFound("there is no such account")
    live = [*lost, *rounds.values()]
    sums = [[charge] for charge in live] if opened["composition"] == "worst" else [live]
    fields = {"composition": opened["composition"], "cap": opened["cap"], "sums": sums}
    return {"version": VERSION, "account": account, **fields}


def _charge(entry: JournalEntry) -> dict[str, Any]:
    if charge_of(parts_from_json(entry.events)) != entry.cost:
        raise _damaged(entry)
    return {"round": entry.round_id, "state": "reserved", **json.loads(entry.events)}


def _written_off(cost: Cost) -> dict[str, Any]:
    parts = (
        Concentrated("written off", Fraction(cost.rho, RHO_UNIT)),
        Approximate("written off", Fraction(cost.epsilon, RHO_UNIT), Fraction(cost.delta, DELTA_UNIT)),
    )
    return {"round": "", "state": "written off", **json.loads(parts_to_json("", parts))}


def _damaged(entry: JournalEntry) -> DataLoss:
    return DataLoss(f"entry {entry.sequence} of the budget journal is not what its charge is made of")
