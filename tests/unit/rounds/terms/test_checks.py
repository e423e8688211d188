"""Terms of a round: what is refused, by field, and what a round will be charged for."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share, Terms
from equipoise.model.terms_checks import check_terms
from equipoise.queries.schema import Attribute, Schema
from equipoise_server.rounds.opening import open_request
from equipoise_server.rounds.store.rounds import canonical, plan_from_json, plan_to_json, terms_to_json
from equipoise_server.rounds.terms.checks import charges_of, check_reason, setting_of
from equipoise_server.storage.idempotency import make_request

TERMS = Terms(
    dataset="flights",
    unit="query",
    data_budget=Budget(1.0, 1e-9),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    mechanism="auto",
    shares=(Share("ann", 3, 5), Share("bob", 1, 1)),
    options={"play": "sampled"},
)
PLAN = MechanismPlan(
    mechanism="equilibrium",
    parameters='{"rounds":10}',
    data_cost=Cost(rho=7, delta=1),
    analyst_cost=Cost(epsilon=5, delta=9),
    max_half_width=0.1 + 0.2,
    max_uncertified=3,
    seconds=1.5,
    memory_bytes=1 << 31,
    expected_error=0.1,
    data_events='{"events":[1]}',
    analyst_events='{"events":[2]}',
)


def test_an_opening_is_the_request_that_its_terms_ask_for() -> None:
    shares = (Share("ann", 3, 5), Share("bob", 2, 5, 4, 9, 3))
    terms = replace(TERMS, shares=shares)
    content = {
        "dataset": "flights",
        "terms": json.loads(terms_to_json(terms)),
        "shares": [
            {"analyst": "ann", "statements": 3, "queries": 5, "sensitivity": 0, "support": 0, "ways": 0},
            {"analyst": "bob", "statements": 2, "queries": 5, "sensitivity": 4, "support": 9, "ways": 3},
        ],
        "close_time": None,
    }
    assert open_request(terms, "olga", "once") == make_request("olga", "once", "open", canonical(content))


def test_good_terms_pass() -> None:
    check_terms(TERMS)
    setting = setting_of(
        TERMS, 10, 4, Schema((Attribute("a", ("x", "y"), ordered=True), Attribute("b", ("x", "y"))))
    )
    assert (setting.records, setting.universe_size, setting.shares) == (10, 4, TERMS.shares)
    assert (setting.attributes, setting.ordered) == ((2, 2), (0,))


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("unit", replace(TERMS, unit="person")),
        ("data_budget.epsilon", replace(TERMS, data_budget=Budget(0.0, 1e-9))),
        ("data_budget.epsilon", replace(TERMS, data_budget=Budget(math.nan, 1e-9))),
        ("analyst_budget.epsilon", replace(TERMS, analyst_budget=Budget(math.inf, 1e-9))),
        ("analyst_budget.delta", replace(TERMS, analyst_budget=Budget(1.0, 1.0))),
        ("analyst_budget.delta", replace(TERMS, analyst_budget=Budget(1.0, math.nan))),
        ("beta", replace(TERMS, beta=0.0)),
        ("beta", replace(TERMS, beta=math.nan)),
        ("shares", replace(TERMS, shares=())),
        ("shares[1].analyst", replace(TERMS, shares=(Share("ann", 1, 1), Share("ann", 1, 1)))),
        ("shares[0].statements", replace(TERMS, shares=(Share("ann", 0, 1),))),
        ("shares[0].queries", replace(TERMS, shares=(Share("ann", 2, 1),))),
        ("shares[0].sensitivity", replace(TERMS, shares=(Share("ann", 2, 2, -1),))),
        ("shares[0].sensitivity", replace(TERMS, shares=(Share("ann", 2, 2, 5),))),
        ("options", replace(TERMS, options={"rate": math.nan})),
        ("options", replace(TERMS, options={"rate": object()})),
    ],
)
def test_the_wrong_field_is_named(field: str, wrong: Terms) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_terms(wrong)
    assert caught.value.field == field


def test_every_share_is_charged_alike_whether_used_or_not() -> None:
    charges = {charge.account: (charge.cost, charge.events) for charge in charges_of("people", TERMS, PLAN)}
    assert charges == {
        "data/people": (PLAN.data_cost, PLAN.data_events),
        "analyst/people/query/ann": (PLAN.analyst_cost, PLAN.analyst_events),
        "analyst/people/query/bob": (PLAN.analyst_cost, PLAN.analyst_events),
    }


def test_what_protects_all_of_an_analyst_is_counted_for_its_statements_too() -> None:
    """Not the other way round: what protects statements promises nothing for all that an analyst asks."""
    charges = charges_of("people", replace(TERMS, unit="analyst"), PLAN)
    assert [charge.account for charge in charges] == [
        "data/people",
        *(f"analyst/people/{unit}/{name}" for name in ("ann", "bob") for unit in ("analyst", "query")),
    ]
    assert {(charge.cost, charge.events) for charge in charges[1:]} == {(PLAN.analyst_cost, PLAN.analyst_events)}


def test_a_plan_reads_back_the_same() -> None:
    assert plan_from_json(plan_to_json(PLAN)) == PLAN


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501])
def test_an_abort_needs_a_reason(reason: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^reason: "):
        check_reason(reason)


def test_a_plan_that_does_not_protect_the_analysts_is_never_charged() -> None:
    with pytest.raises(InvalidArgument, match="analyst_budget"):
        charges_of("people", TERMS, replace(PLAN, analyst_cost=None))
