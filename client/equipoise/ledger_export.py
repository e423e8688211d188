"""An account's charges for anybody's accountant: named parts, each with its proven guarantee, as one JSON object.

    {"version": 2, "account": ..., "composition": "sum" | "worst", "cap": {"epsilon": ..., "delta": ...},
     "order": ..., "sums": [[{"round": ..., "state": ..., "mechanism": ..., "events": [...]}, ...], ...]}

Charges within one of the `sums` compose; the account's total is the largest of them, as for composition "worst"
every protected unit lives in one round only. `order`: null where the account counts rhos beside pairs; otherwise
the Renyi order at which it counts, for good. `state`: "reserved", "spent" or "written off"; each counts. An event
is one of these, with fractions as `numerator/denominator`:

    {"event": "ZCDpEvent", "name": ..., "rho": ..., "times": ...}     that many mechanisms, each rho-zCDP
    {"event": "pure", "name": ..., "epsilon": ..., "times": ...}      each epsilon-DP, so (epsilon^2 / 2)-zCDP
    {"event": "pair", "name": ..., "epsilon": ..., "delta": ...}      an (epsilon, delta) pair; pairs add
    {"event": "mixture", "name": ..., "trials": ..., "probability": ..., "rho_of_one": ..., "epsilon": ...,
     "delta": ...}      that pair; at a Renyi order (w^2 rho_of_one)-zCDP with w Binomial(trials, probability)
    {"event": "renyi", "name": ..., "order": ..., "bound": ...}       a Renyi divergence at that order

`docs/mechanisms.md` has a script that adds them up with `dp_accounting`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    Approximate,
    Concentrated,
    Cost,
    Diverging,
    Part,
    charge_at,
    charge_of,
    parts_from_json,
    parts_to_json,
)
from equipoise.errors import DataLoss, NotFound
from equipoise.views import JournalEntry

VERSION = 2
ROUNDING = 1e-9  # by which a curve may come out differently on another machine: less than was added to it


def exported(account: str, history: Iterable[JournalEntry]) -> dict[str, Any]:
    """The object above, from the journal's entries of the account.

    Raises `NotFound` for an account that was never opened, `DataLoss` for a charge whose parts do not add up to the
    amount that was charged, and for entries that cannot follow one another.
    """
    opened: dict[str, Any] = {}
    rounds: dict[str, dict[str, Any]] = {}
    lost: list[tuple[float | None, dict[str, Any]]] = []
    for entry in history:
        try:
            match entry.action:
                case "open-account" | "set-cap":
                    opened |= json.loads(entry.events)
                case "reserve":
                    rounds[entry.round_id] = _charge(entry, opened.get("order"))
                case "spend":
                    rounds[entry.round_id]["state"] = "spent"
                case "release":
                    del rounds[entry.round_id]
                case "write-off":
                    order = json.loads(entry.events).get("order")
                    lost.append((order, _written_off(entry.cost, order)))
                case _:
                    pass
        except (KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
            raise _damaged(entry) from None
    if not opened:
        raise NotFound("there is no such account")
    if not {"composition", "cap"} <= opened.keys():
        raise DataLoss("the budget journal does not say how the account was opened")
    # What was counted in another way before the account was opened was counted anew behind its opening.
    order = opened.get("order")
    live = [*(charge for counted_at, charge in lost if counted_at == order), *rounds.values()]
    sums = [[charge] for charge in live] if opened["composition"] == "worst" else [live]
    fields = {"composition": opened["composition"], "cap": opened["cap"], "order": order, "sums": sums}
    return {"version": VERSION, "account": account, **fields}


def _charge(entry: JournalEntry, order: float | None) -> dict[str, Any]:
    parts = parts_from_json(entry.events)
    if order is None:
        if charge_of(parts) != entry.cost:
            raise _damaged(entry)
    else:
        made = charge_at(parts, order)
        if abs(made.divergence - entry.cost.divergence) > ROUNDING * made.divergence + 1:
            raise _damaged(entry)
        if replace(made, divergence=entry.cost.divergence) != entry.cost:
            raise _damaged(entry)
    return {"round": entry.round_id, "state": "reserved", **json.loads(entry.events)}


def _written_off(cost: Cost, order: float | None) -> dict[str, Any]:
    parts: list[Part] = [
        Concentrated("written off", Fraction(cost.rho, RHO_UNIT)),
        Approximate("written off", Fraction(cost.epsilon, RHO_UNIT), Fraction(cost.delta, DELTA_UNIT)),
    ]
    if order is not None:
        parts.append(Diverging("written off", Fraction(order), Fraction(cost.divergence, RHO_UNIT)))
    return {"round": "", "state": "written off", **json.loads(parts_to_json("", parts))}


def _damaged(entry: JournalEntry) -> DataLoss:
    return DataLoss(f"entry {entry.sequence} of the budget journal is not what its charge is made of")
