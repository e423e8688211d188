"""What `operator round plan` sends, at the edges: from the message to the mechanism's plan, as the server goes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.model.terms_checks import check_terms
from equipoise.queries.schema import Schema
from equipoise.v1 import types_pb2
from equipoise.wire.terms import UNITS, terms_from_message
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.equilibrium.options import OPTIONS
from equipoise_server.mechanisms.registry import mechanism
from equipoise_server.rounds.terms.checks import setting_of

both_units = pytest.mark.parametrize("unit", ["query", "analyst"])
both_plays = pytest.mark.parametrize("play", ["mixed", "sampled"])
BudgetPair = tuple[float, float]
TWO = ((2, 3), (1, 1))


def planned(
    unit: str,
    data: BudgetPair = (1.0, 1e-7),
    analyst: BudgetPair = (4.0, 1e-6),
    beta: float = 0.05,
    shares: Sequence[tuple[int, int]] = TWO,
    options: str = "",
    records: int = 1000,
) -> MechanismPlan:
    """The plan of these terms for a table of 24 possible records."""
    message = types_pb2.RoundTerms(
        dataset="flights",
        unit=UNITS.write(unit, "unit"),
        data_budget=types_pb2.Budget(epsilon=data[0], delta=data[1]),
        analyst_budget=types_pb2.Budget(epsilon=analyst[0], delta=analyst[1]),
        beta=beta,
        mechanism="auto",
        shares=[
            types_pb2.Share(analyst=f"analyst-{number}", statements=statements, queries=queries)
            for number, (statements, queries) in enumerate(shares)
        ],
        options=options,
    )
    terms = terms_from_message(message)
    check_terms(terms)
    return mechanism(terms.mechanism).plan(setting_of(terms, records, 24, Schema.from_json('{"a": 4, "b": 6}')))


@pytest.mark.thin(2)
@pytest.mark.slow
@both_units
@both_plays
@pytest.mark.parametrize("records", [1, 2, 1000, 2**40 - 1])
def test_plans_of_tables_of_any_size_keep_to_their_budgets(unit: str, play: str, records: int) -> None:
    delta = max(1e-16, min(0.1, 1 / records**2))
    game = {"rounds": 8, "batch": 2, "draws": 1, "density": 1, "data_rate": 1e-3, "query_rate": 1e-4}
    options = json.dumps({"play": play, **game})
    plan = planned(unit, data=(1.0, delta), options=options, records=records)
    assert epsilon_for(plan.data_cost, delta) <= 1
    assert epsilon_for(plan.charged_analyst_cost, 1e-6) <= 4
    assert 0 < plan.max_half_width <= 1
    assert 0 <= plan.max_uncertified <= 4


@both_units
@pytest.mark.parametrize("field", ["data", "analyst"])
@pytest.mark.parametrize(
    "budget",
    [
        *((epsilon, 1e-6) for epsilon in (math.nan, math.inf, -math.inf, -1.0, 0.0, 50.1, 1e300)),
        *((1.0, delta) for delta in (math.nan, math.inf, -1.0, 0.0, 1.0, 1e300)),
    ],
    ids=str,
)
def test_budgets_that_are_none_are_refused(unit: str, field: str, budget: BudgetPair) -> None:
    with pytest.raises(InvalidArgument, match=f"{field}_budget"):
        planned(unit, **{field: budget})  # type: ignore[arg-type]


@both_units
@pytest.mark.parametrize("field", ["data", "analyst"])
def test_a_delta_that_no_sampler_can_keep_is_refused(unit: str, field: str) -> None:
    with pytest.raises(BudgetExhausted, match=f"{field}_budget: .*delta"):
        planned(unit, **{field: (1.0, 1e-300)})  # type: ignore[arg-type]


@both_units
@pytest.mark.parametrize("beta", [math.nan, math.inf, -1.0, 0.0, 1.0, 1e300, 1e-300])
def test_a_beta_that_is_none_is_refused(unit: str, beta: float) -> None:
    with pytest.raises(InvalidArgument, match="beta"):
        planned(unit, beta=beta)


@both_units
@pytest.mark.parametrize(
    "shares", [(), ((0, 0), (1, 1)), ((1, 0), (1, 1)), ((2, 1), (1, 1)), ((1, 2**64 - 1), (1, 1))]
)
def test_shares_that_are_none_are_refused(unit: str, shares: Sequence[tuple[int, int]]) -> None:
    with pytest.raises(InvalidArgument, match="shares"):
        planned(unit, shares=shares)


@both_units
@both_plays
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(
    "value",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "1e999",
        "-1e999",
        "1" + "0" * 400,
        "-1",
        "1e300",
        "true",
        "null",
        '"1"',
        "[]",
    ],
)
def test_options_out_of_range_are_refused(unit: str, play: str, name: str, value: str) -> None:
    with pytest.raises(InvalidArgument, match="options"):
        planned(unit, options=f'{{"play": "{play}", "{name}": {value}}}')
