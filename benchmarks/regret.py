"""The regret of `auto`: its error over that of the best forced mechanism, on a battery of rounds.

    python benchmarks/regret.py adult7.csv adult7-domain.json [--repeat 3] [--only TEXT] [--seconds 120]

Every mechanism that has a plan within the limit of seconds is run on every round (epsilon 1, delta 1/n^2 for the
people; epsilon 1, delta 10^-6 for the analysts, unit query, beta 0.05). Prints, for each, the expected mean error
of its plan, the mean and the largest error measured, and, for the chosen one, both regrets.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from battery import Case, battery

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

COLUMNS = ("round", "mechanism", "expected", "mean", "promised", "largest", "seconds", "regret: mean", "largest")


@dataclass(frozen=True)
class Run:
    """What one mechanism erred by on one round: the mean and the largest error, means over all seeds."""

    mechanism: str
    expected: float
    promised: float
    mean: float
    largest: float
    seconds: float


def main() -> None:
    """Prints a table in Markdown, a row as soon as it is known, and the regrets of all rounds at the end."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--only", default="", help="rounds whose names hold this text")
    arguments.add_argument("--seconds", type=float, default=120.0, help="predicted, for a mechanism to be run")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS))
    regrets = []
    for case in battery(options.table, options.schema):
        if options.only in case.name:
            regrets.append(judge(case, options.repeat, options.seconds))
    for name, place in (("mean error", 0), ("largest error", 1)):
        column = [regret[place] for regret in regrets]
        print(f"regret of the {name}: {max(column):.3f} at most, {np.mean(column):.3f} in the mean")


def judge(case: Case, repeat: int, seconds: float) -> tuple[float, float]:
    """Print a row for each mechanism. Returns both regrets of the chosen one."""
    task = case.task()
    setting = setting_of(task)
    compared = compare(setting, MECHANISMS)
    chosen = compared.plan.mechanism
    runs = {}
    for candidate in compared.candidates:
        if candidate.plan is not None and (candidate.plan.seconds <= seconds or candidate.mechanism == chosen):
            try:
                runs[candidate.mechanism] = measured(task, setting, candidate.mechanism, repeat)
            except InvalidArgument as refusal:
                print(f"| {case.name} | {candidate.mechanism} | refuses: {refusal.message[:60]} |" + " |" * 6)
    best_mean, best_largest = (min(getattr(run, name) for run in runs.values()) for name in ("mean", "largest"))
    regret = runs[chosen].mean / best_mean, runs[chosen].largest / best_largest
    for name, run in runs.items():
        told = (f"**{regret[0]:.2f}**", f"**{regret[1]:.2f}**") if name == chosen else ("", "")
        numbers = [f"{each:.3g}" for each in (run.expected, run.mean, run.promised, run.largest, run.seconds)]
        print("| " + " | ".join((case.name, name, *numbers, *told)) + " |", flush=True)
    return regret


def setting_of(task: Task) -> PublicParameters:
    """Return the round's public parameters."""
    return PublicParameters(
        records=task.records,
        universe_size=math.prod(task.schema.sizes),
        shares=task.shares,
        unit="query",
        data_budget=Budget(1.0, 1 / task.records**2),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=task.schema.sizes,
        ordered=task.schema.ordered,
    )


def measured(task: Task, setting: PublicParameters, mechanism: str, repeat: int) -> Run:
    """Run a mechanism with `repeat` seeds."""
    plan = MECHANISMS[mechanism].plan(setting)
    truth = {who: task.data.count(own) / task.records for who, own in task.workloads.items()}
    means, largest, begun = [], [], time.perf_counter()
    for seed in range(repeat):
        outcome = MECHANISMS[mechanism].run(
            setting, plan, task.data, task.workloads, seed_bytes(seed), lambda *_: None
        )
        errors = np.concatenate(
            [np.abs(outcome.answers[who].values * 2.0**-40 - own) for who, own in truth.items()]
        )
        means.append(float(errors.mean()))
        largest.append(float(errors.max()))
    took = (time.perf_counter() - begun) / repeat
    return Run(
        mechanism,
        plan.expected_error,
        plan.max_half_width,
        float(np.mean(means)),
        float(np.mean(largest)),
        took,
    )


if __name__ == "__main__":
    main()
