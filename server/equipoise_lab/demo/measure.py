"""How good the answers were. The demo may look at the data; an analyst never could.

Every error is a fraction of the records: the distance of an answer from the true one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import Answers
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.workload_compiler import compile_workload
from equipoise.results import UNIT
from equipoise_lab.demo.comparison import Compared, Measurement, compare_mechanisms
from equipoise_lab.demo.play import Played, Workloads
from equipoise_lab.demo.table import SCHEMA
from equipoise_lab.simulation.baselines import uniform_guess
from equipoise_server.datasets.source import source_at
from equipoise_server.rounds.terms.checks import setting_of


@dataclass(frozen=True)
class AirlineErrors:
    """What one airline received, and how wrong it is.

    Attributes:
        airline: its code.
        queries: how many answers it received.
        measured: what they err by.
        max_half_width: the largest half-width of an interval, as a fraction of the records.
        epsilon_analyst: what the airline's account of analyst privacy has spent.
    """

    airline: str
    queries: int
    measured: Measurement
    max_half_width: float
    epsilon_analyst: float


@dataclass(frozen=True)
class MeasuredRound:
    """What the demo reports.

    Attributes:
        airlines: every airline's answers, in the order of the workloads.
        delivered: all of them together.
        compared: every mechanism on the same questions.
        uniform_max_error: the largest error of answering as if all possible records were equally many.
        records: how many records the table has.
    """

    airlines: tuple[AirlineErrors, ...]
    delivered: Measurement
    compared: Compared
    uniform_max_error: float
    records: int


def measure(played: Played, workloads: Workloads, table: Path) -> MeasuredRound:
    """Compare every answer with the table, and every mechanism with the one that answered.

    Args:
        played: the round.
        workloads: what each airline asked.
        table: the table's file.
    """
    data = source_at(table).counts(SCHEMA)
    compiled = {airline: compile_workload(asked, SCHEMA) for airline, asked in workloads.items()}
    together = concatenate(list(compiled.values()))
    truth = data.count(together) / data.records
    delivered = Answers.join(played.results[airline].answers for airline in workloads)
    setting = setting_of(played.detail.round.terms, data.records, SCHEMA.universe_size, SCHEMA)
    ends = np.cumsum([workload.query_count for workload in compiled.values()])
    return MeasuredRound(
        airlines=tuple(
            _of_airline(airline, played, own)
            for airline, own in zip(workloads, np.split(truth, ends[:-1]), strict=True)
        ),
        delivered=Measurement.of(delivered, truth),
        compared=compare_mechanisms(setting, played.detail.plan.mechanism, delivered, data, compiled, truth),
        uniform_max_error=float(np.abs(uniform_guess(together) - truth).max()),
        records=data.records,
    )


def _of_airline(airline: str, played: Played, truth: NDArray[np.float64]) -> AirlineErrors:
    answers = played.results[airline].answers
    return AirlineErrors(
        airline=airline,
        queries=len(answers),
        measured=Measurement.of(answers, truth),
        max_half_width=float((answers.highs - answers.lows).max() * UNIT / 2),
        epsilon_analyst=played.analyst_accounts[airline].spent.epsilon,
    )
