"""Every mechanism on the same questions: who is run, who is only planned, who is refused, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise_lab.demo import comparison
from equipoise_lab.demo.comparison import GAMES, Compared, Measurement, compare_mechanisms
from equipoise_lab.demo.report import WHAT_IT_DOES
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS

SCHEMA = Schema((Attribute("a", ("x", "y")), Attribute("b", ("p", "q", "r"))))
HISTOGRAM = np.array([400, 300, 150, 100, 40, 10], dtype=np.int64)
DATA = DenseCounts(HISTOGRAM, SCHEMA.sizes)
WORKLOADS = {
    "UA": compile_workload([Marginal(("a", "b")), attribute("a") == "x"], SCHEMA),
    "DL": compile_workload([Marginal(("b",))], SCHEMA),
}
TRUTH = np.concatenate([DATA.count(own) for own in WORKLOADS.values()]) / DATA.records
SETTING = PublicParameters(
    records=DATA.records,
    universe_size=SCHEMA.universe_size,
    shares=tuple(
        Share(airline, own.statement_count, own.query_count, own.l1_sensitivity, own.support)
        for airline, own in WORKLOADS.items()
    ),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    options={},
    attributes=SCHEMA.sizes,
)


def delivered(name: str) -> Answers:
    """What a mechanism gave the airlines in a round of its own."""
    outcome = MECHANISMS[name].run(
        SETTING, MECHANISMS[name].plan(SETTING), DATA, WORKLOADS, bytes(32), lambda *_: None
    )
    return Answers.join(outcome.answers[airline] for airline in WORKLOADS)


def plan_of(name: str) -> MechanismPlan:
    """The plan of a mechanism, or of the game with or without a prior."""
    if name in GAMES:
        return MECHANISMS["equilibrium"].plan(replace(SETTING, options={"prior": GAMES[name]}))
    return MECHANISMS[name].plan(SETTING)


def compared(name: str, setting: PublicParameters = SETTING) -> Compared:
    """All mechanisms beside the one that answered."""
    return compare_mechanisms(setting, name, delivered(name), DATA, WORKLOADS, TRUTH)


@pytest.mark.full
@pytest.mark.slow
def test_what_was_delivered_comes_first_and_is_measured_by_what_was_delivered() -> None:
    first, *others = compared("laplace").mechanisms
    assert first.mechanism == "laplace"
    assert first.measured == Measurement.of(delivered("laplace"), TRUTH)
    means = [each.measured.errors.mean for each in others if each.measured is not None]
    assert len(means) >= 4
    assert means == sorted(means)


@pytest.mark.slow
def test_every_mechanism_states_its_plan_and_both_costs() -> None:
    plans = {each.mechanism: each for each in compared("gaussian").mechanisms}
    for name, row in plans.items():
        plan = plan_of(name)
        assert (row.expected, row.promised) == (plan.expected_error, plan.max_half_width)
        assert 0 < row.data_epsilon <= SETTING.data_budget.epsilon
        assert 0 <= row.analyst_epsilon <= SETTING.analyst_budget.epsilon
    assert plans["gaussian"].analyst_epsilon == 0


@pytest.mark.full
def test_a_mechanism_that_would_take_long_is_planned_but_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {row.mechanism: plan_of(row.mechanism).seconds for row in compared("gaussian").mechanisms}
    monkeypatch.setattr(comparison, "MAX_SECONDS", sorted(seconds.values())[3])
    for row in compared("gaussian").mechanisms:
        quick = row.mechanism == "gaussian" or seconds[row.mechanism] <= comparison.MAX_SECONDS
        assert (row.measured is not None) is quick


@pytest.mark.full
@pytest.mark.slow
def test_a_mechanism_that_cannot_serve_says_why() -> None:
    refused = compared("gaussian", replace(SETTING, attributes=())).refusals
    assert "attributes" in refused["pooled"]


def test_every_mechanism_is_said_in_words() -> None:
    assert WHAT_IT_DOES.keys() == MECHANISMS.keys() | GAMES.keys()


@pytest.mark.nightly
def test_the_game_is_shown_as_printed_and_from_a_prior_unless_it_was_delivered() -> None:
    names = {row.mechanism for row in compared("gaussian").mechanisms}
    assert GAMES.keys() <= names
    assert "equilibrium" not in names
    assert not GAMES.keys() & {row.mechanism for row in compared("equilibrium").mechanisms}
