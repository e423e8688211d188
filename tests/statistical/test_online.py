"""`online` by its exact law, by an audit of the shipped run, and with its faults switched on.

The audits raise a false alarm with probability at most 1e-6 in all.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.audit_size import SIZES, AuditSize
from statistical.exact_pipeline import Pair
from statistical.mutants_online import CASES, DELTA, MUTANTS, ONLINE, Case, Check, Switch, case, used

from equipoise.model.rounds import MechanismPlan
from equipoise.queries.session_workload import SessionWorkload
from equipoise_lab.audit.clopper_pearson import Outcome, Sampler, certify
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

AUDITED = ("a table", "one that ends it")
MIN_USED = 0.4  # of a charge, in any of the cases; more than 0.9 in the worst of them (`answers_hide_a_record`)
LEVEL = 1e-6 / (len(AUDITED) + 1)


@pytest.mark.sparse(3)
@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_a_moved_record_shows_no_more_than_is_charged(name: str) -> None:
    """By the law of all that is told: as a divergence at every order, and as a hockey stick at every delta."""
    plan = ONLINE.plan(CASES[name].setting)
    laws = CASES[name].laws(plan)
    assert all(math.fsum(law.values()) == pytest.approx(1, abs=1e-9) for law in laws)
    assert MIN_USED <= used(laws, plan) <= 1 + 1e-9
    pair = Pair.of(*laws)
    for delta in (0.1, DELTA, 1e-4):
        assert pair.delta(epsilon_for(plan.data_cost, delta)) <= delta


def samplers(each: Case, plan: MechanismPlan) -> tuple[Sampler, Sampler]:
    """The shipped run on either table, as the analyst sees it."""
    statements = each.statements
    asked = {"a": SessionWorkload(np.arange(len(statements)), tuple(statements))}

    def sampler(side: int) -> Sampler:
        def run(number: int) -> Outcome:
            seed = (2 * number + side).to_bytes(32, "big")
            told = play(ONLINE, each.setting, plan, DenseCounts(each.histogram(side)), asked, seed, lambda *_: None)
            answers = told.answers["a"]
            return ((*answers.methods.tolist(), *answers.values.tolist()),)

        return run

    return sampler(0), sampler(1)


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize("name", AUDITED)
def test_the_audit_certifies_no_more_than_is_true(name: str, audit_size: AuditSize) -> None:
    each = CASES[name]
    plan = ONLINE.plan(each.setting)
    certificate = certify(*samplers(each, plan), audit_size.runs, DELTA, LEVEL)
    exact, claim = Pair.of(*each.laws(plan)).epsilon(DELTA), epsilon_for(plan.data_cost, DELTA)
    print(
        f"\nonline, {name}: epsilon at delta {DELTA} is claimed to be {claim:.3f}, is {exact:.3f} on these tables, "
        f"and is certified to be at least {certificate.epsilon:.3f}"
    )
    assert certificate.epsilon <= exact * 1.001 <= claim * 1.001 < math.inf


@pytest.mark.full
def test_answers_without_noise_are_refuted_at_the_fast_size(monkeypatch: pytest.MonkeyPatch) -> None:
    each = case(([2, 1, 0], [1, 2, 0]), (1,), 2.0, answers="gaussian")
    plan = ONLINE.plan(each.setting)
    monkeypatch.setattr(DiscreteGaussian, "draw", lambda noise, count, stream: np.zeros(count, dtype=np.int64))
    certificate = certify(*samplers(each, plan), SIZES["fast"].runs, DELTA, LEVEL)
    assert certificate.epsilon > epsilon_for(plan.data_cost, DELTA)


@pytest.mark.full
def test_the_law_is_that_of_the_shipped_run(audit_size: AuditSize) -> None:
    """Played sessions have the enumerated law, but for what chance allows with a probability of 1e-6."""
    each, runs = CASES["a table"], audit_size.runs
    plan = ONLINE.plan(each.setting)
    law, sampler = each.laws(plan)[0], samplers(each, plan)[0]
    # Only how each statement was answered: that is what tests and thresholds of the shipped run decide.
    ways: dict[tuple[int, ...], float] = {}
    for key, chance in law.items():
        way = (key[0], key[5], key[8])
        ways[way] = ways.get(way, 0.0) + chance
    seen: dict[tuple[int, ...], int] = {}
    for run in range(runs):
        (told,) = sampler(run)
        assert isinstance(told, tuple)
        way = (told[0], told[3], told[4])
        seen[way] = seen.get(way, 0) + 1
    assert set(seen) <= set(ways)
    allowed = math.sqrt(math.log(2 * len(ways) / 1e-6) / (2 * runs))
    assert all(abs(seen.get(way, 0) / runs - chance) <= allowed for way, chance in ways.items())
    assert GaussianNoise.method in {way[0] for way in seen}


@pytest.mark.thin(9)
@pytest.mark.parametrize(("name", "check", "switch"), MUTANTS, ids=[name for name, _, _ in MUTANTS])
def test_the_mutant_is_caught(name: str, check: Check, switch: Switch, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(), name
    with monkeypatch.context() as patches:
        switch(patches)
        assert not check(), name
