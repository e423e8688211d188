"""Tiny sessions of `low_sensitivity`, whose law can be summed: three records in two bins, and two candidates."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.exact_epochs import session_law

from equipoise.accounting import charge_of
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import CappedSum, Quantile, Variance
from equipoise.queries.statistics import CompiledStatistic, Databases
from equipoise.queries.workload_compiler import compile_statistic
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, analyst_parts, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import DatabaseQuestion, database_of, scale_for
from equipoise_server.mechanisms.noise_calibration import GaussianNoise

EDGES = (0.0, 1.0, 2.0)
SCHEMA = Schema((Attribute("x", bin_labels(EDGES), EDGES),))
RECORDS = 3
# Neighbours stand side by side.
TABLES = tuple(np.array([low, RECORDS - low], dtype=np.int64) for low in range(RECORDS + 1))
CANDIDATES = ((4, 0), (1, 3))
SPREAD = compile_statistic(Variance("x"), SCHEMA, "")
MIDDLE = compile_statistic(Quantile("x", 0.5, 0.67), SCHEMA, "")
CAPPED = compile_statistic(CappedSum("x", 2.0), SCHEMA, "")
EXACT_MEDIAN = compile_statistic(Quantile("x", 0.5, 0.01), SCHEMA, "")
DELTAS = (1e-3, 0.02, 0.1)
ROUNDING = 1e-6  # outcomes left out of the sums


def listed(counts: Sequence[tuple[int, ...]]) -> Databases:
    """Candidates with records in both bins, or in the first alone."""
    cells = [np.flatnonzero(each) for each in counts]
    lengths = [len(each) for each in cells]
    return Databases(
        SCHEMA.sizes,
        np.cumsum([0, *lengths[:-1]]),
        np.concatenate(cells),
        np.concatenate([np.array(each)[some] for each, some in zip(counts, cells, strict=True)]),
    )


def parameters_of(declared: Fraction) -> EpochParameters:
    """Two epochs of about one statement each, little noise, and caps that three statements do not meet."""
    return EpochParameters(
        scale=scale_for(declared),
        epochs=2,
        target=1,
        cap=41,
        ending_epsilon=Fraction(1),
        records=1,
        step=1 << 30,
        threshold=1 << 16,
        test_epsilon=Fraction(1, 2),
        noise=GaussianNoise(Fraction(2)),
        guard=0,
        certified_half_width=1 << 40,
        noise_half_widths=(1 << 40,),
    )


def session_of(statements: int) -> tuple[PublicParameters, Session]:
    """What the costs are computed for: every slot is asked in."""
    setting = PublicParameters(
        records=RECORDS,
        universe_size=2,
        shares=(Share("a", statements, statements),),
        unit="query",
        data_budget=Budget(20.0, 1e-3),
        analyst_budget=Budget(5.0, 1e-3),
        beta=0.1,
        options={},
        attributes=SCHEMA.sizes,
    )
    return setting, Session(2, scale_for(Fraction(1)), 1, statements, statements, statements)


def law_on(
    table: NDArray[np.int64],
    asked: Sequence[CompiledStatistic],
    parameters: EpochParameters,
    candidates: Databases,
    hidden: int | None = None,
) -> Law:
    """Of everything but the answer in the `hidden` slot."""
    data = database_of(SCHEMA.sizes, DenseCounts(table))
    questions = [DatabaseQuestion(each, candidates, data, parameters.scale) for each in asked]
    return session_law(parameters, len(candidates.starts), questions, hidden)


def data_epsilon(parameters: EpochParameters, asked: int, delta: float) -> float:
    """What the people in the table are charged for a session, at a delta."""
    return epsilon_for(charge_of(data_parts(*session_of(asked), parameters)), delta)


def analyst_epsilon(parameters: EpochParameters, asked: int, delta: float) -> float:
    """What analysts are charged for it."""
    return epsilon_for(charge_of(analyst_parts(*session_of(asked), parameters)), delta)


def largest_delta(law: Law, other: Law, epsilon: float) -> float:
    """The delta that both ways need at this epsilon."""
    return max(hockey_stick(law, other, epsilon), hockey_stick(other, law, epsilon))
