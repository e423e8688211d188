"""`pooled` on tiny instances: its exact laws against its charges, audits, and faults that the same checks catch.

What is released is a function of the noisy votes and of the measured tables; that it is of nothing else is checked
by itself, so that the laws of these two are the laws of everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from harness.audit_size import AuditSize
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.exact_pipeline import SEED, Workloads
from statistical.exact_pooled import NEGLIGIBLE, Round, delta_between, planned, rounds_missed, tables_epsilon, tiny

from equipoise import accounting
from equipoise.accounting import RHO_UNIT, ZcdpEvent, tables_rho
from equipoise.model.accounts import Budget
from equipoise_lab.audit.clopper_pearson import Outcome, Sampler, certify
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled import demand, measured, mechanism, plan
from equipoise_server.mechanisms.pooled.measured import measure
from equipoise_server.randomness.stream import KeyedStream

DATA, ANALYST = Budget(4.0, 0.05), Budget(8.0, 1e-6)
ALIKE = {"query": {"a": "x", "b": "xy"}, "analyst": {"a": "x", "b": "x"}}
CHANGED = {"query": {"a": "x", "b": "yy"}, "analyst": {"a": "x", "b": "y"}}
MANY = [900, 100, 0, 1000]
# Of what is charged, that the worst case of these instances costs: Laplace noise all of it, a zCDP charge less.
MIN_PART, MIN_PART_OF_VOTES = 0.75, {"laplace": 0.99, "gaussian": 0.6}
Switch = Callable[[pytest.MonkeyPatch], None]


def moved_record(unit: str, data: Budget = DATA) -> tuple[Round, Round]:
    """One of two records moves to the opposite corner: every table changes."""
    setting = tiny(unit, {"a": 1, "b": 2}, 2, data, ANALYST)
    return planned(setting, [1, 0, 0, 1], ALIKE[unit]), planned(setting, [2, 0, 0, 0], ALIKE[unit])


def changed_question(unit: str, analyst: Budget, records: int = 2000) -> tuple[Round, Round]:
    """b asks for the other table instead; a, and whoever sees the synopsis, should hardly tell."""
    setting = tiny(unit, {"a": 1, "b": 2}, records, DATA, analyst)
    cells = [count * records // 2000 for count in MANY]
    return planned(setting, cells, ALIKE[unit]), planned(setting, cells, CHANGED[unit])


@pytest.mark.parametrize("votes", [(0, 0), (1, 1), (7, 0)])
def test_the_tables_cost_the_data_what_is_charged_and_not_much_less(votes: tuple[int, int]) -> None:
    one, other = moved_record("query")
    claim = epsilon_for(one.plan.data_cost, DATA.delta)
    exact = tables_epsilon(one, other, one.parameters.rhos(votes), DATA.delta)
    assert MIN_PART * claim < exact <= claim


def votes_hide_one(unit: str, analyst: Budget) -> bool:
    """Whether the noisy votes keep to what they are charged for, with the delta of the mass left out."""
    one, other = changed_question(unit, analyst)
    cost = one.plan.charged_analyst_cost
    epsilon = epsilon_for(cost, analyst.delta)
    return delta_between(one.demand_law(), other.demand_law(), epsilon * 1.0001) <= analyst.delta + 1e-5


@pytest.mark.parametrize("unit", ["query", "analyst"])
@pytest.mark.parametrize("analyst", [ANALYST, Budget(2.0, 0.2)], ids=["laplace", "gaussian"])
def test_the_votes_cost_one_analyst_what_is_charged_and_not_much_less(unit: str, analyst: Budget) -> None:
    assert votes_hide_one(unit, analyst)
    one, other = changed_question(unit, analyst)
    noise = one.parameters.demand.noise
    assert noise is not None
    assert noise.name == ("laplace" if analyst is ANALYST else "gaussian")
    part = MIN_PART_OF_VOTES[noise.name] * analyst.epsilon
    assert delta_between(one.demand_law(), other.demand_law(), part) > analyst.delta


@pytest.mark.thin(2)
@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_everything_that_others_see_of_an_analyst_keeps_to_its_charge(unit: str) -> None:
    """The whole run, once for every outcome of the votes' noise: synopsis, a's answers and intervals."""
    one, other = changed_question(unit, ANALYST)
    ours, theirs = (each.seen_law("a", NEGLIGIBLE) for each in (one, other))
    assert len(ours) > 5
    assert delta_between(ours, theirs, ANALYST.epsilon) <= ANALYST.delta + 1e-5
    # And it shows: the charge is not for nothing.
    assert delta_between(ours, theirs, 1.0) > 0.1


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_nothing_but_the_tables_sees_the_data(unit: str) -> None:
    one, other = moved_record(unit)
    tables = measure(DenseCounts(one.histogram, (2, 2)), one.parameters.rhos((1, 1)), SEED)
    with patch.object(mechanism, "measure", lambda *_: tables):
        assert released(one, ("a", "b")) == released(other, ("a", "b"))


@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_nothing_but_the_votes_sees_what_others_ask(unit: str) -> None:
    one, other = changed_question(unit, ANALYST)
    with patch.object(mechanism, "noisy_demand", lambda *_: np.array([3, 1])):
        assert released(one, ("a",)) == released(other, ("a",))


def released(played: Round, viewers: tuple[str, ...]) -> list[list[int]]:
    """All that a run shows to viewers."""
    outcome = mechanism.Pooled().run(
        played.setting,
        played.plan,
        DenseCounts(played.histogram, played.setting.attributes),
        played.workloads,
        SEED,
        lambda *_: None,
    )
    columns = [outcome.synopsis.cells.tolist()]
    for name in viewers:
        own = outcome.answers[name]
        columns += [column.tolist() for column in own.columns]
    return columns


# What is charged, whatever is asked for.


def every_demand_is_covered() -> bool:
    """The plan's charge is at least the cost of the tables that any votes lead to."""
    one, _ = moved_record("query")
    for votes in [(0, 0), (1, 0), (3, 2), (1000, 1), (-50, 40)]:
        tables = measure(DenseCounts(one.histogram, (2, 2)), one.parameters.rhos(votes), SEED)
        if tables_rho(table.variance for table in tables) * RHO_UNIT > one.plan.data_cost.rho:
            return False
    return True


