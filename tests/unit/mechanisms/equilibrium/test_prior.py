"""`equilibrium` from a prior of its own: what its plan decides, delivers, charges and certifies."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from harness.answers import half_widths

from equipoise.accounting import Cost, events_from_json
from equipoise.errors import BudgetExhausted, InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.equilibrium import prior_plan
from equipoise_server.mechanisms.equilibrium.cost_model import Size, data_rho
from equipoise_server.mechanisms.equilibrium.mechanism import Equilibrium
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import Outcome, PublicParameters
from equipoise_server.mechanisms.prior.distribution import Prior
from equipoise_server.mechanisms.prior.measure import fitted_prior, measured_for
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema(tuple(Attribute(name, tuple("012345")) for name in "abc"))
RECORDS, SEED = 40_000, bytes(range(32))
PLAYED: dict[str, object] = {"prior": "own", "rounds": 6, "play": "mixed"}


def histogram() -> np.ndarray:
    """Pairs that depend on one another, and a little that pairs do not tell."""
    choose = np.random.default_rng(1)
    pairs = [choose.gamma(2.0, size=shape) for shape in ((6, 6, 1), (6, 1, 6), (1, 6, 6))]
    weights = (pairs[0] * pairs[1] * pairs[2] * choose.gamma(40.0, size=(6, 6, 6))).reshape(-1)
    return np.random.default_rng(2).multinomial(RECORDS, weights / weights.sum()).astype(np.int64)


def statements(count: int, ways: int, seed: int) -> list[Statement]:
    choose = np.random.default_rng(seed)
    made: list[Statement] = []
    for _ in range(count):
        parts = [
            Among(name, tuple(sorted(choose.choice(list("012345"), 3, replace=False).tolist())))
            for name in sorted(choose.choice(list("abc"), ways, replace=False).tolist())
        ]
        made.append(parts[0] & parts[1] if ways == 2 else parts[0] & parts[1] & parts[2])
    return made


WORKLOADS = {
    "ann": compile_workload([*statements(30, 2, 1), Marginal(("a", "b"))], SCHEMA),
    "bob": compile_workload(statements(30, 3, 2), SCHEMA),
    "cyd": compile_workload([], SCHEMA),
}


def setting_of(options: dict[str, object], unit: str = "query", **changes: object) -> PublicParameters:
    setting = PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(name, 31, 100) for name in WORKLOADS),
        unit=unit,
        data_budget=Budget(1.0, 1e-9),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options=options,
        attributes=SCHEMA.sizes,
    )
    return replace(setting, **changes)  # type: ignore[arg-type]


def parameters_of(plan: MechanismPlan) -> EquilibriumParameters:
    return EquilibriumParameters.from_json(plan.parameters)


def run(setting: PublicParameters, workloads: dict[str, CompiledWorkload] = WORKLOADS) -> Outcome:
    plan = Equilibrium().plan(setting)
    data = DenseCounts(histogram(), SCHEMA.sizes)
    return Equilibrium().run(setting, plan, data, workloads, SEED, lambda *_: None)


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_a_prior_alone_costs_the_analysts_nothing_and_the_data_what_its_events_say(unit: str) -> None:
    setting = setting_of({"prior": "own"}, unit)
    plan = Equilibrium().plan(setting)
    parameters = parameters_of(plan)
    assert (parameters.game, parameters.repair, plan.analyst_cost) == (None, None, Cost())
    assert parameters.start is not None
    events = events_from_json(plan.data_events)
    assert [event.name for event in events] == ["prior", "final tests", "samplers"]
    assert events[0] == parameters.start.prior.events()[0]
    assert events[1:2] == tuple(parameters.start.tests.events(len(setting.shares)))


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_play_from_a_prior_charges_both(unit: str) -> None:
    setting = setting_of(PLAYED, unit, analyst_budget=Budget(8.0, 1e-6))
    plan = Equilibrium().plan(setting)
    parameters, events = parameters_of(plan), events_from_json(plan.data_events)
    assert parameters.played.rounds == 6
    assert [event.name for event in events] == ["prior", "game", "final tests", "samplers"]
    assert events[1].amounts()[0] == Fraction(data_rho(parameters.played, Size.of(setting)))
    assert [event.name for event in events_from_json(plan.analyst_events)] == ["game", "samplers"]


@pytest.mark.slow
def test_the_planner_starts_from_a_prior_where_it_expects_less_error_and_plays_where_it_is_told_to() -> None:
    assert parameters_of(Equilibrium().plan(setting_of({}))).game is None
    none = parameters_of(Equilibrium().plan(setting_of({"prior": "none"})))
    assert none.start is None
    forced = parameters_of(Equilibrium().plan(setting_of({"rounds": 6, "play": "mixed"})))
    assert forced.start is None
    assert (
        Equilibrium().plan(setting_of({}, attributes=())).parameters
        == Equilibrium().plan(setting_of({"prior": "none"}, attributes=())).parameters
    )


def test_play_is_left_out_where_it_is_not_expected_to_improve(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = setting_of({"prior": "own"}, analyst_budget=Budget(float("inf"), 1e-6))
    assert parameters_of(Equilibrium().plan(setting)).game is None
    monkeypatch.setattr(prior_plan, "combined", lambda *_: (7, 1e-9))
    parameters = parameters_of(Equilibrium().plan(setting))
    assert parameters.game is not None
    assert parameters.start is not None
    assert parameters.start.laid_out == 7


def prior_of(setting: PublicParameters, parameters: PriorParameters) -> Prior:
    data = DenseCounts(histogram(), SCHEMA.sizes)
    return fitted_prior(parameters, measured_for(parameters, setting, data, SEED))


@pytest.mark.slow
def test_the_synopsis_is_the_prior_laid_out_whatever_is_asked() -> None:
    setting = setting_of({"prior": "own"})
    parameters = parameters_of(Equilibrium().plan(setting))
    assert parameters.start is not None
    prior = prior_of(setting, parameters.start.prior)
    expected = prior.records(parameters.start.laid_out)
    assert np.array_equal(run(setting).synopsis.cells, expected)
    assert np.array_equal(run(setting, {"bob": WORKLOADS["bob"]}).synopsis.cells, expected)


def test_drawn_records_come_before_those_laid_out_and_start_from_the_prior() -> None:
    setting = setting_of(PLAYED, analyst_budget=Budget(8.0, 1e-6))
    parameters = parameters_of(Equilibrium().plan(setting))
    assert parameters.start is not None
    drawn = parameters.played.rounds * parameters.played.batch
    cells = run(setting).synopsis.cells
    assert len(cells) == drawn + parameters.start.laid_out
    prior = prior_of(setting, parameters.start.prior)
    assert np.array_equal(cells[drawn:], prior.records(parameters.start.laid_out))


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"prior": "own"}, PLAYED])
def test_truths_lie_in_intervals_and_what_tables_tell_has_that_of_its_law(
    options: dict[str, object],
) -> None:
    setting = setting_of(options, analyst_budget=Budget(8.0, 1e-6))
    outcome = run(setting)
    for name, workload in WORKLOADS.items():
        answers = outcome.answers[name]
        truth = workload.counts(histogram()) / RECORDS
        assert not answers.misses(truth).any()
        assert answers.certified.all()
        assert half_widths(answers).max(initial=0) <= Equilibrium().plan(setting).max_half_width
    predicates, cells = np.split(half_widths(outcome.answers["ann"]), [30])
    assert len(np.unique(predicates)) == len(np.unique(half_widths(outcome.answers["bob"]))) == 1
    assert predicates.min() > np.median(cells)  # a sum of nine cells has more noise than one


def test_without_tests_only_what_the_measurement_tells_has_an_interval() -> None:
    outcome = run(setting_of({"prior": "own", "game_share": 1}))
    assert outcome.answers["ann"].certified.all()
    assert not outcome.answers["bob"].certified.any()


@pytest.mark.slow
def test_what_one_analyst_gets_depends_on_no_other() -> None:
    setting = setting_of({"prior": "own"})
    alone = run(setting, {"bob": WORKLOADS["bob"]}).answers["bob"]
    among = run(setting).answers["bob"]
    assert np.array_equal(alone.values, among.values)
    assert np.array_equal(alone.lows, among.lows)
    assert np.array_equal(alone.highs, among.highs)


def test_no_two_analysts_tests_read_one_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is charged for noise of its own; two analysts who compare theirs would else see their errors."""
    read: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def noted(seed: bytes, *labels: str) -> KeyedStream:
        read.append(labels)
        return derive(seed, *labels)

    monkeypatch.setattr(KeyedStream, "derive", noted)
    run(setting_of({"prior": "own"}))
    tests = [labels for labels in read if labels[0] == "repair/final test"]
    assert len(tests) == len(set(tests)) == len(WORKLOADS)


