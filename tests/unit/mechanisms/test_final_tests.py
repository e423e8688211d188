"""Final tests of answers: what they tell, with what noise for what is charged, and how far that reaches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths
from harness.mechanism_cases import CASES
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from equipoise.accounting import PureDpEvent, events_from_json
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.multiplicative_weights.plan import WeightsParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED
from equipoise_server.mechanisms.pooled.direct import DirectAnswers
from equipoise_server.mechanisms.pooled.fitted import FittedSynopsis
from equipoise_server.mechanisms.projection.mechanism import Projection
from equipoise_server.mechanisms.projection.plan import gaussian_law
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.repair import private_weights
from equipoise_server.mechanisms.repair.analyst_repair import (
    AnalystRepairParameters,
    Served,
    answer_with_fresh_noise,
)
from equipoise_server.mechanisms.repair.private_weights import (
    SCORE_ROUNDING,
    PrivateWeights,
    answer_scores,
    least_score,
    rounding_error,
)
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces
from equipoise_server.mechanisms.repair.statement_repair import (
    SCORE_BITS,
    UNCERTIFIED,
    SynopsisCounts,
    half_width_on_grid,
)
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

pytestmark = pytest.mark.slow

ONE = 1 << GRID_BITS
SCHEMA = Schema.from_json('{"a": 2, "b": 2}')
HISTOGRAM = np.array([0, 400, 600, 0], dtype=np.int64)
RECORDS = 1000
ASKED = compile_workload([Marginal(("a", "b")), attribute("a") == "0"], SCHEMA)
WEIGHTS = MECHANISMS["multiplicative_weights"]
answers_on_the_grid = st.lists(st.integers(0, ONE), min_size=1, max_size=5)


def setting_of(analysts: int = 1, records: int = RECORDS, **options: object) -> PublicParameters:
    shares = tuple(Share(f"analyst {number}", 2, 5) for number in range(analysts))
    budgets = Budget(1.0, 1e-8), Budget(1.0, 1e-6)
    return PublicParameters(records, 4, shares, "query", *budgets, 0.1, options, attributes=(2, 2))


Draw = Callable[[DiscreteLaplace, int, object], NDArray[np.int64]]


def noise_of(amount: Callable[[DiscreteLaplace], int]) -> Draw:
    """What to put in the place of a law's draws: the same amount each time."""
    return lambda law, count, _: np.full(count, amount(law), dtype=np.int64)


@given(answers_on_the_grid, st.integers(1, 2000), st.data())
def test_no_data_have_a_smaller_score_than_the_least(told: list[int], records: int, data: st.DataObject) -> None:
    answers = np.array(told, dtype=np.int64)
    nearest = [int(np.rint(each * records / ONE)) for each in told]
    near = [[count for count in (each - 1, each, each + 1) if 0 <= count <= records] for each in nearest]
    scores = [
        min(int(answer_scores(np.array([count]), records, answers[k : k + 1])[0]) for count in counts)
        for k, counts in enumerate(near)
    ]
    assert least_score(answers, records) == max(scores)
    counts = data.draw(st.lists(st.integers(0, records), min_size=len(told), max_size=len(told)))
    assert least_score(answers, records) <= answer_scores(np.array(counts), records, answers).max()


@given(answers_on_the_grid, st.integers(1, 2000), st.integers(0, 1 << 24), st.integers(-(1 << 25), 1 << 25))
def test_a_test_is_right_where_its_noise_keeps_to_the_margin_and_is_never_refuted(
    told: list[int], records: int, margin: int, noise: int
) -> None:
    answers, scale = np.array(told, dtype=np.int64), records << SCORE_BITS
    counts = [each * records >> GRID_BITS for each in told]
    largest = int(answer_scores(np.array(counts, dtype=np.int64), records, answers).max())
    bound = private_weights.tested_half_width(largest + noise, margin, answers, records)
    wrong = max(
        abs(Fraction(each, ONE) - Fraction(count, records)) for each, count in zip(told, counts, strict=True)
    )
    if noise >= -margin:
        assert wrong <= Fraction(bound, ONE)
    assert bound == ONE or bound >= half_width_on_grid(least_score(answers, records) + SCORE_ROUNDING, scale)


