"""What `pooled` draws is what it charges, and what it promises follows from chances that add up to beta."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from equipoise.accounting import Cost, PureDpEvent, events_from_json
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.pooled.direct import DirectAnswers
from equipoise_server.mechanisms.pooled.fitted import FittedSynopsis
from equipoise_server.mechanisms.pooled.measured import measure
from equipoise_server.mechanisms.pooled.mechanism import Pooled
from equipoise_server.mechanisms.pooled.plan import PooledParameters
from equipoise_server.mechanisms.repair.analyst_repair import AnalystRepairParameters
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema.from_json('{"a": 4, "b": 3, "c": 2, "d": 2}')
RECORDS = 20_000
ONE = 1 << GRID_BITS


def setting(*statements: int, unit: str = "query", **options: object) -> PublicParameters:
    """Shares of so many statements each."""
    shares = tuple(Share(f"analyst-{place}", each, 12 * each) for place, each in enumerate(statements))
    data, own = Budget(2.0, 1 / RECORDS**2), Budget(4.0, 1e-6)
    return PublicParameters(
        RECORDS, 48, shares, unit, data, own, 0.05, {"ways": 2, "residuals": 0} | options, SCHEMA.sizes
    )


def planned(case: PublicParameters) -> PooledParameters:
    return PooledParameters.from_json(Pooled().plan(case).parameters)


def test_a_table_s_noise_hides_a_record_that_moves_two_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn, and nothing that is written down, costs a table no more than its rho."""
    drawn: list[Fraction] = []
    draw = DiscreteGaussian.draw

    def recording(self: DiscreteGaussian, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        drawn.append(self.variance)
        return draw(self, count, stream)

    monkeypatch.setattr(DiscreteGaussian, "draw", recording)
    before = np.zeros(48, dtype=np.int64)
    after = before.copy()
    before[0], after[47] = 1, 1
    rhos = {(0,): Fraction(1, 7), (0, 1): Fraction(2, 9), (2, 3): Fraction(1, 1000)}
    tables = [dict(DenseCounts(counts, SCHEMA.sizes).marginals(rhos)) for counts in (before, after)]
    measured = measure(DenseCounts(before, SCHEMA.sizes), rhos, bytes(32))
    moved = {axes: int(((tables[0][axes] - tables[1][axes]) ** 2).sum()) for axes in rhos}
    assert set(moved.values()) == {2}
    for axes, variance in zip(tables[0], drawn, strict=True):
        assert moved[axes] / (2 * variance) <= rhos[axes]
        (table,) = [each for each in measured if each.axes == axes]
        assert table.variance == variance


@pytest.mark.parametrize("statements", [(1, 3), (3, 1), (1, 1, 4)])
def test_the_demand_s_noise_hides_whoever_may_vote_most(statements: tuple[int, ...]) -> None:
    """Against every pair of votes that the largest share allows."""
    parameters = planned(setting(*statements, unit="analyst", ways=1))
    sets = len(parameters.family.sets)
    votes = [each for each in itertools.product((0, 1), repeat=sets) if sum(each) <= max(statements)]
    moves = [np.abs(np.array(one) - np.array(other)) for one, other in itertools.product(votes, repeat=2)]
    assert parameters.demand.l1_sensitivity == max(int(move.sum()) for move in moves)
    noise, budget = parameters.demand.noise, setting(*statements).analyst_budget
    if isinstance(noise, LaplaceNoise):
        assert noise.epsilon <= Fraction(budget.epsilon)
    law = GaussianNoise(Fraction(5)).law(parameters.demand.l1_sensitivity)
    assert isinstance(law, DiscreteGaussian)
    assert max(Fraction(int((move**2).sum())) / (2 * law.variance) for move in moves) <= Fraction(1, 10)


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_votes_for_the_only_table_are_hidden_too(unit: str) -> None:
    """A unit asks about it or does not: one count moves by one, and that is not nothing."""
    case = replace(setting(1, 1, unit=unit, ways=1), universe_size=4, attributes=(4,))
    plan, demand = Pooled().plan(case), planned(case).demand
    assert demand.l1_sensitivity == 1
    assert demand.noise is not None
    assert plan.analyst_cost not in (None, Cost())


@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("options", [{}, {"ways": 3}, {"repair_share": 0.25}], ids=str)
def test_the_chances_of_all_cells_and_predicates_add_up_to_beta(unit: str, options: dict[str, object]) -> None:
    case = setting(3, 5, unit=unit, **options)
    parameters = planned(case)
    cells = sum(int(np.prod([SCHEMA.sizes[axis] for axis in axes])) for axes in parameters.family.sets)
    kept = Fraction(case.beta) / (2 if options.get("repair_share") else 1)
    spent = (cells + 8) * Fraction(parameters.chance)
    assert kept * (1 - Fraction(1, 10**12)) <= spent <= kept * (1 + Fraction(1, 10**12))


def told_and_promised(
    case: PublicParameters, asked: list[Statement], schema: Schema
) -> tuple[Answers, MechanismPlan]:
    """The answers to one analyst who asks this of a table that is nearly even."""
    plan, universe = Pooled().plan(case), schema.universe_size
    data = DenseCounts(np.diff(np.arange(universe + 1) * RECORDS // universe), schema.sizes)
    workloads = {case.shares[0].analyst: compile_workload(asked, schema)}
    (told,) = Pooled().run(case, plan, data, workloads, bytes(32), lambda *_: None).answers.values()
    return told, plan


def test_no_more_answers_than_the_plan_says_are_without_an_interval() -> None:
    """Each cell of a table of nearly all records is wider than one of the whole table, as they share a chance."""
    one = (attribute("a") == "0") & (attribute("b") == "0") & (attribute("d") == "0")
    case = replace(setting(3, ways=4, repair_share=0, floor=1), shares=(Share("analyst-0", 3, 400),))
    told, plan = told_and_promised(case, [Marginal(("c",), where=~one)] * 3, SCHEMA)
    assert 3 < (~told.certified).sum() <= plan.max_uncertified


@pytest.mark.parametrize("residuals", [0, 1])
@pytest.mark.parametrize(
    "asked",
    [
        Marginal(("a",), where=~((attribute("a") == "1") & (attribute("b") == "5"))),
        Sum("b", where=attribute("a") == "1", low=0, high=1),
    ],
    ids=str,
)
def test_a_promise_for_conditions_covers_two_halves_of_a_table_and_rounded_sums(
    asked: Statement, residuals: int
) -> None:
    schema = Schema((Attribute("a", ("0", "1")), Attribute("b", tuple(map(str, range(6))))))
    share = Share("analyst-0", 1, compile_workload([asked], schema).query_count)
    case = setting(1, ways=2, residuals=residuals, repair_share=0, floor=1, summed=12)
    case = replace(case, shares=(share,), universe_size=12, attributes=schema.sizes)
    told, plan = told_and_promised(case, [asked], schema)
    assert plan.max_uncertified == 0
    assert told.certified.all()


@pytest.mark.parametrize("distance", [0.5, 0.99, 1.01, 1.5, 1.99, 5.0])
@pytest.mark.parametrize("side", [1, -1])
def test_the_interval_is_the_estimate_s_whatever_the_synopsis_says(distance: float, side: int) -> None:
    """The synopsis's value is told within the reach of the estimate, and the estimate beyond it."""
    workload = compile_workload([attribute("c") == "0"], SCHEMA)
    reach = RECORDS / 100
    synopsis = Synopsis.of_cells(np.repeat([0, 2], 500), SCHEMA.sizes)  # "c" is 0 and 1
    assert synopsis.counts(workload).tolist() == [500]
    estimate = RECORDS / 2 + side * distance * reach
    direct = DirectAnswers(np.array([estimate]), np.array([reach]), np.array([reach / 5]))
    answers = FittedSynopsis(synopsis).answered(workload, direct, RECORDS, ONE)
    value, low, high, error = (
        int(column[0]) / ONE * RECORDS
        for column in (answers.values, answers.lows, answers.highs, answers.standard_errors)
    )
    assert low <= estimate - reach
    assert estimate + reach <= high
    assert high - low <= 2 * reach + 8 * RECORDS / ONE
    assert value == pytest.approx(RECORDS / 2 if distance < 1 else estimate, abs=1e-6)
    assert answers.methods[0] == (AnswerMethod.FITTED if distance < 1 else AnswerMethod.GAUSSIAN)
    assert error == pytest.approx(reach / 5, abs=1e-6)


def hidden(unit: str) -> tuple[PooledParameters, float]:
    """A plan for so many analysts that not all get a place, and what it charges an analyst for hiding who does."""
    shares = tuple(Share(f"analyst-{place}", 2, 24) for place in range(2000))
    case = replace(setting(1, unit=unit, ways=1, repair_share=0.5), shares=shares, data_budget=Budget(8.0, 1e-9))
    plan = Pooled().plan(case)
    parts = [part for part in events_from_json(plan.analyst_events) if part.name == "repair places"]
    pure = [part.epsilon for part in parts if isinstance(part, PureDpEvent)]
    return PooledParameters.from_json(plan.parameters), float(sum(pure, Fraction(0)))


def test_hiding_who_gets_a_repair_place_is_charged_to_the_analysts() -> None:
    parameters, charged = hidden("analyst")
    assert isinstance(parameters.repair, AnalystRepairParameters)
    epsilon = parameters.repair.places.epsilon
    assert epsilon > 0
    assert charged == float(epsilon)


def test_a_statement_s_repair_hides_nobody_and_is_not_charged() -> None:
    parameters, charged = hidden("query")
    assert parameters.repair is not None
    assert not isinstance(parameters.repair, AnalystRepairParameters)
    assert charged == 0
