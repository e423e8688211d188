"""Rounds small enough to be computed often; as a program, computes them from the plans that it reads.

The plans are read, not made: they are public inputs of a round, and only what follows from them is replayed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace

import numpy as np
from harness.answers import to_bytes
from harness.instance import SEED, Instance, instance, silent

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.registry import mechanism


def whole_analysts(case: Instance) -> Instance:
    """The instance with whole analysts protected."""
    return replace(case, setting=replace(case.setting, unit="analyst", analyst_budget=Budget(20.0, 1e-6)))


def rounds() -> dict[str, Instance]:
    """Both plays and both units: records, drawn actions, tests, repair places, and answers of every kind."""
    return {
        "mixed": instance(4, 60, play="mixed", cut_off=5, threshold=0.01),
        "sampled": instance(4, 60, play="sampled", cut_off=5, threshold=0.01),
        "whole analysts": whole_analysts(instance(120, 3, threshold=0.05, cut_off=4, rounds=40)),
    }


def outcome_of(case: Instance, parameters: str) -> Outcome:
    """What a round delivers, from its public parameters."""
    plan = MechanismPlan("equilibrium", parameters, Cost(), None, 1.0, 0, 0.0, 0, 1.0)
    return mechanism("equilibrium").run(
        case.setting, plan, DenseCounts(case.histogram, case.setting.attributes), case.workloads, SEED, silent
    )


def digest(outcome: Outcome) -> str:
    """Of every byte that a round delivers."""
    everything = hashlib.sha256(outcome.synopsis.cells.tobytes())
    for name, answers in sorted(outcome.answers.items()):
        everything.update(name.encode() + to_bytes(answers))
    return everything.hexdigest()


if __name__ == "__main__":
    plans = json.load(sys.stdin)
    digests = {name: digest(outcome_of(case, plans[name])) for name, case in rounds().items()}
    print(json.dumps({"numpy": np.__version__, "digests": digests}))