def test_a_test_that_fails_by_a_hair_says_nothing_and_one_that_holds_by_none_all_that_it_proves() -> None:
    answers = np.array([ONE // 2, ONE // 4 + (ONE >> 12)], dtype=np.int64)  # 500 and a bit beyond 250 records
    least = least_score(answers, RECORDS)
    assert 0 < least < 1 << SCORE_BITS
    assert private_weights.tested_half_width(least - 71, 70, answers, RECORDS) == ONE
    expected = half_width_on_grid(least + SCORE_ROUNDING, RECORDS << SCORE_BITS)
    assert private_weights.tested_half_width(least - 70, 70, answers, RECORDS) == expected
    assert private_weights.tested_half_width(-10, 5, np.array([ONE // 2]), RECORDS) == ONE
    assert private_weights.tested_half_width(-5, 5, np.array([ONE // 2]), RECORDS) == half_width_on_grid(
        16, RECORDS << SCORE_BITS
    )


def weights_answers(setting: PublicParameters, plan: MechanismPlan) -> Answers:
    histogram = HISTOGRAM * setting.records // RECORDS
    outcome = WEIGHTS.run(
        setting, plan, DenseCounts(histogram, setting.attributes), {"analyst 0": ASKED}, bytes(32), lambda *_: None
    )
    return outcome.answers["analyst 0"]


@pytest.mark.sparse(3)
@pytest.mark.thin(4)
@pytest.mark.parametrize("beyond", [1, 20])
@pytest.mark.parametrize(("records", "useful"), [(200, False), (10**7, True)])
def test_where_the_test_has_failed_weights_tell_what_is_proven_without_it(
    records: int, useful: bool, beyond: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = setting_of(records=records, rounds=64 if useful else 1)
    plan = WEIGHTS.plan(setting)
    parameters = WeightsParameters.from_json(plan.parameters)
    assert (parameters.proven < ONE) == useful
    before = weights_answers(setting, plan)
    monkeypatch.setattr(
        DiscreteLaplace, "draw", noise_of(lambda _: -beyond * parameters.margin - (records << SCORE_BITS))
    )
    after = weights_answers(setting, plan)
    assert (after.highs == np.minimum(after.values + parameters.proven, ONE)).all() or not useful
    # A proof that says nothing is no reason to leave the fitted answers.
    assert (after.values == before.values).all() == (not useful)
    truth = ASKED.counts(HISTOGRAM) / RECORDS
    assert not after.misses(truth).any()
    assert half_widths(after).max() <= plan.max_half_width
    assert plan.max_uncertified == 0


def repaired(limit: int, proven: int, monkeypatch: pytest.MonkeyPatch) -> Answers:
    weights = PrivateWeights(4, Fraction(1), Fraction(1), Fraction(1), 1 << 36)
    margin = weights.certify_noise.quantile(0.01)
    parameters = AnalystRepairParameters(
        0, Fraction(1), RepairPlaces(1, Fraction(0), 1), weights, 1 << 30, proven, limit, margin
    )
    served = Served(ASKED, ASKED.counts(HISTOGRAM), SynopsisCounts(ASKED.counts(HISTOGRAM), RECORDS))
    monkeypatch.setattr(DiscreteLaplace, "draw", noise_of(lambda law: -(1 << 40) if law.rate < 0.5 else 0))
    return answer_with_fresh_noise(parameters, "a", served, RECORDS, np.ones(4), bytes(32))


def test_where_the_test_has_failed_a_repair_tells_what_is_proven_without_it_or_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proven = repaired(1 << 39, 1 << 39, monkeypatch)
    assert (proven.lows == np.maximum(proven.values - (1 << 39), 0)).all()
    assert (proven.highs == np.minimum(proven.values + (1 << 39), ONE)).all()
    assert UNCERTIFIED not in proven.methods
    nothing = repaired(1 << 38, 1 << 39, monkeypatch)
    assert set(nothing.methods.tolist()) == {UNCERTIFIED}


@pytest.mark.parametrize("side", [-1, 1])
def test_a_projection_tells_no_interval_that_the_noise_refutes(side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise is a little beyond its reach: below empty cells and above the full one every interval is empty."""
    setting = replace(setting_of(), beta=0.1)
    plan = Projection().plan(setting)
    parameters = NoiseParameters.from_json(plan.parameters)
    reach = gaussian_law(parameters).quantile(Fraction(0.1) / (2 * setting.queries))
    histogram = np.array([0, RECORDS, 0, 0], dtype=np.int64)
    truth = ASKED.counts(histogram)
    monkeypatch.setattr(DiscreteGaussian, "draw", lambda law, count, _: np.full(count, side * (reach + 3)))
    outcome = Projection().run(
        setting, plan, DenseCounts(histogram), {"analyst 0": ASKED}, bytes(32), lambda *_: None
    )
    answers = outcome.answers["analyst 0"]
    assert set(answers.methods.tolist()) == {6}  # near enough to be fitted
    refuted = truth == (0 if side < 0 else RECORDS)
    assert refuted.any()
    assert ((answers.highs - answers.lows)[refuted] >= reach * ONE // RECORDS).all()
    assert not answers.misses(truth / RECORDS)[refuted].any()
    assert half_widths(answers).max() <= plan.max_half_width


@pytest.mark.parametrize("side", [-1, 1])
def test_pooled_tells_no_interval_that_the_noise_refutes(side: int) -> None:
    """As above, with estimates that are beyond their reach from all that counts can be."""
    together = CASES["a table"].workloads["ana"]
    records, queries = CASES["a table"].setting.records, together.query_count
    reach = np.full(queries, 40.0)
    told = DirectAnswers(np.full(queries, -50.0 if side < 0 else records + 50.0), reach, reach / 5)
    synopsis = Synopsis.of_cells(np.arange(12), together.schema_sizes)
    answers = FittedSynopsis(synopsis).answered(together, told, records, ONE)
    end = 0 if side < 0 else ONE
    assert ((answers.lows == 0) | (answers.highs == ONE)).all()
    assert (half_widths(answers) >= 20 / records).all()
    assert (half_widths(answers) <= 20 / records + 2.0**-38).all()
    assert ((answers.lows == end) | (answers.highs == end)).all()


def drawn_noise(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> list[tuple[Fraction, int]]:
    """The rates of all discrete Laplace noise that is drawn, and how many numbers of each."""
    drawn: list[tuple[Fraction, int]] = []
    draw = DiscreteLaplace.draw

    def watched(law: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        drawn.append((law.rate, count))
        return draw(law, count, stream)

    with monkeypatch.context() as patches:
        patches.setattr(DiscreteLaplace, "draw", watched)
        run()
    return drawn


def test_weights_test_with_the_noise_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """One largest score each, which a record moves by 2^16 at most: epsilon-DP with the rate epsilon / 2^16."""
    setting = setting_of(3)
    plan = WEIGHTS.plan(setting)
    asked = {share.analyst: ASKED for share in setting.shares}
    drawn = drawn_noise(
        monkeypatch,
        lambda: WEIGHTS.run(
            setting, plan, DenseCounts(HISTOGRAM, setting.attributes), asked, bytes(32), lambda *_: None
        ),
    )
    (charged,) = [part for part in events_from_json(plan.data_events) if part.name == "certificates"]
    assert isinstance(charged, PureDpEvent)
    assert drawn == [(charged.epsilon / (1 << SCORE_BITS), 1)] * charged.times
    assert charged.times == 3


def test_a_repair_measures_and_tests_with_the_noise_that_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `accounting.private_weights_rho` charges: counts that move by 1, and a largest score, by 2^16."""
    weights = PrivateWeights(4, Fraction(1), Fraction(2, 3), Fraction(3, 5), 1 << 36)
    stream = KeyedStream.derive(bytes(32), "test")
    drawn = drawn_noise(
        monkeypatch, lambda: weights.answer(ASKED, ASKED.counts(HISTOGRAM), RECORDS, np.ones(4), stream)
    )
    assert drawn == [(Fraction(2, 3), 4), (Fraction(3, 5) / (1 << SCORE_BITS), 1)]


def gaussian_tail(variance: Fraction, size: int) -> float:
    """How probably discrete Gaussian noise is `size` or more, on either side."""
    numbers = np.arange(0, math.ceil(60 * math.sqrt(variance)) + size)
    weights = np.exp(-(numbers.astype(float) ** 2) / (2 * float(variance)))
    return float(2 * weights[size:].sum() / (2 * weights.sum() - 1))


@pytest.mark.parametrize(("analysts", "rounds"), list(itertools.product((1, 5, 60), (1, 24))))
def test_beta_is_enough_for_all_tests_and_all_measurements_of_all_analysts(analysts: int, rounds: int) -> None:
    setting = setting_of(analysts, 10**6, rounds=rounds)
    parameters = WeightsParameters.from_json(WEIGHTS.plan(setting).parameters)
    third = setting.beta / 3 * (1 + 1e-9)
    assert analysts * parameters.certify_noise.tail(parameters.margin + 1) / 2 <= third
    allowed = parameters.reach / ONE - rounding_error(setting.records, setting.universe_size)
    beyond = gaussian_tail(parameters.noise.variance * MAX_MOVED, math.floor(allowed * setting.records) + 1)
    assert analysts * rounds * setting.largest_share * beyond <= third
    # Not much more than is needed: a margin for fewer would not do.
    assert analysts * parameters.certify_noise.tail(parameters.margin - (1 << SCORE_BITS)) / 2 > third / 2
