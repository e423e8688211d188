"""Dangers of budgets and plans at their edges: the largest that needs nothing, and the smallest that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.dangers import (
    check_accepted,
    check_named_once,
    dangers_of_caps,
    dangers_of_new_cap,
    dangers_of_round,
    not_accepted,
)
from equipoise.model.rounds import PlanNumbers, Share

USUAL = Budget(1.0, 1e-6)
SHARES = (Share("ann", 3, 5), Share("bob", 1, 1))
PLAN: dict[str, Any] = {
    "mechanism": "gaussian",
    "parameters": "{}",
    "data_cost": Cost(rho=7),
    "analyst_cost": Cost(),
    "max_half_width": 0.1,
    "max_uncertified": 0,
    "seconds": 1.0,
    "memory_bytes": 1,
    "expected_error": 0.01,
}
ABOVE = 10.000000000000002  # the next float


def found(
    data: Budget = USUAL,
    analyst: Budget | None = USUAL,
    unit: str = "query",
    shares: tuple[Share, ...] = SHARES,
    records: int = 1000,
    each: int = 1,
    **plan: Any,
) -> set[Danger]:
    return set(dangers_of_round(data, analyst, unit, shares, PlanNumbers(**PLAN | plan), records, each))


def test_a_usual_round_has_none() -> None:
    assert found() == found(analyst=None) == set()


@pytest.mark.parametrize("side", ["data", "analyst"])
def test_an_epsilon_above_ten_is_one(side: str) -> None:
    largest: dict[str, Any] = {side: Budget(10.0, 1e-6)}
    above: dict[str, Any] = {side: Budget(ABOVE, 1e-6)}
    assert found(**largest) == set()
    assert found(**above) == found(**above, shares=SHARES[:1]) == {Danger.EPSILON}


def test_a_delta_of_one_in_the_people_is_one() -> None:
    assert found(Budget(1.0, 1 / 1001)) == set()
    assert found(Budget(1.0, 1 / 1000)) == {Danger.DELTA}
    assert found(Budget(1.0, 1 / 500), each=2) == {Danger.DELTA}  # 500 people, with two records each
    assert found(Budget(1.0, 1 / 501), each=2) == set()


def test_a_delta_of_one_in_those_whom_it_protects_from_each_other_is_one() -> None:
    assert found(analyst=Budget(1.0, 1 / 5)) == set()
    assert found(analyst=Budget(1.0, 1 / 4)) == {Danger.DELTA}  # one of four statements
    assert found(analyst=Budget(1.0, 0.49), unit="analyst") == set()
    assert found(analyst=Budget(1.0, 0.5), unit="analyst") == {Danger.DELTA}  # one of two analysts
    assert found(analyst=Budget(1.0, 0.9), shares=SHARES[:1]) == set()  # from whom nobody has to be protected


def test_errors_of_less_than_one_person_s_records_are_one() -> None:
    assert found(expected_error=0.001) == set()
    assert found(expected_error=0.00099) == {Danger.NOISE}
    assert found(expected_error=0.00399, each=4) == {Danger.NOISE}
    assert found(expected_error=0.004, each=4) == set()
    assert found(expected_error=0.0, data_cost=Cost()) == set()  # what costs nothing reads no data


def test_a_promise_of_nothing_is_one() -> None:
    assert found(max_half_width=0.999) == set()
    assert found(max_half_width=1.0) == {Danger.PROMISE}
    assert found(max_half_width=1.0, mechanism="grant") == set()  # whose statements have intervals by their price


def test_a_cap_that_is_changed_has_those_that_it_would_have_had_at_first() -> None:
    for cap in (Budget(10.0, 1 / 1001), Budget(ABOVE, 1 / 1001), Budget(10.0, 1e-3), Budget(ABOVE, 1e-3)):
        assert dangers_of_new_cap(cap, 1000).keys() == dangers_of_caps(cap, USUAL, 1000).keys()
        assert dangers_of_new_cap(cap, None).keys() == dangers_of_caps(USUAL, cap, 1000).keys()


def test_caps_have_those_that_budgets_have() -> None:
    assert not dangers_of_caps(Budget(10.0, 1 / 1001), Budget(10.0, 0.5), 1000)
    assert set(dangers_of_caps(Budget(ABOVE, 1e-3), USUAL, 1000)) == {Danger.EPSILON, Danger.DELTA}
    assert set(dangers_of_caps(USUAL, Budget(ABOVE, 1e-3), 1000)) == {Danger.EPSILON}


def test_what_is_not_named_is_refused_with_the_flags_that_name_it() -> None:
    dangers = dangers_of_round(
        Budget(50.0, 0.4), Budget(20.0, 1e-6), "query", SHARES, PlanNumbers(**PLAN), records=14, each=1
    )
    assert list(dangers) == [Danger.EPSILON, Danger.DELTA, Danger.NOISE]
    assert dangers[Danger.EPSILON] == "data_budget.epsilon: 50 is above 10; analyst_budget.epsilon: 20 is above 10"
    assert dangers[Danger.DELTA] == "data_budget.delta: 0.4 is 1 in 14 people or more"
    check_accepted(dangers, dangers)
    assert list(not_accepted(dangers, [Danger.DELTA])) == [Danger.EPSILON, Danger.NOISE]
    with pytest.raises(InvalidArgument, match=r"accepted: .*above 10.*--accept epsilon --accept noise$"):
        check_accepted(dangers, [Danger.DELTA])
    with pytest.raises(InvalidArgument, match=r"terms.accepted: must name each danger once"):
        check_named_once([Danger.DELTA, Danger.DELTA], "terms.accepted")
