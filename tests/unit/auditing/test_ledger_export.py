"""What of an account's history counts, and that a charge is what its parts make it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from equipoise.accounting import (
    DELTA_UNIT,
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    PureDpEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.auditing.ledger_export import exported
from equipoise.errors import DataLoss, NotFound, VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise_server.ledger.caps import Cap, limits

PARTS = (
    ZcdpEvent("game", Fraction(1, 3)),
    PureDpEvent("detection", Fraction(1, 20), 30),
    ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**12)),
)
ORDER = 8.0
EVENTS, COST, ALONE = events_to_json("equilibrium", PARTS), charge_at(PARTS, ORDER), charge_of(PARTS)
LOST, LOST_ALONE = Cost(divergence=5, delta=11), Cost(rho=5, epsilon=7, delta=11)
AT_ORDER = json.dumps({"order": ORDER})


def entry(action: str, round_id: str = "", cost: Cost = COST, events: str = EVENTS) -> JournalEntry:
    return JournalEntry(1, datetime(2024, 1, 1, tzinfo=UTC), action, "data/t", round_id, cost, events, b"")


def opened(composition: str) -> JournalEntry:
    events: dict[str, object] = {"cap": {"epsilon": 1.0, "delta": 1e-6}, "composition": composition}
    events |= {"order": ORDER} if composition == "sum" else {}
    return entry("open-account", cost=Cost(), events=json.dumps(events))


def history(cost: Cost, lost: Cost) -> list[JournalEntry]:
    return [
        entry("reserve", "a", cost),
        entry("run", "a", Cost(), "{}"),
        entry("reserve", "b", cost),
        entry("spend", "a", cost),
        entry("write-off", cost=lost, events="{}"),
        entry("reserve", "c", cost),
        entry("release", "b", cost),
        entry("set-cap", cost=Cost(), events='{"cap": {"epsilon": 2.0, "delta": 1e-7}}'),
    ]


def test_what_was_not_given_back_counts_under_the_newest_cap() -> None:
    found = exported("data/t", [opened("sum"), *history(COST, LOST)])
    assert found["cap"] == {"epsilon": 2.0, "delta": 1e-7}
    assert found["order"] == ORDER
    assert found["divergence"] == (2 * COST.divergence + LOST.divergence) / RHO_UNIT
    assert found["delta"] == (2 * COST.delta + LOST.delta) / DELTA_UNIT
    limit = limits(Cap(2.0, 1e-7, ORDER))
    assert found["max_divergence"] == pytest.approx(limit.divergence / RHO_UNIT, rel=1e-6)
    assert found["max_delta"] == limit.delta / DELTA_UNIT == 5e-8
    (together,) = found["sums"]
    assert [(each["round"], each["state"]) for each in together] == [
        ("", "written off"),
        ("a", "spent"),
        ("c", "reserved"),
    ]
    assert together[1]["events"] == json.loads(EVENTS)["events"]
    lost = {each["event"]: each for each in together[0]["events"]}
    assert Fraction(lost["renyi"]["bound"]) == Fraction(5, 10**12)
    assert [Fraction(lost["pair"][each]) for each in ("epsilon", "delta")] == [0, Fraction(11, 10**18)]


def test_where_the_worst_round_counts_nothing_adds() -> None:
    found = exported("data/t", [opened("worst"), *history(ALONE, LOST_ALONE)])
    assert [[each["state"] for each in charges] for charges in found["sums"]] == [
        ["written off"],
        ["spent"],
        ["reserved"],
    ]
    assert found["order"] is None
    assert found["divergence"] == found["max_divergence"] == found["delta"] == found["max_delta"] == 0
    lost = {each["event"]: each for each in found["sums"][0][0]["events"]}
    assert Fraction(lost["ZCDpEvent"]["rho"]) == Fraction(5, 10**12)
    assert (Fraction(lost["pair"]["epsilon"]), Fraction(lost["pair"]["delta"])) == (
        Fraction(7, 10**12),
        Fraction(11, 10**18),
    )


def test_what_was_lost_before_the_account_was_opened_counts() -> None:
    found = exported("data/t", [entry("write-off", cost=LOST, events=AT_ORDER), opened("sum")])
    assert [each["state"] for each in found["sums"][0]] == ["written off"]
    for counted_at in ("{}", '{"order": 7.0}'):
        with pytest.raises(VerificationFailed, match="entry 1 of the budget journal cannot follow"):
            exported("data/t", [entry("write-off", cost=LOST, events=counted_at), opened("sum")])


@pytest.mark.parametrize(
    ("composition", "order"),
    [
        ("sum", None),
        ("sum", 1.0),
        ("sum", math.nan),
        ("sum", math.inf),
        ("sum", "8"),
        ("sum", True),
        ("worst", 8.0),
    ],
)
def test_an_account_has_an_order_where_rounds_add_and_only_there(composition: str, order: object) -> None:
    events = {"cap": {"epsilon": 1.0, "delta": 1e-6}, "composition": composition, "order": order}
    with pytest.raises(VerificationFailed, match="entry 1 of the budget journal cannot follow"):
        exported("data/t", [entry("open-account", cost=Cost(), events=json.dumps(events))])


def test_an_account_without_charges_has_nothing_to_add() -> None:
    assert exported("data/t", [opened("sum")])["sums"] == [[]]
    assert exported("data/t", [opened("worst")])["sums"] == []
    with pytest.raises(NotFound):
        exported("data/t", [])


@pytest.mark.parametrize(
    "wrong",
    [
        entry("reserve", "a", ALONE),
        entry("reserve", "a", replace(COST, delta=0)),
        entry("reserve", "a", events="{}"),
        entry("reserve", "a", events="no JSON"),
        entry("spend", "a"),
        entry("release", "a"),
    ],
)
def test_a_charge_that_is_not_its_parts_is_noticed(wrong: JournalEntry) -> None:
    with pytest.raises(DataLoss, match="entry 1 of the budget journal"):
        exported("data/t", [opened("sum"), wrong])


@pytest.mark.parametrize("change", [{"divergence": -(10**6)}, {"divergence": 10**6}, {"delta": -1}, {"rho": 1}])
def test_a_charge_that_is_not_its_parts_at_the_order_is_noticed(change: dict[str, int]) -> None:
    wrong = replace(COST, **{name: getattr(COST, name) + more for name, more in change.items()})
    with pytest.raises(DataLoss, match="entry 1 of the budget journal"):
        exported("data/t", [opened("sum"), entry("reserve", "a", wrong)])


@pytest.mark.parametrize("change", [{"rho": -1}, {"epsilon": 1}, {"delta": -1}, {"divergence": 1}])
def test_a_charge_that_is_not_its_parts_by_itself_is_noticed(change: dict[str, int]) -> None:
    wrong = {name: max(0, getattr(ALONE, name) + more) for name, more in change.items()}
    with pytest.raises(DataLoss, match="entry 1 of the budget journal"):
        exported("data/t", [opened("worst"), entry("reserve", "a", replace(ALONE, **wrong))])


@pytest.mark.parametrize(("order", "said"), [(f"1{0:0400}", False), ("1e308", True), ("1.0000000000000002", True)])
def test_an_order_without_measure_has_limits_or_is_refused(order: str, said: bool) -> None:
    """What a journal says is read as it stands, and ends in a refusal or in numbers, never in an overflow."""
    events = f'{{"cap": {{"epsilon": 1.0, "delta": 1e-6}}, "composition": "sum", "order": {order}}}'
    opening = entry("open-account", cost=Cost(), events=events)
    if said:
        assert exported("data/t", [opening])["order"] == float(order)
    else:
        with pytest.raises(VerificationFailed, match="cannot follow"):
            exported("data/t", [opening])
