"""What of an account's history counts, and that a charge is what its parts make it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction

import pytest

from equipoise.accounting import (
    ApproximateDpEvent,
    Cost,
    PureDpEvent,
    ZcdpEvent,
    charge_at,
    charge_of,
    events_to_json,
)
from equipoise.auditing.ledger_export import exported
from equipoise.errors import DataLoss, NotFound
from equipoise.model.accounts import JournalEntry

PARTS = (
    ZcdpEvent("game", Fraction(1, 3)),
    PureDpEvent("detection", Fraction(1, 20), 30),
    ApproximateDpEvent("samplers", Fraction(0), Fraction(1, 10**12)),
)
EVENTS, COST = events_to_json("equilibrium", PARTS), charge_of(PARTS)
LOST = Cost(rho=5, epsilon=7, delta=11)


def entry(action: str, round_id: str = "", cost: Cost = COST, events: str = EVENTS) -> JournalEntry:
    return JournalEntry(1, datetime(2024, 1, 1, tzinfo=UTC), action, "data/t", round_id, cost, events, b"")


def opened(composition: str) -> JournalEntry:
    events = {"cap": {"epsilon": 1.0, "delta": 1e-6}, "composition": composition}
    return entry("open-account", cost=Cost(), events=json.dumps(events))


HISTORY = [
    entry("reserve", "a"),
    entry("run", "a", Cost(), "{}"),
    entry("reserve", "b"),
    entry("spend", "a"),
    entry("write-off", cost=LOST, events="{}"),
    entry("reserve", "c"),
    entry("release", "b"),
    entry("set-cap", cost=Cost(), events='{"cap": {"epsilon": 2.0, "delta": 1e-7}}'),
]


def test_what_was_not_given_back_counts_under_the_newest_cap() -> None:
    found = exported("data/t", [opened("sum"), *HISTORY])
    assert found["cap"] == {"epsilon": 2.0, "delta": 1e-7}
    (together,) = found["sums"]
    assert [(each["round"], each["state"]) for each in together] == [
        ("", "written off"),
        ("a", "spent"),
        ("c", "reserved"),
    ]
    assert together[1]["events"] == json.loads(EVENTS)["events"]
    lost = {each["event"]: each for each in together[0]["events"]}
    assert Fraction(lost["ZCDpEvent"]["rho"]) == Fraction(5, 10**12)
    assert (Fraction(lost["pair"]["epsilon"]), Fraction(lost["pair"]["delta"])) == (
        Fraction(7, 10**12),
        Fraction(11, 10**18),
    )


def test_where_the_worst_round_counts_nothing_adds() -> None:
    found = exported("data/t", [opened("worst"), *HISTORY])
    assert [[each["state"] for each in charges] for charges in found["sums"]] == [
        ["written off"],
        ["spent"],
        ["reserved"],
    ]


def test_what_was_lost_before_the_account_was_opened_counts() -> None:
    found = exported("data/t", [entry("write-off", cost=LOST, events="{}"), opened("sum")])
    assert [each["state"] for each in found["sums"][0]] == ["written off"]


def test_an_account_without_charges_has_nothing_to_add() -> None:
    assert exported("data/t", [opened("sum")])["sums"] == [[]]
    assert exported("data/t", [opened("worst")])["sums"] == []
    with pytest.raises(NotFound):
        exported("data/t", [])


@pytest.mark.parametrize(
    "wrong",
    [
        entry("reserve", "a", Cost(rho=COST.rho - 1, epsilon=COST.epsilon, delta=COST.delta)),
        entry("reserve", "a", Cost(rho=COST.rho, epsilon=COST.epsilon, delta=0)),
        entry("reserve", "a", events="{}"),
        entry("reserve", "a", events="no JSON"),
        entry("spend", "a"),
        entry("release", "a"),
    ],
)
def test_a_charge_that_is_not_its_parts_is_noticed(wrong: JournalEntry) -> None:
    with pytest.raises(DataLoss, match="entry 1 of the budget journal"):
        exported("data/t", [opened("sum"), wrong])


def counted(cost: Cost) -> list[JournalEntry]:
    opening = {"cap": {"epsilon": 1.0, "delta": 1e-6}, "composition": "sum", "order": 8.0}
    return [entry("open-account", cost=Cost(), events=json.dumps(opening)), entry("reserve", "a", cost)]


def test_a_charge_at_a_renyi_order_is_its_parts_there() -> None:
    exact = charge_at(PARTS, 8.0)
    early = [entry("write-off", cost=LOST, events="{}"), entry("write-off", cost=exact, events='{"order": 8.0}')]
    found = exported("data/t", [*early, *counted(exact)])
    assert found["order"] == 8.0
    # What was lost as rhos and pairs is counted anew by an entry of its own.
    (together,) = found["sums"]
    assert [each["state"] for each in together] == ["written off", "reserved"]
    bounds = [Fraction(each["bound"]) for each in together[0]["events"] if each["event"] == "renyi"]
    assert bounds == [Fraction(exact.divergence, 10**12)]


@pytest.mark.parametrize("change", [{"divergence": -(10**5)}, {"divergence": 10**5}, {"delta": -1}, {"rho": 1}])
def test_a_charge_that_is_not_its_parts_at_the_order_is_noticed(change: dict[str, int]) -> None:
    exact = charge_at(PARTS, 8.0)
    wrong = replace(exact, **{name: getattr(exact, name) + more for name, more in change.items()})
    with pytest.raises(DataLoss, match="entry 1 of the budget journal"):
        exported("data/t", counted(wrong))