def test_what_cannot_be_served_is_refused_by_name() -> None:
    with pytest.raises(InvalidArgument, match=r"options\.prior: must be own, standing or none"):
        Equilibrium().plan(setting_of({"prior": "pairs"}))
    with pytest.raises(InvalidArgument, match=r"options\.prior: needs the sizes"):
        Equilibrium().plan(setting_of({"prior": "own"}, attributes=()))
    for name in ("threshold", "cut_off"):
        with pytest.raises(InvalidArgument, match=rf"options\.{name}: belongs to repair"):
            Equilibrium().plan(setting_of({"prior": "own", name: 1}))
    with pytest.raises(BudgetExhausted, match="data_budget"):
        Equilibrium().plan(setting_of({"prior": "own"}, data_budget=Budget(1e-9, 1e-12)))


def test_parameters_that_do_not_fit_one_another_are_refused() -> None:
    none = parameters_of(Equilibrium().plan(setting_of({"prior": "none", "rounds": 6, "play": "mixed"})))
    own = parameters_of(Equilibrium().plan(setting_of({"prior": "own"})))
    with pytest.raises(ValueError, match="game must be set"):
        replace(none, game=None)
    with pytest.raises(ValueError, match="the plan has no game"):
        _ = own.played
    with pytest.raises(ValueError, match="repair must not be set"):
        replace(none, start=own.start)
    text = own.to_json().replace('"prior":{', '"prior":null,"x":{')
    with pytest.raises(VerificationFailed):
        EquilibriumParameters.from_json(text)
