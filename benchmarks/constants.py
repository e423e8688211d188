"""Fits the constants of expected errors to what is measured on tables that judge no choice.

    python benchmarks/constants.py adult13.csv adult13-domain.json [--only NAME]

The tables are those of `expectations.py`, but for the one whose cells are random: five attributes of Adult that are
not among the seven of `battery.py`, a mixture of profiles, attributes that depend each on one other, independent
ones, and a mixture in a small universe; each at 2,000, 50,000 and 2,000,000 records. A group of constants is fitted
to what one mechanism errs by on one kind of statements: the mean distance of the logarithms of what is measured and
what plans expect is least. One seed each; both epsilons 1, five analysts.

Prints, for each group, its rounds, the constants in the code and those of the fit, and the mean distance with
either, as a factor.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import numpy as np
from battery import dealt, predicates, resampled
from expectations import RECORDS, tables
from numpy.typing import NDArray
from regret import Runs, play, setting_of
from scipy.optimize import minimize

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.statements import Marginal, Statement
from equipoise_lab.simulation.task import Task
from equipoise_server.mechanisms import expected_error
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.pooled import tables_plan
from equipoise_server.mechanisms.prior import forecast
from equipoise_server.mechanisms.prior.forecast import expected_mean
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.mechanisms.residuals import expected_error as residual_error

RANDOM = "small random cells"
MARGINALS = ((2, 1), (2, 6), (2, 100), (3, 1), (3, 10), (3, 100))  # attributes of a table, tables at most
CONDITIONS = ((2, 200), (2, 2_000), (2, 20_000))  # attributes of a conjunction, conjunctions
MORE_CONDITIONS = ((3, 1_000), (5, 1_000))  # of which pairs do not tell all
COLUMNS = ("constants", "of", "rounds", "in the code", "fitted", "off by a factor of", "fitted")


def planned_again(setting: PublicParameters, plan: MechanismPlan) -> float:
    """Return what a plan with the present constants expects."""
    return MECHANISMS[plan.mechanism].plan(setting).expected_error


def of_prior(setting: PublicParameters, plan: MechanismPlan) -> float:
    """Return what a plan of `equilibrium` expects of its prior, without a search for play as often."""
    start = EquilibriumParameters.from_json(plan.parameters).start
    if start is None:
        raise ValueError("the plan has no prior")
    return expected_mean(start.prior, setting)


@dataclass(frozen=True)
class Group:
    """Constants of a module, and the mechanism whose rounds they are fitted to.

    Attributes:
        module: where they are.
        names: of the constants.
        mechanism: its name.
        options: forced.
        asked: how many attributes a statement has and how many statements there are, round by round.
        conditions: whether these are conjunctions. Else they are tables.
        expected: the mean error that a plan expects with the present constants.
    """

    module: ModuleType
    names: tuple[str, ...]
    mechanism: str
    options: dict[str, object]
    asked: tuple[tuple[int, int], ...]
    conditions: bool = False
    expected: Callable[[PublicParameters, MechanismPlan], float] = planned_again


GROUPS = (
    Group(expected_error, ("FIT", "TABLES_POWER", "CELLS_POWER"), "projection", {}, MARGINALS),
    Group(expected_error, ("PREDICATE_FIT", "PREDICATES_POWER", "NOISE_POWER"), "projection", {}, CONDITIONS, True),
    Group(residual_error, ("RESIDUAL_FIT",), "pooled", {"residuals": 1}, MARGINALS),
    Group(tables_plan, ("CELL_PART", "CELLS_POWER", "NOISE_POWER"), "pooled", {"residuals": 0}, MARGINALS),
    Group(
        forecast, ("CELL_PART", "UNMEASURED_OF_CELL"), "equilibrium", {"prior": "own"}, MARGINALS, False, of_prior
    ),
    Group(forecast, ("UNMEASURED",), "equilibrium", {"prior": "own"}, MORE_CONDITIONS, True, of_prior),
)


def main() -> None:
    """Print a table in Markdown, a row as soon as it is known."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("table", type=Path)
    arguments.add_argument("schema", type=Path)
    arguments.add_argument("--only", default="", help="groups whose names hold this text")
    options = arguments.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    for group in GROUPS:
        if options.only in ", ".join((*group.names, group.mechanism)):
            print("| " + " | ".join(fitted(group, options.table, options.schema)) + " |", flush=True)


def fitted(group: Group, table: Path, schema: Path) -> list[str]:
    """Measure the rounds of a group, and fit its constants. Returns the columns of its row."""
    runs = measured(group, table, schema)
    errors = np.array([run.mean for _, run in runs])
    present = np.array([getattr(group.module, name) for name in group.names])

    def distance(factors: NDArray[np.float64]) -> float:
        with patch.multiple(group.module, **dict(zip(group.names, (present * factors).tolist(), strict=True))):
            expected = [group.expected(setting, run.plan) for setting, run in runs]
        return float(np.abs(np.log(errors) - np.log(expected)).mean())

    start = np.ones(len(present))
    corners = np.vstack([start, *(start + 0.5 * np.eye(len(present)))])
    best = minimize(
        distance,
        start,
        method="Nelder-Mead",
        options={"initial_simplex": corners, "xatol": 0.02, "fatol": 0.002, "maxfev": 60},
    )
    return [
        ", ".join(group.names),
        ", ".join((group.mechanism, *(f"{key} {value}" for key, value in group.options.items()))),
        str(len(errors)),
        ", ".join(f"{each:.3g}" for each in present),
        ", ".join(f"{each:.3g}" for each in present * best.x),
        *(f"{math.exp(each):.2f}" for each in (distance(start), best.fun)),
    ]


def measured(group: Group, table: Path, schema: Path) -> list[tuple[PublicParameters, Runs]]:
    """Return the settings of a group's rounds, and one run of each."""
    runs = []
    for task in tasks(group, table, schema):
        setting = replace(setting_of(task), options=group.options)
        try:
            run = play(task, setting, Runs(MECHANISMS[group.mechanism].plan(setting)), 0)
        except (BudgetExhausted, InvalidArgument):
            continue
        runs.append((setting, run))
    return runs


def tasks(group: Group, table: Path, schema_file: Path) -> Iterator[Task]:
    """Yield the rounds of a group."""
    for name, schema, counts in tables(table, schema_file):
        if name == RANDOM:
            continue
        for records in RECORDS:
            data = resampled(counts, schema, records)
            for width, count in group.asked:
                statements: list[Statement]
                if group.conditions:
                    statements = predicates(schema, count, width)
                else:
                    sets = itertools.combinations(schema.names, width)
                    statements = [Marginal(names) for names in itertools.islice(sets, count)]
                yield dealt(schema, data, statements, min(5, len(statements)))


if __name__ == "__main__":
    main()
