"""`low_sensitivity`: what it refuses, what it sees of the data, and that its answers are within their bounds."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths
from harness.instance import silent
from harness.statistics_session import (
    MECHANISM,
    SCHEMA,
    STATEMENTS,
    compiled,
    everything_asked,
    listed,
    setting,
    table,
    without,
)
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import (
    CappedSum,
    CountDistinct,
    Marginal,
    Quantile,
    Statement,
    Variance,
    median,
)
from equipoise.queries.statistics import Databases, grid_units
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.low_sensitivity.candidates import MAX_CANDIDATES, read_candidates
from equipoise_server.mechanisms.low_sensitivity.database_question import (
    DatabaseQuestion,
    database_of,
    rounding,
    scale_for,
    statistic_of,
)
from equipoise_server.mechanisms.low_sensitivity.parameters import LowSensitivityParameters
from equipoise_server.mechanisms.online.interface import play

SEED = bytes(range(32))


def played(case: PublicParameters, histogram: NDArray[np.int64], seed: bytes = SEED) -> Outcome:
    plan = MECHANISM.plan(case)
    return play(MECHANISM, case, plan, DenseCounts(histogram, SCHEMA.sizes), everything_asked(case), seed, silent)


def database(histogram: NDArray[np.int64]) -> Databases:
    return database_of(SCHEMA.sizes, DenseCounts(histogram, SCHEMA.sizes))


def truths(case: PublicParameters, histogram: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    data = database_of(case.attributes, DenseCounts(histogram, SCHEMA.sizes))
    return {
        name: np.concatenate([statistic_of(each).values(data) for each in asked.statements])
        for name, asked in everything_asked(case).items()
    }


ONE = {"cells": [0, 5], "counts": [3, 4]}


@pytest.mark.parametrize(
    ("name", "value", "field", "problem"),
    [
        ("candidates", [], "options.candidates", "at least one database"),
        ("candidates", {"cells": [0], "counts": [1]}, "options.candidates", "a list"),
        ("candidates", [ONE] * (MAX_CANDIDATES + 1), "options.candidates", "more than 4,096"),
        ("candidates", [ONE, [1, 2]], "options.candidates[1]", "keys cells and counts"),
        ("candidates", [ONE, ONE | {"records": 7}], "options.candidates[1]", "keys cells and counts"),
        ("candidates", [{"cells": [], "counts": []}], "options.candidates[0].cells", "at least one"),
        ("candidates", [{"cells": [0, 6], "counts": [1, 1]}], "options.candidates[0].cells[1]", "from 0 to 5"),
        ("candidates", [{"cells": [-1], "counts": [1]}], "options.candidates[0].cells[0]", "from 0 to 5"),
        ("candidates", [{"cells": [True], "counts": [1]}], "options.candidates[0].cells[0]", "whole number"),
        ("candidates", [{"cells": [0], "counts": [0]}], "options.candidates[0].counts[0]", "whole number from 1"),
        ("candidates", [{"cells": [0], "counts": [1.5]}], "options.candidates[0].counts[0]", "whole number"),
        ("candidates", [{"cells": [0, 1], "counts": [1]}], "options.candidates[0].counts", "each of the 2"),
        ("candidates", [{"cells": [1, 1], "counts": [1, 2]}], "options.candidates[0].cells", "different"),
        ("candidates", [{"cells": [0, 1], "counts": [2**40] * 2}], "options.candidates[0].counts", "together"),
        *(
            ("sensitivity", value, "options.sensitivity", "above 0 and at most 1")
            for value in (0, -0.1, 1.5, True, None, "0/5", "3/2", "1/0", "1e-3", "a tenth", "0.5/2", [0.1])
        ),
        ("surprise", 1, "options.surprise", "unknown"),
        ("length", 0, "session.length", "between 1"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(name: str, value: object, field: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        MECHANISM.plan(without(setting(), **{name: value}))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("name", "field"), [("candidates", "options.candidates"), ("sensitivity", "options.sensitivity")]
)
def test_what_has_no_usual_value_must_be_given(name: str, field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        MECHANISM.plan(without(setting(), name))
    assert refused.value.field == field


def test_a_schema_is_needed_and_statements_are_what_is_hidden() -> None:
    with pytest.raises(InvalidArgument, match="attributes: must be given"):
        MECHANISM.plan(replace(setting(), attributes=()))
    with pytest.raises(InvalidArgument) as refused:
        MECHANISM.plan(replace(setting(), unit="analyst"))
    assert refused.value.field == "unit"


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (median("x", 0.05), r"Delta = 0\.000625 .* 20,000 records .* sensitivity is 0\.00025"),
        (median("x", 1e-6), r"Delta = 0\.625 "),
        (Marginal(("x",)), "is a table"),
    ],
)
def test_a_statement_that_moves_too_far_is_refused_and_both_deltas_named(
    statement: Statement, problem: str
) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        MECHANISM.check_statement(MECHANISM.plan(setting()), compiled(statement))
    assert refused.value.field == "statement"


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_of_exactly_the_declared_sensitivity_is_taken(statement: Statement) -> None:
    exact = statistic_of(compiled(statement)).sensitivity(20_000)
    plan = MECHANISM.plan(setting())
    at_most = replace(LowSensitivityParameters.from_json(plan.parameters), sensitivity=exact)
    MECHANISM.check_statement(replace(plan, parameters=at_most.to_json()), compiled(statement))
    below = replace(at_most, sensitivity=exact - Fraction(2, 1 << 40))
    with pytest.raises(InvalidArgument, match="declared sensitivity"):
        MECHANISM.check_statement(replace(plan, parameters=below.to_json()), compiled(statement))


@pytest.mark.parametrize("declared", ["1", "1/3", 0.001, "1/334000", 1e-12, 1e-300])
def test_nothing_of_the_declared_sensitivity_moves_further_on_the_scale(declared: float | str) -> None:
    given = Fraction(str(declared))
    scale, moved = scale_for(given), grid_units(given)
    assert 1 <= scale.sensitivity <= 1 << 10
    assert 1 <= scale.units < 1 << 40
    # Rounded down anywhere on the scale, what moves by `moved` on the grid moves by the sensitivity at most.
    starts = [*range(0, 5000, 7), *range((1 << 40) - moved - 5000, (1 << 40) - moved, 7)]
    steps = {((start + moved) * scale.units >> 40) - (start * scale.units >> 40) for start in starts if start >= 0}
    assert max(steps) <= scale.sensitivity
    assert max(steps) >= scale.sensitivity - 1


def small_tables(records: int) -> list[NDArray[np.int64]]:
    cells = range(SCHEMA.universe_size)
    every = itertools.combinations_with_replacement(cells, records)
    return [np.bincount(each, minlength=len(cells)).astype(np.int64) for each in every]


def test_no_truth_moves_further_than_the_scale_says_on_any_small_table() -> None:
    some = small_tables(3)
    single = read_candidates(setting())
    for statement in STATEMENTS:
        statistic = statistic_of(compiled(statement))
        scale = scale_for(statistic.sensitivity(3))
        truth = [int(DatabaseQuestion(statistic, single, database(each), scale).truth()[0]) for each in some]
        for one, other in itertools.combinations(range(len(some)), 2):
            if np.abs(some[one] - some[other]).sum() == 2:
                assert abs(truth[one] - truth[other]) <= scale.sensitivity


def test_candidates_count_by_how_often_they_are_held() -> None:
    case = setting()
    candidates = read_candidates(case)
    generator = np.random.default_rng(5)
    often = generator.integers(0, 1 << 16, len(candidates.starts))
    tables = [np.zeros(SCHEMA.universe_size, np.int64) for _ in candidates.starts]
    for owner, cell, count in zip(candidates.owners, candidates.cells, candidates.counts, strict=True):
        tables[owner][cell] = count
    for statement in STATEMENTS:
        statistic = statistic_of(compiled(statement))
        question = DatabaseQuestion(statistic, candidates, candidates, scale_for(Fraction(1, 100)))
        values = [int(statistic.values(database(each))[0]) for each in tables]
        weighted = sum(value * int(times) for value, times in zip(values, often, strict=True))
        assert question.multiset_answers(often).tolist() == [weighted // int(often.sum())]
        up, down = (question.direction(np.array([sign])) for sign in (1, -1))
        assert up.tolist() == [value >> 24 for value in values] == (-down).tolist()
        assert int(np.ptp(up)) <= 1 << 16


def test_a_predicate_is_the_fraction_of_records_for_which_it_holds() -> None:
    candidates, half = read_candidates(setting()), attribute("c") == "a"
    data = database(table(1000, 0.3))
    statistic = statistic_of(compiled(half))
    workload = compile_single(half, SCHEMA)
    assert statistic.values(data).tolist() == [(int(workload.counts(table(1000, 0.3))[0]) << 40) // 1000]
    assert len(statistic.values(candidates)) == 21


def test_only_what_statements_come_to_is_seen_of_the_data() -> None:
    """Two tables on which every statement has the same value get the same answers, whatever else differs."""
    case = without(setting(records=4), sensitivity=1.0)
    histograms = [np.array(counts, np.int64) for counts in ((1, 1, 0, 2, 0, 0), (0, 2, 1, 1, 0, 0))]
    told = []
    for histogram in histograms:
        asked = {
            name: replace(each, statements=tuple(compiled(Quantile("x", 0.0, 0.5)) for _ in each.statements))
            for name, each in everything_asked(case).items()
        }
        told.append(
            play(MECHANISM, case, MECHANISM.plan(case), DenseCounts(histogram, SCHEMA.sizes), asked, SEED, silent)
        )
    for name in ("alice", "bob"):
        np.testing.assert_array_equal(told[0].answers[name].values, told[1].answers[name].values)
        np.testing.assert_array_equal(told[0].answers[name].methods, told[1].answers[name].methods)


def test_the_same_session_gives_the_same_bytes_and_another_seed_others() -> None:
    case, histogram = setting(), table(20_000, 0.4)
    outcomes = [played(case, histogram, seed) for seed in (SEED, SEED, bytes(32))]
    values = [np.concatenate([each.values for each in outcome.answers.values()]) for outcome in outcomes]
    np.testing.assert_array_equal(values[0], values[1])
    assert (values[0] != values[2]).any()
    assert all(len(outcome.synopsis) == 0 for outcome in outcomes)


def test_a_session_goes_on_after_a_restart_as_if_nothing_had_been() -> None:
    case, histogram = setting(), table(20_000, 0.4)
    plan, asked = MECHANISM.plan(case), everything_asked(case)
    order = sorted((slot, name, i) for name, each in asked.items() for i, slot in enumerate(each.slots.tolist()))
    whole = MECHANISM.start(case, plan, DenseCounts(histogram, SCHEMA.sizes), SEED)
    first = [whole.answer(slot, asked[name].statements[i]) for slot, name, i in order]
    again = MECHANISM.start(case, plan, DenseCounts(histogram, SCHEMA.sizes), SEED)
    for count, (slot, name, i) in enumerate(order):
        if count == len(order) // 2:
            again = MECHANISM.start(case, plan, DenseCounts(histogram, SCHEMA.sizes), SEED)
            for earlier, who, place in order[:count]:
                again.answer(earlier, asked[who].statements[place])
        answer = again.answer(slot, asked[name].statements[i])
        np.testing.assert_array_equal(answer.values, first[count].values)
        np.testing.assert_array_equal(answer.methods, first[count].methods)


@pytest.mark.slow
def test_truths_lie_in_their_intervals_and_these_say_something() -> None:
    case = replace(setting(), beta=1e-3)
    plan = MECHANISM.plan(case)
    assert plan.seconds == float(f"{plan.seconds:.6g}")  # as a replay compares it exactly
    assert plan.max_half_width < 0.1
    missed = certified = afresh = 0
    for run in range(13):
        histogram = table(20_000, (run - 6) / 2)  # from well among the candidates to far from all of them
        outcome = played(case, histogram, run.to_bytes(32, "little"))
        for name, true in truths(case, histogram).items():
            answers = outcome.answers[name]
            certified += int(answers.certified.sum())
            afresh += int((answers.methods == 3).sum())
            missed += int(answers.misses(true / 2.0**40).sum())
            assert half_widths(answers).max() <= plan.max_half_width
    assert missed == 0
    assert certified == 13 * 24
    assert 0 < afresh < certified


def test_the_plan_says_what_it_takes_to_play_it_again() -> None:
    plan = MECHANISM.plan(setting())
    assert LowSensitivityParameters.from_json(plan.parameters).to_json() == plan.parameters
    assert json.loads(plan.parameters)["sensitivity"] == "1/4000"
    assert plan.mechanism == "low_sensitivity"


def test_bounds_cover_what_a_scale_rounds_away() -> None:
    case, data = setting(), database_of(SCHEMA.sizes, DenseCounts(table(20_000, 0.4)))
    for statement in STATEMENTS:
        statistic = statistic_of(compiled(statement))
        scale = scale_for(Fraction(1, 4000))
        question = DatabaseQuestion(statistic, read_candidates(case), data, scale)
        shown = (int(question.truth()[0]) << 40) // scale.units
        assert 0 <= int(statistic.values(data)[0]) - shown <= rounding(scale)


def test_a_scale_s_rounding_covers_what_the_grid_of_values_rounds_away_before_it() -> None:
    records, held = 1_000_003, 6_399  # a fraction that lies right below a step of the grid and one of the scale
    histogram = np.zeros(SCHEMA.universe_size, dtype=np.int64)
    predicate = statistic_of(compiled(attribute("c") == "a"))
    histogram[0], histogram[-1] = held, records - held
    scale = scale_for(Fraction(1, records))
    question = DatabaseQuestion(predicate, read_candidates(setting()), database(histogram), scale)
    away = Fraction(held << 40, records) - Fraction(int(question.truth()[0]) << 40, scale.units)
    assert rounding(scale) - 1 < away <= rounding(scale)


def test_every_way_to_ask_is_taken_together() -> None:
    kinds = {type(each) for each in STATEMENTS}
    assert {Quantile, Variance, CountDistinct, CappedSum} < kinds
    assert listed(np.array([0, 3, 0])) == {"cells": [1], "counts": [3]}
