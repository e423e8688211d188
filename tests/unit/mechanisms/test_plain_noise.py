"""`laplace`, `gaussian` and `histogram`: how much noise a budget buys, which law, and where they end."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.instance import instance

from equipoise.accounting import ApproximateDpEvent, PureDpEvent, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.universe_size import MAX_UNIVERSE
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.calibration import noise_distribution
from equipoise_server.mechanisms.histogram.mechanism import METHOD, Histogram
from equipoise_server.mechanisms.histogram.plan import BEYOND, HistogramParameters, half_widths_of, truncation
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, LAPLACE, IndependentNoise
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import GRID_BITS, Mechanism, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, LaplaceNoise
from equipoise_server.mechanisms.projection.mechanism import Projection


def setting(*shares: Share, epsilon: float = 1.0, delta: float = 1e-9) -> PublicParameters:
    """A universe of a thousand records; the data budget."""
    return PublicParameters(50_000, 1000, shares, "query", Budget(epsilon, delta), Budget(1.0, 1e-6), 0.05, {})


TABLES = tuple(Share(f"analyst-{number}", 5, 500, 10) for number in range(7))


def test_tables_cost_tables_and_not_cells() -> None:
    """Ten times as many cells in as many tables get the same noise; only the union bound grows."""
    larger = tuple(replace(share, queries=5000) for share in TABLES)
    for mechanism in (LAPLACE, GAUSSIAN):
        plans = [mechanism.plan(setting(*shares)) for shares in (TABLES, larger)]
        noises = [NoiseParameters.from_json(plan.parameters).noise for plan in plans]
        assert noises[0] == noises[1]
        assert 1 < plans[1].max_half_width / plans[0].max_half_width < 1.5


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN, Histogram()], ids=lambda each: each.name)
def test_a_table_of_empty_cells_sums_to_one(mechanism: Mechanism) -> None:
    """999 of 1,000 cells are empty: cut at 0, they would add some twenty standard deviations of their sum."""
    workload = compile_workload([Marginal(("a", "b"))], Schema.from_json('{"a": 40, "b": 25}'))
    counts = np.zeros(1000, dtype=np.int64)
    counts[7] = 50_000
    given = setting(Share("ana", 1, 1000, 2, 1))
    data = DenseCounts(counts, workload.schema_sizes)
    outcome = mechanism.run(given, mechanism.plan(given), data, {"ana": workload}, bytes(32), lambda *_: None)
    answers = outcome.answers["ana"]
    deviation = float(answers.standard_errors[0]) * 1000**0.5
    assert abs(int(answers.values.sum()) - (1 << GRID_BITS)) < 5 * deviation
    assert (answers.values < 0).sum() > 300
    assert answers.lows.min() == 0
    # As large as the noise is: standard errors are neither half nor twice what answers err by.
    spread = float(np.std(answers.values - (counts << GRID_BITS) // 50_000))
    assert 0.8 < spread / float(answers.standard_errors.mean()) < 1.2


def test_predicates_cost_half_of_what_tables_do_where_they_are_declared() -> None:
    predicates = tuple(replace(share, sensitivity=5) for share in TABLES)
    undeclared = tuple(replace(share, sensitivity=0) for share in TABLES)
    moved = [
        NoiseParameters.from_json(GAUSSIAN.plan(setting(*shares)).parameters).l1_sensitivity
        for shares in (predicates, TABLES, undeclared)
    ]
    assert moved == [35, 70, 70]


def test_laplace_noise_is_charged_as_what_buys_less_of_it() -> None:
    usual, generous = (LAPLACE.plan(setting(*TABLES, delta=delta)) for delta in (1e-9, 0.9))
    assert events_from_json(usual.data_events)[0] == ApproximateDpEvent("answers", Fraction(1), Fraction(0))
    assert usual.data_cost.rho == 0
    part = events_from_json(generous.data_events)[0]
    assert isinstance(part, PureDpEvent)
    assert part.epsilon > 1
    assert generous.data_cost.epsilon == 0


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=lambda each: each.name)
def test_noise_coarser_than_its_sampler_draws_is_refused(mechanism: IndependentNoise) -> None:
    huge = tuple(Share(f"analyst-{number}", 2**40, 2**40) for number in range(20_000))
    with pytest.raises(BudgetExhausted, match=r"^data_budget: .*sampler"):
        mechanism.plan(setting(*huge, epsilon=1e-4, delta=1e-9))


def test_a_universe_beyond_the_limit_is_refused_with_the_limit() -> None:
    allowed = replace(setting(*TABLES), universe_size=MAX_UNIVERSE)
    assert Histogram().plan(allowed).mechanism == "histogram"
    with pytest.raises(InvalidArgument, match="67,108,864 fit; take projection, pooled") as refused:
        Histogram().plan(replace(allowed, universe_size=MAX_UNIVERSE + 1))
    assert refused.value.field == "universe_size"


def test_cells_too_noisy_to_be_summed_exactly_are_refused() -> None:
    coarse = replace(setting(*TABLES, epsilon=1e-7), universe_size=MAX_UNIVERSE)
    with pytest.raises(BudgetExhausted, match=r"^data_budget: is too small; .* would not be exact"):
        Histogram().plan(coarse)


def test_the_histogram_s_promise_knows_neither_how_many_ask_nor_what() -> None:
    """Its noise does not; a union bound over more queries grows with their logarithm."""
    asking = [replace(share, analyst=f"analyst-{number}") for number, share in enumerate(TABLES * 100)]
    few, many = Histogram().plan(setting(TABLES[0])), Histogram().plan(setting(*asking))
    noises = [HistogramParameters.from_json(plan.parameters).noise for plan in (few, many)]
    assert noises[0] == noises[1]
    assert many.max_half_width < 1.5 * few.max_half_width


def test_the_histogram_s_law_is_the_one_that_promises_less() -> None:
    """A small delta makes Gaussian noise dear; a large one, Laplace noise, whose epsilon it does not help."""
    laws = [
        HistogramParameters.from_json(Histogram().plan(setting(*TABLES, delta=delta)).parameters).noise
        for delta in (1e-9, 0.3)
    ]
    assert isinstance(laws[0], LaplaceNoise)
    assert not isinstance(laws[1], LaplaceNoise)


def test_a_query_s_half_width_grows_with_what_it_covers_up_to_half_and_falls_again() -> None:
    given = setting(*TABLES)
    plan = Histogram().plan(given)
    widths = half_widths_of(HistogramParameters.from_json(plan.parameters), np.arange(1001), given)
    assert np.array_equal(widths, widths[::-1])
    assert (np.diff(widths[:501]) >= 0).all()
    assert widths[500] == plan.max_half_width * 2**GRID_BITS
    assert widths[1] < widths[500] / 4
    # Where less is declared, that is what is promised; no more than half of the universe can be.
    narrow = tuple(replace(share, support=200 // place) for place, share in enumerate(TABLES, start=1))
    assert Histogram().plan(setting(*narrow)).max_half_width * 2**GRID_BITS == widths[200]
    for support in (0, 500, 1000):
        wide = (*narrow, replace(TABLES[0], support=support))
        assert Histogram().plan(setting(*wide[1:])).max_half_width == plan.max_half_width
    # A query on nobody, and its complement: half a record for rounding to whole ones.
    assert widths[0] <= (1 << GRID_BITS) // 100_000 + 2


def test_the_histogram_s_intervals_and_its_cut_cells_fail_with_beta_together() -> None:
    given = setting(*TABLES)
    parameters = HistogramParameters.from_json(Histogram().plan(given).parameters)
    cut = truncation(noise_distribution(parameters.noise, MAX_MOVED), given)
    assert cut > 0
    assert parameters.chance * given.queries + cut <= Fraction(given.beta)


def test_histogram_answers_say_how_they_were_made() -> None:
    case = instance(analysts=2, predicates=5)
    outcome = Histogram().run(
        case.setting,
        Histogram().plan(case.setting),
        DenseCounts(case.histogram),
        case.workloads,
        bytes(32),
        lambda *_: None,
    )
    for name, answers in outcome.answers.items():
        assert (answers.methods == METHOD).all()
        assert len(answers.values) == case.workloads[name].query_count
        assert len(set((answers.highs - answers.lows).tolist())) > 1
        assert len(set(answers.standard_errors.tolist())) > 1


def test_cutting_the_noise_of_cells_is_charged() -> None:
    """It is done before records are added, so it is no post-processing."""
    plan = Histogram().plan(setting(Share("analyst-1", 1, 1, 1)))
    slack = events_from_json(plan.data_events)[1]
    assert isinstance(slack, ApproximateDpEvent)
    assert slack.delta >= 3 * 1000 * 2 * BEYOND
    assert plan.data_cost.delta >= 1


def test_projection_refuses_options_under_its_own_name() -> None:
    with pytest.raises(InvalidArgument, match="projection has no options"):
        Projection().plan(replace(setting(*TABLES), options={"rounds": 1}))
