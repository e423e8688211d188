"""`low_sensitivity` from a prior: what is measured, charged, refused and told, and that answers err less so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np
import pytest
from harness.answers import half_widths, to_bytes
from harness.statistics_session import MECHANISM, SCHEMA, STATEMENTS, compiled, setting, table, without

from equipoise.accounting import DELTA_UNIT, ZcdpEvent, charge_of, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import CappedSum, CountDistinct, Quantile, Statement, Variance
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.explanation import why
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of, statistic_of
from equipoise_server.mechanisms.low_sensitivity.parameters import PriorStatisticsParameters
from equipoise_server.mechanisms.low_sensitivity.prior_database import PriorDatabases
from equipoise_server.mechanisms.planner import without_choice
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.registry import may_start_from_measurement
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.family import planned_noise
from equipoise_server.randomness.exponential import UNIT_BITS

SEED, ROUND = bytes(range(32)), "e" * 32
RECORDS, STATEMENTS_EACH = 20_000, 60
COUNTS = table(RECORDS, 0.4)
PAIR = compiled((attribute("c") == "a") & (attribute("x") >= 1.0))


def starting(prior: str | None, **options: object) -> PublicParameters:
    """A session of statistics without candidates; the planner decides where no prior is named."""
    named = {} if prior is None else {"prior": prior}
    return without(setting(RECORDS, STATEMENTS_EACH), "candidates", "prior", **named, **options)


def standing(budget: float = 8.0) -> tuple[dict[str, Any], bytes]:
    """What names a standing measurement in options, and its numbers."""
    noise = planned_noise({"family": "pairs"}, SCHEMA, Budget(budget, 1e-9))
    numbers = measure(DenseCounts(COUNTS, SCHEMA.sizes), noise, SEED, "measurement").to_bytes()
    return ReleasedMeasurement(ROUND, sha256(numbers).digest(), noise).as_option(), numbers


def start_of(plan: MechanismPlan) -> PriorStatisticsParameters:
    return PriorStatisticsParameters.from_json(plan.parameters)


def played(public: PublicParameters, asked: Sequence[Statement], seed: bytes = SEED) -> list[Answers]:
    session = MECHANISM.start(public, MECHANISM.plan(public), DenseCounts(COUNTS, SCHEMA.sizes), seed)
    return [session.answer(slot, compiled(each)) for slot, each in enumerate(asked)]


def truths(asked: Sequence[Statement]) -> np.ndarray[Any, np.dtype[np.float64]]:
    data = database_of(SCHEMA.sizes, DenseCounts(COUNTS, SCHEMA.sizes))
    return np.array([int(statistic_of(compiled(each)).values(data)[0]) for each in asked]) / 2.0**40


def test_measurement_and_tests_fit_the_budget_together_and_cost_the_analysts_the_end_alone() -> None:
    public = starting("own")
    plan = MECHANISM.plan(public)
    events, parameters = events_from_json(plan.data_events), start_of(plan)
    assert parameters.to_json() == plan.parameters
    assert isinstance(events[0], ZcdpEvent)
    assert events[0] == parameters.start.prior.events()[0]
    assert charge_of(events) == plan.data_cost
    assert 0.65 < epsilon_for(plan.data_cost, public.data_budget.delta) <= 1
    assert plan.analyst_cost is not None
    assert epsilon_for(plan.analyst_cost, public.analyst_budget.delta) <= 1
    assert plan.analyst_cost.rho == 0
    assert parameters.start.epochs.ending_epsilon > 0.99


def test_noise_of_the_measurement_that_were_cut_would_be_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    exact, cut = MECHANISM.plan(starting("own")), Fraction(1, 2 * DELTA_UNIT)
    monkeypatch.setattr(PriorParameters, "truncation", lambda _: cut)
    charged = MECHANISM.plan(starting("own"))
    assert charged.data_cost.delta >= exact.data_cost.delta + math.floor((1 + math.e) * cut * DELTA_UNIT)


def test_a_standing_measurement_is_named_and_not_charged() -> None:
    named, numbers = standing()
    public = replace(starting("standing", standing=named), measured=numbers)
    plan = MECHANISM.plan(public)
    assert may_start_from_measurement("low_sensitivity")
    assert "prior" not in {event.name for event in events_from_json(plan.data_events)}
    assert 0.85 < epsilon_for(plan.data_cost, public.data_budget.delta) <= 1
    assert f'"round":"{ROUND}"' in plan.parameters
    assert (
        start_of(plan).start.epochs.test_epsilon
        > start_of(MECHANISM.plan(starting("own"))).start.epochs.test_epsilon
    )
    answers = Answers.join(played(public, STATEMENTS))
    assert not answers.misses(truths(STATEMENTS)).any()
    with pytest.raises(ValueError, match="not those of the measurement"):
        MECHANISM.start(replace(public, measured=bytes(8)), plan, DenseCounts(COUNTS, SCHEMA.sizes), SEED)


@pytest.mark.slow
def test_the_planner_takes_what_is_expected_to_err_least() -> None:
    among = setting(RECORDS, STATEMENTS_EACH, standing=standing()[0])
    everything = without(among, "prior")
    starts = MECHANISM.starts(everything)
    assert {each.prior for each in starts} == {"standing", "own", "none"}
    assert [each.plan.expected_error for each in starts] == sorted(each.plan.expected_error for each in starts)
    assert starts[0].prior == "standing"
    assert MECHANISM.plan(everything) == starts[0].plan
    assert why(without_choice(MECHANISM, everything)).startswith("It starts from the standing measurement")
    # What so little budget measures errs by more than the candidates' promise.
    poor = replace(without(everything, "standing"), records=400, data_budget=Budget(0.01, 1e-9))
    poor = without(poor, sensitivity="1/400")
    assert MECHANISM.starts(poor)[0].prior == "none"
    assert [each.prior for each in MECHANISM.starts(starting(None))] == ["own"]


def test_what_makes_no_sense_with_a_prior_is_refused_by_name() -> None:
    listed = setting().options["candidates"]
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"prior": "any"}, "options.prior"),
        ({"prior": "none"}, "options.candidates"),
        ({"prior": "own", "candidates": listed}, "options.candidates"),
        ({"prior": "own", "epochs": 2}, "options.epochs"),
        ({"prior": "own", "sensitivity": 2}, "options.sensitivity"),
        ({"prior": "standing"}, "options.standing"),
        ({"candidates": [{"cells": [99], "counts": [1]}]}, "options.candidates[0].cells[0]"),
    )
    for options, field in cases:
        with pytest.raises(InvalidArgument) as refused:
            MECHANISM.plan(without(starting(None), **options))
        assert refused.value.field == field
    with pytest.raises(BudgetExhausted):
        MECHANISM.plan(replace(starting("own"), data_budget=Budget(1e-7, 1e-12)))
    assert MECHANISM.plan(replace(starting("own"), analyst_budget=Budget(math.inf, 0.0))).analyst_cost is None


def test_so_many_statements_that_tests_promise_nothing_still_have_a_prior() -> None:
    """As without one: what is promised is then 1, and a prior is expected to err by far less."""
    few = replace(starting("own"), data_budget=Budget(0.05, 1e-9))
    plan = MECHANISM.plan(few)
    assert plan.max_half_width == 1
    none = MECHANISM.plan(replace(setting(RECORDS, STATEMENTS_EACH), data_budget=Budget(0.05, 1e-9)))
    assert none.max_half_width == 1
    assert plan.expected_error < none.expected_error


def test_a_delta_above_the_declared_one_is_refused_from_a_prior_too() -> None:
    with pytest.raises(InvalidArgument, match=r"Delta = 0\.000625 .* sensitivity is 0\.00025"):
        MECHANISM.check_statement(MECHANISM.plan(starting("own")), compiled(Quantile("x", 0.5, 0.05)))


def test_what_the_measurement_tells_is_answered_without_a_test_also_at_the_end() -> None:
    public = starting("own")
    session = MECHANISM.start(public, MECHANISM.plan(public), DenseCounts(COUNTS, SCHEMA.sizes), SEED)
    true = truths([(attribute("c") == "a") & (attribute("x") >= 1.0)])
    for slot in (0, 7, 2 * STATEMENTS_EACH - 1):
        answers = session.answer(slot, PAIR)
        assert answers.methods.tolist() == [AnswerMethod.MEASURED]
        assert not answers.misses(true).any()
    with pytest.raises(ValueError, match="is over"):
        session.answer(7, PAIR)


@pytest.mark.parametrize("tilt", [0.0, 0.4, 2.0])
def test_truths_lie_in_their_intervals_and_statistics_are_answered_from_the_prior(
    tilt: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "COUNTS", table(RECORDS, tilt))
    public, asked = starting("own"), [*STATEMENTS] * 10
    answers = Answers.join(played(public, asked))
    assert not answers.misses(truths(asked)).any()
    assert half_widths(answers).max() <= MECHANISM.plan(public).max_half_width
    assert (answers.methods == AnswerMethod.HYPOTHESIS).sum() > 40
    assert (answers.methods == AnswerMethod.MEASURED).sum() == 10


@pytest.mark.slow
def test_answers_err_by_less_than_among_candidates() -> None:
    """One seed; the candidates are one family of tables, and the true one is among them."""
    asked = [*STATEMENTS] * 10
    errors = {}
    for prior, public in (("own", starting("own")), ("none", setting(RECORDS, STATEMENTS_EACH))):
        values = np.array([int(each.values[0]) for each in played(public, asked)]) / 2.0**40
        errors[prior] = np.abs(values - truths(asked))
    assert errors["own"].mean() < 0.5 * errors["none"].mean(), errors
    assert errors["own"].max() < 0.5 * errors["none"].max(), errors
    assert MECHANISM.plan(starting("own")).expected_error < MECHANISM.plan(setting(RECORDS, 60)).expected_error


def test_a_fresh_answer_is_the_prior_s_unless_it_refutes_it_and_its_interval_stays() -> None:
    """The threshold is no error at all: about half of what the measurement does not tell are false alarms."""
    public, asked = starting("own", threshold=0, target=60), [*STATEMENTS] * 10
    fresh = (AnswerMethod.FITTED, AnswerMethod.GAUSSIAN)
    afresh = [each for each in played(public, asked) if each.methods[0] in fresh]
    assert len(afresh) > 10
    deviation = int(max(each.standard_errors[0] for each in afresh))
    kept = [each for each in afresh if each.methods[0] == AnswerMethod.FITTED]
    assert len(kept) > 0.9 * len(afresh)
    assert all(each.standard_errors[0] == deviation for each in kept)
    for each in afresh:
        middle = (int(each.lows[0]) + int(each.highs[0])) // 2
        far = abs(int(each.values[0]) - middle) > 3 * deviation
        assert not far or each.methods[0] == AnswerMethod.GAUSSIAN
    # The same statement has the same answer each time, as it is the prior's.
    assert len({int(each.values[0]) for each in kept}) <= len(STATEMENTS)


def test_a_session_that_is_started_again_measures_the_same() -> None:
    public, asked = starting("own"), [*STATEMENTS] * 4
    whole, again = played(public, asked), played(public, asked[:9])
    assert to_bytes(Answers.join(again)) == to_bytes(Answers.join(whole[:9]))
    assert to_bytes(Answers.join(played(public, asked, bytes(32)))) != to_bytes(Answers.join(whole))


@pytest.mark.parametrize("records", [7, 20_000, 3_000_000])
def test_a_prior_is_laid_out_along_the_attributes_of_the_statistic(records: int) -> None:
    potential = (np.log(np.array([5, 0.01, 2, 3, 1, 4])) * 2.0**UNIT_BITS).astype(np.int64)
    prior = Prior(potential - potential.max())
    databases = PriorDatabases.of(prior, SCHEMA.sizes, records)
    parts = (prior.weights / prior.weights.sum()).reshape(SCHEMA.sizes)
    for statement, others in ((CappedSum("x", 3.0), 1), (Variance("x"), 1), (Quantile("x", 0.5, 0.2), 1)):
        laid = databases.database(statistic_of(compiled(statement)))
        assert int(laid.counts.sum()) == records
        held = np.bincount(laid.categories(0), laid.counts, 3)
        assert np.abs(held - records * parts.sum(axis=others)).max() <= 1
    laid = databases.database(statistic_of(compiled(CountDistinct(("c", "x")))))
    assert int(laid.counts.sum()) == records
    assert np.abs(np.bincount(laid.cells, laid.counts, 6) - records * parts.reshape(-1)).max() <= 1
    fraction = statistic_of(PAIR)
    (told,) = fraction.values(databases.database(fraction)).tolist()
    assert told / 2.0**40 == pytest.approx(parts[1:, 0].sum(), abs=1e-9)
