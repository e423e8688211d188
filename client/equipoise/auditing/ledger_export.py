"""An account's charges for anybody's accountant: named parts, each with its proven guarantee, as one JSON object.

    {"version": 4, "account": ..., "composition": "sum" | "worst", "cap": {"epsilon": ..., "delta": ...},
     "order": ..., "divergence": ..., "max_divergence": ..., "delta": ..., "max_delta": ...,
     "sums": [[{"round": ..., "state": ..., "mechanism": ..., "events": [...]}, ...], ...]}

Charges within one of the `sums` compose; the account's total is the largest of them, as for composition "worst"
every protected unit lives in one round only. `order`: for composition "sum" the Renyi order at which the account
counts, for good; null for "worst", where each round is converted by itself, at the order that suits it best. With
an order, `divergence` and `delta` are what counts, and `max_divergence` and `max_delta` the two limits, each held
for itself; without one they are 0. `state`: "reserved", "spent" or "written off"; each counts. An event is one of
these, with fractions as `numerator/denominator`:

    {"event": "ZCDpEvent", "name": ..., "rho": ..., "times": ...}     that many mechanisms, each rho-zCDP
    {"event": "pure", "name": ..., "epsilon": ..., "times": ...}      each epsilon-DP, so (epsilon^2 / 2)-zCDP
    {"event": "pair", "name": ..., "epsilon": ..., "delta": ...}      an (epsilon, delta) pair; pairs add
    {"event": "mixture", "name": ..., "trials": ..., "probability": ..., "rho_of_one": ..., "epsilon": ...,
     "delta": ...}      that pair; at a Renyi order (w^2 rho_of_one)-zCDP with w Binomial(trials, probability)
    {"event": "threshold tests", "name": ..., "positives": ..., "test_epsilon": ..., "answer_rho": ...,
     "epsilon": ..., "delta": ...}      that pair; at a Renyi order what `accounting.threshold_tests` proves for
                                        the rest, or what the pair counts where that is less
    {"event": "renyi", "name": ..., "order": ..., "bound": ...}       a Renyi divergence at that order

`docs/mechanisms/equilibrium.md` has a script that adds them up with `dp_accounting`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    RenyiEvent,
    ZcdpEvent,
    events_to_json,
)
from equipoise.auditing.accounts import SUM, Accounts, Charge
from equipoise.errors import DataLoss, NotFound
from equipoise.model.accounts import JournalEntry

VERSION = 4


def exported(account: str, history: Iterable[JournalEntry]) -> dict[str, Any]:
    """Returns the object above, from the journal's entries of the account.

    Raises `NotFound` for an account that was never opened, `DataLoss` for a charge whose parts do not add up to the
    amount that was charged, and for entries that cannot follow one another.

    Args:
        account: the account's name.
        history: the journal's entries of that account, in order.
    """
    accounts = Accounts()
    for moment in accounts.moments(history):
        if moment.entry.action in ("reserve", "reduce") and not moment.account.is_made_of_parts(
            moment.entry.round_id
        ):
            raise _damaged(moment.entry)
    if account not in accounts.by_name:
        raise NotFound("there is no such account")
    made = accounts.by_name[account]
    live = [_written_off(cost, made.order) for cost in made.lost]
    live += [_charge(round_id, charge) for round_id, charge in made.charges.items() if charge.state != "released"]
    sums = [live] if made.composition == SUM else [[charge] for charge in live]
    fields = {"composition": made.composition, "cap": asdict(made.cap), **asdict(made.counted), "sums": sums}
    return {"version": VERSION, "account": account, **fields}


def _charge(round_id: str, charge: Charge) -> dict[str, Any]:
    return {"round": round_id, "state": charge.state, **json.loads(events_to_json(charge.mechanism, charge.parts))}


def _written_off(cost: Cost, order: float | None) -> dict[str, Any]:
    parts: list[PrivacyEvent] = [
        ZcdpEvent("written off", Fraction(cost.rho, RHO_UNIT)),
        ApproximateDpEvent("written off", Fraction(cost.epsilon, RHO_UNIT), Fraction(cost.delta, DELTA_UNIT)),
    ]
    if order is not None:
        parts.append(RenyiEvent("written off", Fraction(order), Fraction(cost.divergence, RHO_UNIT)))
    return {"round": "", "state": "written off", **json.loads(events_to_json("", parts))}


def _damaged(entry: JournalEntry) -> DataLoss:
    return DataLoss(f"entry {entry.sequence} of the budget journal is not what its charge is made of")
