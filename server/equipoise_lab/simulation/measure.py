"""Measures the errors of one run: of the synopsis, after repair, and of the certified answers only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.mechanisms.interface import GRID_BITS, Outcome


@dataclass(frozen=True)
class Errors:
    """The largest, the 99th percentile and the mean of |answer - truth|, as fractions of the records."""

    max: float
    p99: float
    mean: float

    @staticmethod
    def between(answers: NDArray[np.float64], truth: NDArray[np.float64]) -> Errors | None:
        """None where there is no answer."""
        if answers.size == 0:
            return None
        distances = np.abs(answers - truth)
        return Errors(float(distances.max()), float(np.quantile(distances, 0.99)), float(distances.mean()))


@dataclass(frozen=True)
class Run:
    """One run. `synopsis` is None for mechanisms without one, `certified` where nothing is certified.

    `answered_by` counts the queries by how they were answered, `analysts_with` the analysts of whose answers at
    least one was given so; `outside_interval` counts answers whose truth lies outside their interval: with
    any, the run broke the promise that `beta` is about. `seconds` of the mechanism alone.
    """

    seed: int
    synopsis: Errors | None
    delivered: Errors
    certified: Errors | None
    answered_by: Mapping[str, int]
    analysts_with: Mapping[str, int]
    uncertified: int
    outside_interval: int
    seconds: float


def measure_run(
    workload: CompiledWorkload, truth: NDArray[np.float64], outcome: Outcome, seed: int, seconds: float
) -> Run:
    """Compare an outcome with the truth.

    Args:
        workload: All analysts' queries, in the order of the outcome's analysts.
        truth: float64[k], fractions of the records.
        outcome: Of the run.
        seed: Of the run, for the report.
        seconds: How long it took, for the report.

    Raises:
        ValueError: the workload has no query.
    """
    answers = Answers.join(outcome.answers.values())
    values = answers.values / 2.0**GRID_BITS
    certified = answers.certified
    delivered = Errors.between(values, truth)
    if delivered is None:
        raise ValueError("there is no query to measure")
    synopsis = None
    if len(outcome.synopsis):
        synopsis = Errors.between(outcome.synopsis.counts(workload) / len(outcome.synopsis), truth)
    return Run(
        seed=seed,
        synopsis=synopsis,
        delivered=delivered,
        certified=Errors.between(values[certified], truth[certified]),
        answered_by=_by_method(answers.methods),
        analysts_with=_by_method(np.concatenate([np.unique(own.methods) for own in outcome.answers.values()])),
        uncertified=int(np.count_nonzero(~certified)),
        outside_interval=int(np.count_nonzero(answers.misses(truth))),
        seconds=seconds,
    )


def mean_errors(errors: list[Errors | None]) -> Errors | None:
    """Return the mean over runs of each number; None where a run has none."""
    present = [error for error in errors if error is not None]
    if not present or len(present) < len(errors):
        return None
    return Errors(
        *(float(np.mean([getattr(error, name) for error in present])) for name in ("max", "p99", "mean")),
    )


def _by_method(methods: NDArray[np.uint8]) -> dict[str, int]:
    numbers, counts = np.unique(methods, return_counts=True)
    return {
        AnswerMethod(number).label: count for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
    }
