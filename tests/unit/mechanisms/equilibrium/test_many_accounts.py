"""Twenty accounts of one person against one analyst: what each is tested and answered with is its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from harness.instance import SEED, Instance, instance, silent

from equipoise.model.accounts import Budget
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.registry import mechanism

pytestmark = pytest.mark.slow

VICTIM, ACCOUNTS = "analyst-0", [f"analyst-{number}" for number in range(1, 21)]


def round_of(unit: str) -> Instance:
    """Twenty-one analysts in a game that learns nothing, so that all that differs is what each is answered with."""
    case = instance(21, 1, data_rate=0, rounds=10, threshold=0.05)
    budget = Budget(8.0, 1e-6)
    return replace(case, setting=replace(case.setting, unit=unit, analyst_budget=budget))


def run(case: Instance, workloads: dict[str, CompiledWorkload]) -> Outcome:
    table = DenseCounts(case.histogram, case.setting.attributes)
    return mechanism("equilibrium").run(case.setting, case.plan, table, workloads, SEED, silent)


def content(outcome: Outcome, names: list[str]) -> list[bytes]:
    """All that these analysts are sent."""
    return [outcome.answers[name].values.tobytes() + outcome.answers[name].methods.tobytes() for name in names]


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("unit", ["query", "analyst"])
def test_twenty_accounts_see_nothing_of_what_one_analyst_asks_and_move_none_of_its_answers(unit: str) -> None:
    case = round_of(unit)
    usual = run(case, case.workloads)
    victim_asks_else = run(case, case.workloads | {VICTIM: case.workloads[ACCOUNTS[0]]})
    assert content(victim_asks_else, [VICTIM]) != content(usual, [VICTIM])
    assert content(victim_asks_else, ACCOUNTS) == content(usual, ACCOUNTS)
    accounts_ask_else = run(case, case.workloads | dict.fromkeys(ACCOUNTS, case.workloads[ACCOUNTS[0]]))
    assert content(accounts_ask_else, ACCOUNTS[1:]) != content(usual, ACCOUNTS[1:])
    assert content(accounts_ask_else, [VICTIM]) == content(usual, [VICTIM])


@pytest.mark.full
@pytest.mark.slow
def test_accounts_that_ask_the_same_are_answered_with_noise_of_their_own() -> None:
    """Noise that two of them shared would tell each what the other was answered."""
    case = round_of("analyst")
    outcome = run(case, case.workloads | dict.fromkeys(ACCOUNTS, case.workloads[ACCOUNTS[0]]))
    for one, other in combinations([outcome.answers[name] for name in ACCOUNTS], 2):
        assert np.array_equal(one.methods, other.methods)
        assert (one.values != other.values).mean() > 0.9
