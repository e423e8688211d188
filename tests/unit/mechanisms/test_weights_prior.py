"""`multiplicative_weights` from a prior: what is measured, charged and answered, and what the planner chooses."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import half_widths
from harness.wide_tables import SCHEMA as WIDE
from harness.wide_tables import small_supports, wide_table
from numpy.typing import NDArray

from equipoise.accounting import ZcdpEvent, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import Share
from equipoise.queries.fixed_point import ONE
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.mechanism import MultiplicativeWeights
from equipoise_server.mechanisms.multiplicative_weights.prior_plan import PriorWeightsParameters

SIZES = {"a": 4, "b": 3, "c": 4, "d": 2}
SCHEMA = Schema(tuple(Attribute(name, tuple("0123"[:size])) for name, size in SIZES.items()))
RECORDS = 100_000
MECHANISM = MultiplicativeWeights()
SEED = bytes(range(32))


def table() -> NDArray[np.int64]:
    """A table whose pairs of attributes tell nearly all."""
    choose = np.random.default_rng(3)
    one, other = choose.dirichlet(np.full(12, 0.5)), choose.dirichlet(np.full(8, 0.5))
    return choose.multinomial(RECORDS, np.multiply.outer(one, other).reshape(-1)).astype(np.int64)


def conditions(count: int, seed: int) -> list[AllOf]:
    choose = np.random.default_rng(seed)
    picked = []
    for _ in range(count):
        names = sorted(choose.choice(list(SIZES), 3, replace=False).tolist())
        halves = [choose.choice(SIZES[name], (SIZES[name] + 1) // 2, replace=False).tolist() for name in names]
        parts = zip(names, halves, strict=True)
        picked.append(AllOf(tuple(Among(name, tuple(map(str, sorted(half)))) for name, half in parts)))
    return picked


def setting(**options: object) -> PublicParameters:
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(f"a{place}", 40, 40) for place in range(8)),
        unit="query",
        data_budget=Budget(1.0, 1e-10),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options=options,
        attributes=SCHEMA.sizes,
    )


def answered(public: PublicParameters) -> tuple[Answers, NDArray[np.float64]]:
    """All answers, and the truths."""
    asked = {share.analyst: compile_workload(conditions(40, n), SCHEMA) for n, share in enumerate(public.shares)}
    data = DenseCounts(table(), SCHEMA.sizes)
    outcome = MECHANISM.run(public, MECHANISM.plan(public), data, asked, SEED, lambda *_: None)
    truth = np.concatenate([data.count(own) for own in asked.values()]) / RECORDS
    return Answers.join(outcome.answers[name] for name in asked), truth


def test_measurement_turns_and_tests_fit_the_budget_together_and_cost_the_analysts_nothing() -> None:
    public = setting(prior="own")
    plan = MECHANISM.plan(public)
    events, parameters = events_from_json(plan.data_events), PriorWeightsParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    assert charge_of(events) == plan.data_cost
    assert [event.name for event in events] == ["prior", "selections", "answers", "final tests", "samplers"]
    assert isinstance(events[0], ZcdpEvent)
    assert [events[0]] == parameters.prior.events()
    assert 0.7 <= events[0].rho * 10**12 / plan.data_cost.rho <= 0.76
    assert plan.analyst_cost is not None
    assert (plan.analyst_cost.rho, plan.analyst_cost.epsilon, plan.analyst_cost.delta) == (0, 0, 0)


@pytest.mark.slow
def test_truths_lie_in_their_intervals_and_a_prior_errs_less_where_few_statements_are_measured() -> None:
    public = setting(prior="own", rounds=4)
    answers, truth = answered(public)
    assert answers.certified.all()
    assert not answers.misses(truth).any()
    assert half_widths(answers).max() <= MECHANISM.plan(public).max_half_width
    assert set(answers.methods.tolist()) == {int(AnswerMethod.MULTIPLICATIVE_WEIGHTS)}
    without, _ = answered(setting(prior="none", rounds=4))
    own, none = (float(np.abs(each.values / ONE - truth).mean()) for each in (answers, without))
    assert own < none


def test_the_planner_takes_what_is_expected_to_err_less() -> None:
    free, own, none = (MECHANISM.plan(setting(**option)) for option in ({}, {"prior": "own"}, {"prior": "none"}))
    assert free == min(own, none, key=lambda plan: plan.expected_error)
    nameless = replace(setting(), attributes=())
    assert MECHANISM.plan(nameless) == MECHANISM.plan(replace(nameless, options={"prior": "none"}))


def tables(records: int) -> dict[str, NDArray[np.int64]]:
    """Without structure, even, and of two independent parts."""
    choose, cells = np.random.default_rng(5), SCHEMA.universe_size
    one, other = choose.dirichlet(np.ones(12)), choose.dirichlet(np.ones(8))
    parts = {
        "random": choose.dirichlet(np.ones(cells)),
        "even": np.full(cells, 1 / cells),
        "product": np.multiply.outer(one, other).reshape(-1),
    }
    return {name: choose.multinomial(records, each).astype(np.int64) for name, each in parts.items()}


@pytest.mark.parametrize("structure", ["random", "even", "product"])
def test_where_turns_measure_everything_the_better_start_is_chosen(structure: str) -> None:
    workload = compile_workload([Marginal(each) for each in itertools.combinations(SIZES, 3)], SCHEMA)
    public = replace(
        setting(), records=2000, shares=(Share("a0", 4, workload.query_count),), data_budget=Budget(1.0, 1e-7)
    )
    data = DenseCounts(tables(2000)[structure], SCHEMA.sizes)
    truth, errors = data.count(workload) / 2000, {}
    for prior in ("own", "none"):
        forced = replace(public, options={"prior": prior})
        plan = MECHANISM.plan(forced)
        outcome = MECHANISM.run(forced, plan, data, {"a0": workload}, SEED, lambda *_: None)
        errors[prior] = float(np.abs(outcome.answers["a0"].values / ONE - truth).mean())
        assert 0.5 < errors[prior] / plan.expected_error < 2
    chosen = MECHANISM.starts(public)[0].prior
    assert errors[chosen] <= 1.1 * min(errors.values())


@pytest.mark.nightly
def test_of_conjunctions_the_prior_is_chosen_that_errs_less_where_pairs_tell_nearly_all() -> None:
    workload = compile_workload(conditions(150, 3), SCHEMA)
    public = replace(setting(), shares=(Share("a0", 150, 150),))
    data = DenseCounts(table(), SCHEMA.sizes)
    truth, errors = data.count(workload) / RECORDS, {}
    for start in MECHANISM.starts(public):
        forced = replace(public, options={"prior": start.prior})
        outcomes = [
            MECHANISM.run(forced, start.plan, data, {"a0": workload}, bytes([run]) * 32, lambda *_: None)
            for run in range(2)
        ]
        values = np.stack([outcome.answers["a0"].values for outcome in outcomes])
        errors[start.prior] = float(np.abs(values / ONE - truth).mean())
    assert errors["own"] < 0.8 * errors["none"]
    assert MECHANISM.starts(public)[0].prior == "own"


def test_a_prior_that_cannot_be_had_is_said() -> None:
    public = setting(prior="own")
    with pytest.raises(InvalidArgument, match="sizes of all attributes"):
        MECHANISM.plan(replace(public, attributes=()))
    with pytest.raises(BudgetExhausted):
        MECHANISM.plan(replace(public, data_budget=Budget(1e-7, 1e-12)))


def test_somebody_who_asks_nothing_gets_nothing() -> None:
    public = setting(prior="own")
    asked = {"a0": compile_workload([], SCHEMA)}
    data = DenseCounts(table(), SCHEMA.sizes)
    outcome = MECHANISM.run(public, MECHANISM.plan(public), data, asked, SEED, lambda *_: None)
    assert len(outcome.answers["a0"]) == 0


@pytest.mark.nightly
def test_turns_learn_over_a_support_where_the_universe_cannot_be_listed() -> None:
    """Turns move what the pairs do not tell; without a prior there is nothing to start from."""
    data = wide_table(RECORDS)
    asked: list[Statement] = [Marginal(("x0", "x2", "x4")), Among("x15", ("0", "1")), Marginal(("x9",))]
    workload = compile_workload(asked, WIDE)
    public = replace(
        setting(prior="own"),
        universe_size=WIDE.universe_size,
        attributes=WIDE.sizes,
        shares=(Share("a0", 3, workload.query_count),),
    )
    plan = MECHANISM.plan(public)
    assert (plan.seconds, plan.memory_bytes) < (60, 2**30)
    with small_supports(4_000):
        runs = [MECHANISM.run(public, plan, data, {"a0": workload}, SEED, lambda *_: None) for _ in range(2)]
    answers, again = (run.answers["a0"] for run in runs)
    truth = data.count(workload) / RECORDS
    assert answers.certified.all()
    assert not answers.misses(truth).any()
    assert float(np.abs(answers.values / ONE - truth).mean()) < 0.003
    assert (answers.values == again.values).all()
    with pytest.raises(InvalidArgument, match="multiplicative_weights without a prior needs a list"):
        MECHANISM.plan(replace(public, options={"prior": "none"}))
