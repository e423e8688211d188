"""`equilibrium` at the edges, for both units and plays: a refusal that names the field, or a right result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from harness.instance import SCHEMA, SEED, Instance, silent, true_answers
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium.options import OPTIONS
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import mechanism

pytestmark = pytest.mark.slow

NAN, INF = math.nan, math.inf
EVERYBODY = attribute("a").isin([str(value) for value in range(8)])
NOBODY = ~EVERYBODY
ONE = attribute("b") == "1"

both_units = pytest.mark.parametrize("unit", ["query", "analyst"])
both_plays = pytest.mark.parametrize("play", ["mixed", "sampled"])


def spread(records: int) -> NDArray[np.int64]:
    """Records as evenly as can be over the universe."""
    return np.bincount(np.arange(records) % SCHEMA.universe_size, minlength=SCHEMA.universe_size).astype(np.int64)


def in_one_cell(records: int) -> NDArray[np.int64]:
    """All records the same."""
    return np.bincount([17] * records, minlength=SCHEMA.universe_size).astype(np.int64)


def case_of(
    asked: Sequence[Sequence[Statement]], histogram: NDArray[np.int64], unit: str, **options: object
) -> Instance:
    """An instance in which every analyst uses up its share."""
    workloads = {f"analyst-{number}": compile_workload(own, SCHEMA) for number, own in enumerate(asked)}
    records = int(histogram.sum())
    setting = PublicParameters(
        records=records,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(name, each.statement_count, each.query_count) for name, each in workloads.items()),
        unit=unit,
        data_budget=Budget(1.0, min(0.1, 1 / records**2)),
        analyst_budget=Budget(8.0, 1e-6),
        beta=1e-6,  # so that chance does not decide
        options={"rounds": 8, **options},
    )
    return Instance(setting, histogram, workloads)


CONTENTS: dict[str, tuple[list[list[Statement]], NDArray[np.int64]]] = {
    "one query each": ([[ONE], [ONE]], spread(500)),
    "constants only": ([[EVERYBODY, NOBODY], [NOBODY, EVERYBODY, EVERYBODY]], spread(500)),
    "duplicates": ([[ONE] * 30, [ONE] * 30, [~ONE] * 3], spread(500)),
    "all data in one cell": ([[ONE, Marginal(("a", "b"))], [attribute("d") == "0"]], in_one_cell(500)),
    "one record": ([[ONE, Marginal(("a",))], [EVERYBODY]], in_one_cell(1)),
    "a large and a small share": ([[Marginal(("a", "b", "c"))], [ONE]], spread(500)),
}


@pytest.mark.sparse(6)
@pytest.mark.thin(4)
@both_units
@both_plays
@pytest.mark.parametrize("content", CONTENTS)
def test_degenerate_contents_get_right_answers(content: str, unit: str, play: str) -> None:
    asked, histogram = CONTENTS[content]
    case = case_of(asked, histogram, unit, play=play)
    plan = case.plan
    assert epsilon_for(plan.data_cost, case.setting.data_budget.delta) <= 1
    assert epsilon_for(plan.charged_analyst_cost, 1e-6) <= 8
    outcome = mechanism("equilibrium").run(
        case.setting, plan, DenseCounts(histogram, case.setting.attributes), case.workloads, SEED, silent
    )
    for name, answers in outcome.answers.items():
        assert len(answers) == case.workloads[name].query_count
        answers.check()
        assert not answers.misses(true_answers(case, name)).any()


@both_units
def test_a_single_analyst_with_one_query_is_refused(unit: str) -> None:
    with pytest.raises(InvalidArgument, match="at least 2") as refused:
        _ = case_of([[ONE]], spread(500), unit).plan
    assert refused.value.field == "shares"


@pytest.mark.slow
@both_units
@both_plays
def test_with_nobody_present_the_synopsis_is_uniform_and_nobody_is_answered(unit: str, play: str) -> None:
    case = case_of([[ONE, ONE], [ONE]], in_one_cell(500), unit, play=play)
    plan, equilibrium = case.plan, mechanism("equilibrium")
    outcome = equilibrium.run(
        case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), {}, SEED, silent
    )
    assert outcome.answers == {}
    empty = dict.fromkeys(case.workloads, compile_workload([], SCHEMA))
    came = equilibrium.run(
        case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), empty, SEED, silent
    )
    assert came.synopsis.cells.tobytes() == outcome.synopsis.cells.tobytes()
    # All records are in one cell, but nobody asked: the synopsis has no more there than chance puts anywhere.
    seen = np.bincount(outcome.synopsis.cells, minlength=SCHEMA.universe_size)
    assert seen[17] <= binom.isf(1e-9, len(outcome.synopsis), 1 / SCHEMA.universe_size)


BUDGETS = [
    *((epsilon, 0.1) for epsilon in (NAN, -INF, -1.0, 0.0, 1e300)),
    *((1.0, delta) for delta in (NAN, -INF, -1.0, 0.0, 1.0, INF)),
]


@both_units
@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
@pytest.mark.parametrize("budget", [Budget(*pair) for pair in BUDGETS], ids=str)
def test_budgets_that_are_none_are_refused(unit: str, field: str, budget: Budget) -> None:
    case = case_of([[ONE], [ONE]], spread(500), unit)
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, **{field: budget}))  # type: ignore[arg-type]
    assert refused.value.field == field


@both_units
@both_plays
@pytest.mark.parametrize("field", ["data_budget", "analyst_budget"])
@pytest.mark.parametrize("delta", [5e-324, 1e-300, 4e-18])
def test_a_delta_below_the_truncation_of_samplers_is_refused(
    unit: str, play: str, field: str, delta: float
) -> None:
    case = case_of([[ONE], [ONE]], spread(500), unit, play=play)
    with pytest.raises(BudgetExhausted, match=f"^{field}: .*delta"):
        mechanism("equilibrium").plan(replace(case.setting, **{field: Budget(1.0, delta)}))  # type: ignore[arg-type]


NUMBERS = [
    *(("records", value) for value in (NAN, INF, -1, 0, 0.5, 2**40, 10**400)),
    *(("universe_size", value) for value in (NAN, INF, -1, 0, 0.5, 2**40 + 1, 10**400)),
    *(("beta", value) for value in (NAN, INF, -1, 0, 1, 1e300, 5e-324)),
]


@both_units
@pytest.mark.parametrize(("field", "value"), NUMBERS)
def test_numbers_out_of_range_are_refused(unit: str, field: str, value: float) -> None:
    case = case_of([[ONE], [ONE]], spread(500), unit)
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, **{field: value}))  # type: ignore[arg-type]
    assert refused.value.field == field


@both_units
@pytest.mark.parametrize(
    ("statements", "queries"),
    [(NAN, 1), (1, NAN), (0, 0), (0, 1), (-1, 1), (2, 1), (1, INF), (INF, INF), (1, 2**41), (1, 10**400)],
)
def test_shares_out_of_range_are_refused(unit: str, statements: int, queries: int) -> None:
    case = case_of([[ONE], [ONE]], spread(500), unit)
    shares = (*case.setting.shares, Share("another", statements, queries))
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, shares=shares))
    assert refused.value.field in ("shares[2].statements", "shares[2].queries")


@both_units
@both_plays
@pytest.mark.parametrize("name", [*OPTIONS, "repair_rounds"])
@pytest.mark.parametrize("value", [NAN, INF, -INF, -1, 1e300, 10**400, True, "1", None, [1]], ids=repr)
def test_options_out_of_range_are_refused(unit: str, play: str, name: str, value: object) -> None:
    case = case_of([[ONE], [ONE]], spread(500), unit, play=play)
    with pytest.raises(InvalidArgument) as refused:
        mechanism("equilibrium").plan(replace(case.setting, options={"play": play, name: value}))
    assert refused.value.field == f"options.{name}"


@pytest.mark.sparse(9)
@pytest.mark.slow
@pytest.mark.thin(6)
@both_units
@both_plays
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("value", [0, 5e-324, 1])
def test_the_least_of_every_option_is_played_or_refused(unit: str, play: str, name: str, value: float) -> None:
    """No rounds, no noise, no rate, no threshold, no places: within the budgets, or an error that says which."""
    case = case_of([[ONE, EVERYBODY], [ONE]], spread(500), unit)
    case = replace(case, setting=replace(case.setting, options={"play": play, "rounds": 8, name: value}))
    try:
        plan = case.plan
    except (InvalidArgument, BudgetExhausted) as refused:
        field, plan = refused.message.partition(":")[0], None
    if plan is None:
        assert field.startswith(("options", "data_budget", "analyst_budget", "no game"))
        return
    assert epsilon_for(plan.data_cost, case.setting.data_budget.delta) <= 1
    assert epsilon_for(plan.charged_analyst_cost, 1e-6) <= 8
    outcome = mechanism("equilibrium").run(
        case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), case.workloads, SEED, silent
    )
    assert outcome.answers.keys() == case.workloads.keys()
