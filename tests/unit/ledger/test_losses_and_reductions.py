"""A store that was lost costs its own delta and that of its conversion. A charge is only reduced to less."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from harness.ledger_store import NOW, ledger_store, open_with, totals

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PrivacyEvent,
    ZcdpEvent,
    charge_of,
    events_to_json,
)
from equipoise.errors import DataLoss
from equipoise_server.ledger import adjustments, charges
from equipoise_server.ledger.caps import Cap, Composition, at_order

CAP = at_order("cap", Cap(4.0, 1e-6), 0)
ORDER = CAP.order or math.nan
ACCOUNT = "analyst/t/analyst/ann"


@pytest.mark.parametrize("order", [1.5, 2.0, ORDER])
def test_what_a_copy_counted_at_a_smaller_order_costs_a_quarter_of_the_cap_s_delta_and_its_own(
    order: float,
) -> None:
    known = Cost(delta=3, divergence=RHO_UNIT // 100)
    counted = adjustments._at_own_order(known, order, CAP)
    quarter = Fraction(CAP.delta) / 4 * DELTA_UNIT if order < ORDER else 0
    assert counted.delta >= 3 + quarter
    assert counted.divergence >= known.divergence


def losing(delta: int) -> PrivacyEvent:
    return ApproximateDpEvent("samplers", Fraction(0), Fraction(delta, DELTA_UNIT))


@pytest.mark.parametrize("spent", [(ZcdpEvent("game", Fraction(2, 1000)),), (losing(8),), (losing(3), losing(5))])
def test_a_charge_is_never_reduced_to_more_of_anything_than_was_reserved(
    store_url: str, spent: tuple[PrivacyEvent, ...]
) -> None:
    reserved = (ZcdpEvent("game", Fraction(1, 1000)), losing(7))
    store = ledger_store(store_url, ["r0"])
    open_with(store, ACCOUNT, Composition.SEQUENTIAL, CAP)
    with store.write() as connection:
        asked = charges.Charge(ACCOUNT, charge_of(reserved), events_to_json("grant", reserved))
        charges.reserve(connection, "r0", [asked], NOW)
    before = totals(store, ACCOUNT)
    more = charges.Charge(ACCOUNT, charge_of(spent), events_to_json("grant", spent))
    with pytest.raises(DataLoss, match="has spent more"), store.write() as connection:
        charges.reduce(connection, "r0", more, NOW)
    assert totals(store, ACCOUNT) == before
    store.close()
