"""The regret of `auto`: its error over that of the best forced mechanism, on a battery of rounds.

    python benchmarks/regret.py adult7.csv adult7-domain.json [--repeat 5] [--only TEXT] [--seconds 30]
        [--plan-only] [--wide adult13.csv adult13-domain.json]

Every mechanism that has a plan within the limit of seconds is run on every round (epsilon 1, delta 1/n^2 for the
people; epsilon 1, delta 10^-6 for the analysts, unit query, beta 0.05). One whose mean and whose largest error are
both twice the least or more is run with one seed, as it can be the best by neither; all others with all seeds.
Prints, for each, the seeds, the expected mean error of its plan, the mean and the largest error measured, and, for
the chosen one, both regrets. `--plan-only` runs nothing and prints which mechanism each round takes, and what every
plan expects and promises.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from battery import Case, battery, wide_battery
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

COLUMNS = (
    *("round", "mechanism", "seeds", "expected", "mean", "promised", "largest", "seconds"),
    *("regret: mean", "largest"),
)
FAR_WORSE = 2.0  # times the least error: seeds change a mean error by some percent, and a largest one by a third


@dataclass
class Runs:
    """The runs of one mechanism on one round: its plan, and of each seed the mean and the largest error."""

    plan: MechanismPlan
    means: list[float] = field(default_factory=list)
    largest: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def mean(self) -> float:
        """The mean error, a mean over the seeds."""
        return float(np.mean(self.means))

    @property
    def worst(self) -> float:
        """The largest error, a mean over the seeds."""
        return float(np.mean(self.largest))


class Remembered:
    """Counts of a table that count each workload once, however many mechanisms and seeds ask for it."""

    def __init__(self, data: Counts) -> None:
        self._data, self._held = data, dict[int, tuple[CompiledWorkload, NDArray[np.int64]]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def count(self, workload: CompiledWorkload) -> NDArray[np.int64]:
        """Count the records of every query."""
        if id(workload) not in self._held:
            self._held[id(workload)] = workload, self._data.count(workload)
        return self._held[id(workload)][1].copy()


def main() -> None:
    """Prints a table in Markdown, a row as soon as it is known, and the regrets of all rounds at the end."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--repeat", type=int, default=5)
    arguments.add_argument("--only", default="", help="rounds whose names hold this text")
    arguments.add_argument("--seconds", type=float, default=30.0, help="predicted, for a mechanism to be run")
    arguments.add_argument("--wide", type=Path, nargs=2, help="Adult's 13 attributes, as CSV and JSON")
    arguments.add_argument("--plan-only", action="store_true", help="plan, and run nothing")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    regrets = []
    wide = wide_battery(*options.wide) if options.wide else ()
    for case in itertools.chain(battery(options.table, options.schema), wide):
        if options.only not in case.name:
            continue
        if options.plan_only:
            tell_plans(case)
        else:
            regrets.append(judge(case, options.repeat, options.seconds))
    if not regrets:
        return
    for name, place in (("mean error", 0), ("largest error", 1)):
        column = [regret[place] for regret in regrets]
        print(f"regret of the {name}: {max(column):.3f} at most, {np.mean(column):.3f} in the mean")


def tell_plans(case: Case) -> None:
    """Print what every plan of a round expects and promises; the chosen one's name is in bold."""
    compared = compare(setting_of(case.task()), MECHANISMS)
    for candidate in compared.candidates:
        if candidate.plan is not None:
            name = f"**{candidate.mechanism}**" if candidate is compared.chosen else candidate.mechanism
            told = f"{candidate.plan.expected_error:.3g} | | {candidate.plan.max_half_width:.3g}"
            print(f"| {case.name} | {name} | | {told} | | {candidate.plan.seconds:.3g} | | |", flush=True)


def judge(case: Case, repeat: int, seconds: float) -> tuple[float, float]:
    """Print a row for each mechanism. Returns both regrets of the chosen one."""
    task = case.task()
    task = replace(task, data=Remembered(task.data))
    setting = setting_of(task)
    compared = compare(setting, MECHANISMS)
    chosen = compared.plan.mechanism
    runs = {}
    for candidate in compared.candidates:
        if candidate.plan is not None and (candidate.plan.seconds <= seconds or candidate.mechanism == chosen):
            try:
                runs[candidate.mechanism] = play(task, setting, Runs(candidate.plan), 0)
            except InvalidArgument as refusal:
                print(f"| {case.name} | {candidate.mechanism} | refuses: {refusal.message[:60]} |" + " |" * 7)
    best_mean, best_largest = min(run.mean for run in runs.values()), min(run.worst for run in runs.values())
    for name, run in runs.items():
        if name == chosen or run.mean < FAR_WORSE * best_mean or run.worst < FAR_WORSE * best_largest:
            for seed in range(1, repeat):
                play(task, setting, run, seed)
    whole = [run for run in runs.values() if len(run.means) == repeat]
    best_mean, best_largest = min(run.mean for run in whole), min(run.worst for run in whole)
    regret = runs[chosen].mean / best_mean, runs[chosen].worst / best_largest
    for name, run in runs.items():
        told = (f"**{regret[0]:.2f}**", f"**{regret[1]:.2f}**") if name == chosen else ("", "")
        figures = (
            run.plan.expected_error,
            run.mean,
            run.plan.max_half_width,
            run.worst,
            run.seconds / len(run.means),
        )
        numbers = [str(len(run.means)), *(f"{each:.3g}" for each in figures)]
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


def play(task: Task, setting: PublicParameters, run: Runs, seed: int) -> Runs:
    """Run a mechanism by its plan once more, and add what it errs by."""
    begun = time.perf_counter()
    made = MECHANISMS[run.plan.mechanism]
    outcome = made.run(setting, run.plan, task.data, task.workloads, seed_bytes(seed), lambda *_: None)
    run.seconds += time.perf_counter() - begun
    errors = np.concatenate(
        [
            np.abs(outcome.answers[who].values * 2.0**-40 - task.data.count(own) / task.records)
            for who, own in task.workloads.items()
        ]
    )
    run.means.append(float(errors.mean()))
    run.largest.append(float(errors.max()))
    return run


if __name__ == "__main__":
    main()
