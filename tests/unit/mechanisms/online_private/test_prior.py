"""`online_private` from a prior: what is measured, charged and told, and that a session is the same again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from numpy.typing import NDArray

from equipoise.accounting import DELTA_UNIT, ZcdpEvent, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import CompiledStatement, compile_single
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.epochs.epochs import unless_refuted
from equipoise_server.mechanisms.epochs.prior_plan import PriorEpochParameters
from equipoise_server.mechanisms.expected_error import stated
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.interface import linear
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate
from equipoise_server.mechanisms.prior.forecast import expected_of_session
from equipoise_server.mechanisms.prior.plan import PriorParameters

SIZES = {"a": 4, "b": 3, "c": 2}
SCHEMA = Schema(tuple(Attribute(name, tuple("0123"[:size])) for name, size in SIZES.items()))
RECORDS, TURNS, ANALYSTS = 200_000, 200, 5
PRIVATE = OnlinePrivate()
SEED = bytes(range(32))
MEASURED, HYPOTHESIS, GAUSSIAN, UNCERTIFIED = 11, 9, 3, 5
PAIR = compile_single(Marginal(("a", "b")), SCHEMA)
CELL = compile_single(AllOf((Among("a", ("0",)), Among("b", ("0",)), Among("c", ("0",)))), SCHEMA)


def setting(**options: object) -> PublicParameters:
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(f"a{place}", TURNS, 12 * TURNS) for place in range(ANALYSTS)),
        unit="query",
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={"length": TURNS, **options},
        attributes=SCHEMA.sizes,
    )


def table(strength: float) -> NDArray[np.int64]:
    """A table in which `c` follows from `a` and `b` in a part of the records, and pairs do not show it."""
    chances = np.ones(SCHEMA.sizes)
    for a, b, c in np.ndindex(4, 3, 2):
        chances[a, b, c] += strength * (1 if (a + b + c) % 2 else -1)
    chances = chances.reshape(-1) / chances.sum()
    return np.random.default_rng(5).multinomial(RECORDS, chances).astype(np.int64)


def played(
    public: PublicParameters, counts: NDArray[np.int64], asked: Mapping[int, CompiledStatement]
) -> list[Answers]:
    session = PRIVATE.start(public, PRIVATE.plan(public), DenseCounts(counts, SCHEMA.sizes), SEED)
    return [session.answer(slot, statement) for slot, statement in asked.items()]


@pytest.mark.parametrize("turns", [1, 8, TURNS])
def test_a_session_of_any_length_is_planned_for_all_of_its_budget(turns: int) -> None:
    """Where the tests cost a rho alone, the measurement has all the rho that they leave."""
    plan = PRIVATE.plan(setting(prior="own", length=turns))
    assert 0.999 < epsilon_for(plan.data_cost, 1e-9) <= 1
    assert charge_of(events_from_json(plan.data_events)) == plan.data_cost
    assert (plan.data_cost.epsilon == 0) == (turns < TURNS)


def test_measurement_and_tests_fit_the_budget_together_and_cost_the_analysts_the_end_alone() -> None:
    public = setting(prior="own")
    plan = PRIVATE.plan(public)
    events, parameters = events_from_json(plan.data_events), PriorEpochParameters.from_json(plan.parameters)
    assert parameters.to_json() == plan.parameters
    assert isinstance(events[0], ZcdpEvent)
    assert events[0] == parameters.prior.events()[0]
    assert charge_of(events) == plan.data_cost
    assert 0.85 < epsilon_for(plan.data_cost, public.data_budget.delta) <= 1
    assert plan.analyst_cost is not None
    assert epsilon_for(plan.analyst_cost, public.analyst_budget.delta) <= 1
    assert plan.analyst_cost.rho == 0
    assert parameters.epochs.ending_epsilon > 0.99


def test_noise_of_the_measurement_that_were_cut_would_be_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, cut = PRIVATE.plan(setting(prior="own")), Fraction(1, 10**14)
    monkeypatch.setattr(PriorParameters, "truncation", lambda _: cut)
    charged = PRIVATE.plan(setting(prior="own"))
    assert charged.data_cost.delta >= exact.data_cost.delta + math.floor((1 + math.e) * cut * DELTA_UNIT)


def test_what_is_expected_is_what_the_prior_is_expected_to_err_by_on_the_statements_of_the_session() -> None:
    tables = setting(prior="own")
    conditions = replace(tables, shares=tuple(replace(share, queries=TURNS) for share in tables.shares))
    for public in (tables, conditions):
        plan = PRIVATE.plan(public)
        prior = PriorEpochParameters.from_json(plan.parameters).prior
        assert plan.expected_error == stated(expected_of_session(prior, public))
    assert PRIVATE.plan(tables).expected_error != PRIVATE.plan(conditions).expected_error


@pytest.mark.parametrize("queries", [TURNS, 12 * TURNS])
def test_the_planner_takes_the_prior_where_it_is_expected_to_err_less(queries: int) -> None:
    def planned(**option: object) -> MechanismPlan:
        public = setting(**option)
        return PRIVATE.plan(replace(public, shares=tuple(replace(each, queries=queries) for each in public.shares)))

    own, none = planned(prior="own"), planned(prior="none")
    assert own.expected_error < none.expected_error
    assert planned() == own


def test_options_that_a_session_from_a_prior_does_not_have_are_refused() -> None:
    for option, field in (({"prior": "any"}, "prior"), ({"prior": "own", "epochs": 2}, "epochs")):
        with pytest.raises(InvalidArgument) as caught:
            PRIVATE.plan(setting(**option))
        assert caught.value.field == f"options.{field}"


class NotRead(DenseCounts):
    """A table of which only marginals can be asked, as the measurement does."""

    def count(self, *_: Any) -> Any:
        raise AssertionError("the table was read")


def test_what_the_measurement_tells_is_answered_without_the_table_also_at_the_end() -> None:
    public, counts = setting(prior="own"), table(0.9)
    session = PRIVATE.start(public, PRIVATE.plan(public), NotRead(counts, SCHEMA.sizes), SEED)
    for slot in (0, 7, TURNS * ANALYSTS - 1):
        answers = session.answer(slot, PAIR)
        assert set(answers.methods.tolist()) == {MEASURED}
        assert not answers.misses(linear(PAIR).counts(counts) / RECORDS).any()
    with pytest.raises(ValueError, match="is over"):
        session.answer(7, PAIR)


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.0, 0.9])
def test_truths_lie_in_their_intervals_and_few_are_answered_afresh(strength: float) -> None:
    counts, public = table(strength), setting(prior="own")
    plan = PRIVATE.plan(public)
    parameters = PriorEpochParameters.from_json(plan.parameters).epochs
    answers = played(public, counts, dict.fromkeys(range(500), CELL) | {500: PAIR})
    whole = Answers.join(answers)
    truth = np.concatenate([np.full(500, counts[0]), linear(PAIR).counts(counts)]) / RECORDS
    assert not whole.misses(truth).any()
    assert half_widths(whole[whole.certified]).max() <= plan.max_half_width
    methods = [int(each.methods[0]) for each in answers]
    assert methods.count(GAUSSIAN) <= parameters.cap
    # Of a prior that is right only false alarms are answered afresh.
    assert (methods.count(GAUSSIAN) > parameters.cap / 2) is (strength > 0)
    assert methods[-1] == MEASURED
    assert (UNCERTIFIED in methods) is (strength > 0)


def test_a_fresh_answer_is_the_prior_s_up_to_three_standard_errors_and_keeps_its_interval() -> None:
    measured = answers_within(np.full(5, 10_000), AnswerMethod.GAUSSIAN, 6_000, 1_000)
    answers = unless_refuted(measured, np.array([7_000, 6_999, 13_000, 13_001, 10_000]))
    assert answers.values.tolist() == [7_000, 10_000, 13_000, 10_000, 10_000]
    fitted = AnswerMethod.FITTED
    assert answers.methods.tolist() == [fitted, GAUSSIAN, fitted, GAUSSIAN, fitted]
    for name in ("lows", "highs", "standard_errors"):
        np.testing.assert_array_equal(getattr(answers, name), getattr(measured, name))
    # Whatever its standard errors: none is told that lies outside of the interval.
    cut = answers_within(np.full(1, -500), AnswerMethod.GAUSSIAN, 600, 1_000)
    assert unless_refuted(cut, np.array([101])).values.tolist() == [-500]


@pytest.mark.slow
def test_a_session_that_is_started_again_measures_the_same() -> None:
    public, counts = setting(prior="own"), table(0.9)
    asked = {slot: PAIR if slot % 3 else CELL for slot in range(0, 120, 2)}
    whole = played(public, counts, asked)
    again = played(public, counts, dict(list(asked.items())[:40]))
    assert to_bytes(Answers.join(again)) == to_bytes(Answers.join(whole[:40]))


def test_too_little_budget_is_said() -> None:
    public = setting(prior="own")
    with pytest.raises(BudgetExhausted):
        PRIVATE.plan(replace(public, data_budget=Budget(1e-7, 1e-12)))


def test_an_unprotected_session_has_a_prior_too() -> None:
    public = setting(prior="own")
    plan = PRIVATE.plan(replace(public, analyst_budget=Budget(math.inf, 0.0)))
    assert plan.analyst_cost is None
