"""Intervals of what starts from a measurement: the chances of all that may fail add up to at most beta."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.product_terms import ProductTerms, product_terms
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs import prior_plan
from equipoise_server.mechanisms.epochs.prior_plan import PriorEpochParameters
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.online.mechanism import Online
from equipoise_server.mechanisms.online.prior_plan import PriorOnlineParameters
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.prior.measure import measured_for
from equipoise_server.mechanisms.prior.plan import plan_prior
from equipoise_server.mechanisms.repair.final_tests import REACH_BITS, certify, known_law, plan_final_tests
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS
from equipoise_server.mechanisms.residuals.direct import UniformReach
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema.from_json('{"a": 3, "b": 3, "c": 2, "d": 2}')
RECORDS, BETA, NEARLY, ONE = 50_000, 0.05, 1 + 1e-9, 1 << GRID_BITS


def setting(analysts: int, statements: int, **options: object) -> PublicParameters:
    shares = tuple(Share(f"analyst-{place}", statements, 12 * statements) for place in range(analysts))
    budgets = Budget(1.0, 1e-9), Budget(1.0, 1e-6)
    return PublicParameters(RECORDS, 36, shares, "query", *budgets, BETA, options, SCHEMA.sizes)


@pytest.mark.parametrize("analysts", [1, 40])
def test_known_laws_and_final_tests_share_beta(analysts: int) -> None:
    """Half for all declared queries, by Chernoff's bound on either side; half for all analysts' tests."""
    case = setting(analysts, 10)
    planned = plan_final_tests(case, 0.01, Fraction(1, 100))
    reach = planned.reach / 2**REACH_BITS
    assert case.queries * 2 * math.exp(-(reach**2) / 2) <= BETA / 2
    deviation = math.sqrt(planned.variance)
    tail = math.erfc((planned.margin + 0.5) / deviation / math.sqrt(2)) / 2
    assert analysts * tail <= BETA / 2 * (1 + 1e-3)
    assert planned.log is None


def test_a_released_measurement_shares_beta_with_final_tests() -> None:
    """What is kept for all that can ever be asked of it is half of beta, too."""
    planned = plan_final_tests(setting(3, 10), 0.01, Fraction(1, 100), released=True)
    assert planned.log is not None
    assert 2 * math.exp(-float(planned.log)) <= BETA / 2


@pytest.mark.parametrize(
    ("limit", "method"), [(0, AnswerMethod.UNCERTIFIED), (1 << GRID_BITS, AnswerMethod.SYNOPSIS)]
)
def test_a_test_that_says_more_than_was_promised_certifies_nothing(limit: int, method: AnswerMethod) -> None:
    """Three attributes are in no table, so that only the test could give an interval."""
    case = setting(1, 1)
    histogram = np.full(36, RECORDS // 36, dtype=np.int64)
    histogram[0] += RECORDS - histogram.sum()
    prior = plan_prior(case, Fraction(1, 10))
    measured = measured_for(prior, case, DenseCounts(histogram, SCHEMA.sizes), bytes(32))
    parameters = replace(plan_final_tests(case, 0.01, Fraction(1, 100)), limit=limit)
    asked = compile_workload([(attribute("a") == "0") & (attribute("b") == "0") & (attribute("c") == "0")], SCHEMA)
    counts = asked.counts(histogram)
    values = (counts << GRID_BITS) // RECORDS
    stream = KeyedStream.derive(bytes(32), "a test")
    answers = certify(parameters, asked, counts, values, measured, AnswerMethod.SYNOPSIS, stream)
    assert answers.methods.tolist() == [method]


def test_boxes_of_all_kinds_and_sets_share_the_chance() -> None:
    """Single cells, ranges, all other boxes, and those with weights, each of every set: their chances add up."""
    family, chance = ResidualFamily.closed(SCHEMA.sizes, [(0, 1), (1, 2), (2, 3)]), Fraction(1, 20)
    reach = UniformReach(family, chance)

    def multiplier_of(terms: ProductTerms) -> float:
        (multiplier,) = reach.of(terms.axes, terms.factors(np.array([0]))).tolist()
        return float(multiplier)

    def failing(terms: ProductTerms, boxes: int) -> float:
        multiplier = multiplier_of(terms)
        return boxes * 2 * math.exp(-(multiplier**2) / 2)

    a, b = attribute("a"), attribute("b")
    cell, run, other, weighted = (
        next(iter(product_terms(compile_workload([statement], SCHEMA))))
        for statement in (
            (a == "0") & (b == "0"),
            (a != "0") & (b == "0"),
            (a != "1") & (b == "0"),
            Sum("a", where=b == "0"),
        )
    )
    sizes = [[SCHEMA.sizes[axis] for axis in axes] for axes in family.sets]
    cells = sum(math.prod(own) for own in sizes)
    runs = sum(math.prod(size * (size + 1) // 2 for size in own) for own in sizes)
    assert reach.cells() == multiplier_of(cell)
    spent = failing(cell, cells) + failing(run, runs)
    # Of a set every box has an equal part: one of two categories in each of six places.
    spent += failing(other, len(family.sets) * 2**6)
    # And a sum is of one of its attributes, between two of its ends.
    ends = sum(SCHEMA.sizes[axis] * (SCHEMA.sizes[axis] + 1) // 2 for axis in weighted.axes)
    spent += failing(weighted, len(family.sets) * 2**6 * ends)
    assert float(chance) * 0.99 <= spent <= chance


@pytest.mark.parametrize("length", [1, 300])
def test_a_session_s_measurement_and_its_stages_share_beta(length: int) -> None:
    """A quarter each for the measurement, the tests, the thresholds and the answers.

    However what is between a threshold and its bound is split between a test's noise and its threshold's.
    """
    case = setting(1, length, length=length, prior="own")
    parameters = PriorOnlineParameters.from_json(Online().plan(case).parameters)
    assert parameters.chance == Fraction(BETA) / 4
    for stage in parameters.stages:
        certified = stage.certified_half_width * RECORDS * 2 ** (SCORE_BITS - GRID_BITS)
        between = certified - stage.threshold
        rate = float(stage.test_epsilon) * 2.0**-SCORE_BITS
        parts = np.linspace(0, between, 100_000)
        tests, thresholds = np.exp(-rate / 4 * parts) / 2, np.exp(-rate / 2 * (between - parts)) / 2
        failing = length * tests + len(parameters.stages) * thresholds
        assert failing.min() <= BETA / 2 * (1 + 1e-2)


def test_a_session_answers_from_its_measurement_with_the_chance_that_is_planned() -> None:
    case = setting(1, 30, length=30, prior="own")
    parameters = PriorOnlineParameters.from_json(Online().plan(case).parameters)
    data = DenseCounts(np.diff(np.arange(37) * RECORDS // 36), SCHEMA.sizes)
    known = MeasuredPrior.of(parameters.prior, parameters.chance, case, data, bytes(32))
    assert known.reach == UniformReach(parameters.prior.noise.family, parameters.chance)


def test_the_known_law_of_a_sum_covers_that_its_truth_is_rounded_down() -> None:
    """With so little noise that nothing else can be off."""
    case = setting(1, 10)
    tests = plan_final_tests(case, 0.01, Fraction(1, 100))
    data = DenseCounts(np.diff(np.arange(37) * RECORDS // 36), SCHEMA.sizes)
    family = ResidualFamily.closed(SCHEMA.sizes, [(0, 1), (2,)])
    measured = measure(data, ResidualNoise.of(family, [1] * len(family.residuals)), bytes(32), "test")
    workload = compile_workload([Sum("a"), Sum("a", ("b",)), Sum("b", where=attribute("a") == "1")], SCHEMA)
    law, truths = known_law(tests, workload, measured), workload.counts(data.histogram) * ONE / RECORDS
    assert (np.abs(law.values - truths) <= law.half_widths).all()
    assert (law.half_widths >= ONE / RECORDS).all()


def test_a_session_in_epochs_shares_beta_with_its_measurement() -> None:
    case = setting(5, 60, length=60, prior="own")
    parameters = PriorEpochParameters.from_json(OnlinePrivate().plan(case).parameters)
    rest = prior_plan.tested_setting(case, own=True)
    assert float(parameters.chance) + rest.beta <= BETA * NEARLY
