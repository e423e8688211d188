"""What outcomes alone say of every mechanism of the registry: promises are kept, and a record is hidden.

The audits raise a false alarm with probability at most 1e-6 in all. Seeds are fixed, so that the rounds are always
the same ones.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from harness.answers import to_bytes
from harness.audit_size import SIZES, AuditSize
from harness.instance import instance
from harness.mechanism_cases import CASES, NAMES, OPTIONS
from numpy.typing import NDArray

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_lab.audit.empirical import Finding, audited, claim_of
from equipoise_lab.audit.neighbours import Instance
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

BETA, ROUNDS = 0.1, 200
LEVEL = 1e-6 / (3 * len(NAMES))  # each on at most three pairs of neighbours
DELTA = 0.01
BUDGETS = Budget(1.0, DELTA), Budget(16.0, DELTA)  # of the data, of each analyst
# Audits of the equilibrium's plays and units, which take longer, are in `test_empirical_audit`.
AUDITED = [name for name in NAMES if name != "equilibrium"]
every_mechanism = pytest.mark.parametrize("name", NAMES)


def largest_errors(
    name: str,
    setting: PublicParameters,
    histogram: NDArray[np.int64],
    workloads: dict[str, CompiledWorkload],
    rounds: int,
) -> tuple[NDArray[np.float64], int]:
    """The largest error of a certified answer in each round, and in how many rounds an interval misses a truth."""
    mechanism, plan = MECHANISMS[name], MECHANISMS[name].plan(setting)
    truth = {analyst: own.counts(histogram) / setting.records for analyst, own in workloads.items()}
    largest, broken = np.zeros(rounds), 0
    for number in range(rounds):
        seed = number.to_bytes(32)
        outcome = mechanism.run(
            setting, plan, DenseCounts(histogram, setting.attributes), workloads, seed, lambda *_: None
        )
        beyond = False
        for analyst, answers in outcome.answers.items():
            certified = answers.certified
            errors = np.abs(answers.values / 2.0**GRID_BITS - truth[analyst])[certified]
            largest[number] = max(largest[number], errors.max(initial=0.0))
            beyond |= bool(answers.misses(truth[analyst]).any())
        broken += beyond
    return largest, broken


@pytest.mark.sparse(8)
@pytest.mark.full
@every_mechanism
def test_what_is_promised_holds_in_all_but_beta_of_the_rounds(name: str) -> None:
    case = CASES["a table"]
    setting = replace(case.setting, beta=BETA, options=OPTIONS.get(name, {}))
    largest, broken = largest_errors(name, setting, case.histogram, dict(case.workloads), ROUNDS)
    assert broken <= BETA * ROUNDS
    promised = MECHANISMS[name].plan(setting).max_half_width
    assert np.count_nonzero(largest > promised) <= BETA * ROUNDS


@pytest.mark.parametrize("predicates", [10, 0])
@pytest.mark.parametrize("name", ["laplace", "gaussian", "histogram"])
def test_promises_are_at_most_five_times_what_is_seen(name: str, predicates: int) -> None:
    """Conditions on large parts of the universe, and a table each; or tables alone, and small cells declared."""
    case = instance(analysts=3, predicates=predicates, records=50_000)
    shares = tuple(replace(each, support=case.workloads[each.analyst].support) for each in case.setting.shares)
    setting = replace(case.setting, beta=0.05, shares=shares)
    largest, _ = largest_errors(name, setting, case.histogram, case.workloads, 20)
    promised = MECHANISMS[name].plan(setting).max_half_width
    assert float(largest.mean()) <= promised <= 5 * float(largest.mean())


def tiny(name: str) -> tuple[Instance, MechanismPlan]:
    """A round about one record, and its plan."""
    instance = Instance("3", 1, 2, 2, "query", *BUDGETS, 0.1, OPTIONS.get(name, {}))
    return instance, MECHANISMS[name].plan(instance.setting)


def findings(name: str, side: str, runs: int) -> list[Finding]:
    """What outcomes certify of epsilon where the only record moves, or a statement, and what is claimed."""
    (instance, plan), seeds = tiny(name), itertools.count()
    claim = claim_of(*((plan.data_cost, BUDGETS[0]) if side == "data" else (plan.charged_analyst_cost, BUDGETS[1])))
    return [
        audited(instance, plan, pair, claim, runs, LEVEL, lambda: next(seeds).to_bytes(32), lambda *_: None)
        for pair in instance.neighbours()
        if pair.side == side
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("name", AUDITED)
def test_a_moved_record_shows_no_more_than_is_charged(name: str, audit_size: AuditSize) -> None:
    assert not any(each.refuted for each in findings(name, "data", audit_size.runs // 5))


@pytest.mark.nightly
def test_a_changed_statement_shows_no_more_than_is_charged(audit_size: AuditSize) -> None:
    assert not any(each.refuted for each in findings("pooled", "analysts", audit_size.runs // 10))


@pytest.mark.thin(3)
@pytest.mark.parametrize("name", [name for name in AUDITED if name != "pooled"])
def test_a_changed_statement_shows_nothing_where_nothing_is_charged(name: str, audit_size: AuditSize) -> None:
    """From the same seed all others get the same bytes. No sample of outcomes could show as much."""
    instance, plan = tiny(name)
    assert plan.charged_analyst_cost == Cost()
    for pair, number in itertools.product(instance.neighbours(), range(audit_size.runs // 20)):
        if pair.side == "analysts":
            first, second = (
                MECHANISMS[name].run(
                    instance.setting, plan, given.data, given.workloads, number.to_bytes(32), lambda *_: None
                )
                for given in pair.inputs
            )
            assert all(to_bytes(first.answers[each]) == to_bytes(second.answers[each]) for each in pair.viewers)
            assert first.synopsis.cells.tolist() == second.synopsis.cells.tolist()


@pytest.mark.full
@pytest.mark.parametrize("name", ["laplace", "gaussian", "histogram"])
def test_answers_without_noise_are_refuted_at_the_fast_size(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for law in (DiscreteLaplace, DiscreteGaussian):
        monkeypatch.setattr(law, "draw", lambda noise, count, stream: np.zeros(count, dtype=np.int64))
    assert all(each.refuted for each in findings(name, "data", SIZES["fast"].runs // 5))