def every_stream_is_read_once() -> bool:
    """No two tables, and no two purposes, read one stream."""
    one, _ = moved_record("analyst")
    derive, seen = KeyedStream.derive, list[tuple[str, ...]]()

    def spy(seed: bytes, *labels: str) -> KeyedStream:
        seen.append(labels)
        return derive(seed, *labels)

    with patch.object(KeyedStream, "derive", spy):
        released(one, ())
    return len(seen) == len(set(seen)) == 3


def what_others_see_is_hidden(unit: str) -> bool:
    """Whether the votes' noise hides b from a in a whole run."""
    one, other = changed_question(unit, ANALYST)
    laws = [each.seen_law("a", NEGLIGIBLE) for each in (one, other)]
    return delta_between(laws[0], laws[1], ANALYST.epsilon) <= ANALYST.delta + 1e-5


def counted_twice(patches: pytest.MonkeyPatch) -> None:
    votes_of = demand.votes_of
    patches.setattr(mechanism, "votes_of", lambda *asked: 2 * votes_of(*asked))


def halved_sensitivity(patches: pytest.MonkeyPatch) -> None:
    right = accounting.votes_l1_sensitivity
    patches.setattr(accounting, "votes_l1_sensitivity", lambda votes, sets: max(1, right(votes, sets) // 2))


def floor_for_what_is_asked(patches: pytest.MonkeyPatch) -> None:
    """Tables nobody asked for are never measured above their floor: which ones those are is no noisy number."""
    noisy = mechanism.noisy_demand

    def leaking(
        parameters: plan.PooledParameters, setting: PublicParameters, present: Workloads, seed: bytes
    ) -> NDArray[np.int64]:
        sets = parameters.family.sets
        raw = np.sum([demand.votes_of(own, setting.unit, sets) for own in present.values()], axis=0)
        return np.where(raw > 0, noisy(parameters, setting, present, seed), -1)

    patches.setattr(mechanism, "noisy_demand", leaking)


def shared_by_raw_votes(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(demand.Demand, "noisy", lambda _, votes, __: votes)


def realised_charge(patches: pytest.MonkeyPatch) -> None:
    def only_the_floors(parameters: plan.PooledParameters, _: object) -> list[ZcdpEvent]:
        return [ZcdpEvent("tables", parameters.floor * Fraction(parameters.rho, RHO_UNIT), 2)]

    patches.setattr(plan, "data_parts", only_the_floors)


def reused_stream(patches: pytest.MonkeyPatch) -> None:
    class Forgetful:
        @staticmethod
        def derive(seed: bytes, *labels: str) -> KeyedStream:
            return KeyedStream.derive(seed, labels[0])

    patches.setattr(measured, "KeyedStream", Forgetful)


def column_norm(patches: pytest.MonkeyPatch) -> None:
    patches.setattr(measured, "MAX_MOVED", 1)


def tables_hide_a_record() -> bool:
    """Whether the tables keep to what is charged."""
    one, other = moved_record("query")
    exact = tables_epsilon(one, other, one.parameters.rhos((1, 1)), DATA.delta)
    return exact <= epsilon_for(one.plan.data_cost, DATA.delta)


@dataclass(frozen=True)
class Mutant:
    """A fault, and a check that holds for what is shipped and must not hold with it."""

    check: Callable[[], bool]
    switch: Switch


MUTANTS = {
    "vote counted twice": Mutant(lambda: votes_hide_one("query", ANALYST), counted_twice),
    "sensitivity of an analyst's votes halved": Mutant(
        lambda: votes_hide_one("analyst", ANALYST), halved_sensitivity
    ),
    "floor depending on the raw demand": Mutant(
        lambda: what_others_see_is_hidden("analyst"), floor_for_what_is_asked
    ),
    "rho shared by raw demand": Mutant(lambda: what_others_see_is_hidden("query"), shared_by_raw_votes),
    "realised instead of capped charge": Mutant(every_demand_is_covered, realised_charge),
    "reused stream": Mutant(every_stream_is_read_once, reused_stream),
    "column norm used for replace-one": Mutant(tables_hide_a_record, column_norm),
}


@pytest.mark.thin(6)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    assert mutant.check()
    with monkeypatch.context() as patches:
        mutant.switch(patches)
        assert not mutant.check()


# Audits of whole runs, and how often intervals hold.


LEVEL = 1e-6 / 2  # a false alarm in all, divided over the audits here


def sampler(played: Round, viewers: tuple[str, ...], side: int) -> Sampler:
    """One run for each number, as its viewers see it; intervals coarsely, as hardly one is seen twice."""

    def run(number: int) -> Outcome:
        seed = (2 * number + side).to_bytes(32, "big")
        outcome = mechanism.Pooled().run(
            played.setting,
            played.plan,
            DenseCounts(played.histogram, played.setting.attributes),
            played.workloads,
            seed,
            lambda *_: None,
        )
        told = [outcome.answers[name] for name in viewers]
        return (
            tuple(outcome.synopsis.cells.tolist()),
            *((*own.values.tolist(), *(own.lows >> 30).tolist(), *(own.highs >> 30).tolist()) for own in told),
        )

    return run


@pytest.mark.full  # the quick tier enumerates what others see
def test_an_audit_of_whole_runs_refutes_nothing_for_analysts(audit_size: AuditSize) -> None:
    one, other = changed_question("analyst", Budget(2.0, 1e-6))
    samplers = sampler(one, ("a",), 0), sampler(other, ("a",), 1)
    certificate = certify(*samplers, audit_size.runs // 2, 1e-6, LEVEL)
    assert certificate.epsilon <= epsilon_for(one.plan.charged_analyst_cost, 1e-6)


@pytest.mark.full
def test_an_audit_of_whole_runs_refutes_nothing_for_the_data(audit_size: AuditSize) -> None:
    """With a budget large enough for so few runs to certify something at all."""
    one, other = moved_record("query", Budget(16.0, DATA.delta))
    samplers = sampler(one, ("a", "b"), 0), sampler(other, ("a", "b"), 1)
    certificate = certify(*samplers, audit_size.runs // 2, DATA.delta, LEVEL)
    assert 1 < certificate.epsilon <= epsilon_for(one.plan.data_cost, DATA.delta)


@pytest.mark.thin(2)
@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_rounds_fail_no_more_often_than_beta(unit: str) -> None:
    """Beta 0.1, 200 rounds; and intervals of a third the size would fail more often, so this test can tell."""
    setting = tiny(unit, {"a": 1, "b": 2}, 2000, Budget(1.0, 1e-6), ANALYST)
    played = planned(replace(setting, options={**setting.options, "synopsis": 1 << 12}), MANY, ALIKE[unit])
    missed, missed_shortened = rounds_missed(played, 200, 1 / 3)
    assert missed <= binom.isf(1e-9, 200, 0.1) < missed_shortened
