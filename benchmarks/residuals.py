"""The residual measurement against a naive dense reference on the same noisy numbers, in the same run.

    python benchmarks/residuals.py [--repeat 5]

The reference knows no residuals. It writes every number that was measured as a row of one matrix over the universe,
and every cell of the tables as a row of another. It solves weighted least squares, with the exact number of records
as a row of great weight, and multiplies. Both are unbiased with the least variance, so they must agree.
Prints, for each family, the largest difference between the two in records, the ratio of their mean errors, that of
the mean error to what `cell_variances` says, the seconds of both, and the ratio of these.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.marginal_tables import Axes
from equipoise.residuals.axis_bases import bases_of
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.expected_error import gaussian_mean
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.residuals.measurement import Measured, measure

FAMILIES: dict[str, ResidualFamily] = {
    "10 binary attributes, triples": ResidualFamily.closed((2,) * 10, itertools.combinations(range(10), 3)),
    "16 x 7 x 15, pairs": ResidualFamily.closed((16, 7, 15), [(0, 1), (0, 2), (1, 2)]),
    "16 x 7 x 15, pairs, two in order": ResidualFamily.closed((16, 7, 15), [(0, 1), (0, 2), (1, 2)], (0, 2)),
}
RHO = 0.02
EXACT = 1e4  # times the weight of any noisy number
Matrix = NDArray[Any]  # of float64


def main() -> None:
    """Prints a table in Markdown."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--repeat", type=int, default=5)
    repeat = arguments.parse_args().repeat
    print("| family | differ by | mean errors' ratio | error / predicted | seconds | reference | ratio |")
    print("|---|---|---|---|---|---|---|")
    for name, family in FAMILIES.items():
        noise = least_summed(family, RHO).noise
        histogram = np.random.default_rng(7).poisson(20, math.prod(family.sizes)).astype(np.int64)
        truth = tables(family) @ histogram
        differs, own, others, took = 0.0, [], [], [0.0, 0.0]
        for seed in range(repeat):
            begun = time.perf_counter()
            measured = measure(DenseCounts(histogram, family.sizes), noise, bytes([seed]) * 32, "benchmark")
            restored = np.concatenate([measured.table(axes).counts().reshape(-1) for axes in family.largest])
            between = time.perf_counter()
            reference = dense(measured)
            took = [took[0] + between - begun, took[1] + time.perf_counter() - between]
            differs = max(differs, float(np.abs(restored - reference).max()))
            own.append(float(np.abs(restored - truth).mean()))
            others.append(float(np.abs(reference - truth).mean()))
        cells = [np.broadcast_to(cell_variances(noise, axes), shape_of(family, axes)) for axes in family.largest]
        predicted = np.mean([gaussian_mean(float(each)) for table in cells for each in table.reshape(-1)])
        figures = [f"{differs:.1e}", f"{np.mean(own) / np.mean(others):.4f}", f"{np.mean(own) / predicted:.3f}"]
        figures += [f"{each / repeat:.3g}" for each in took] + [f"{took[1] / took[0]:.0f}"]
        print(f"| {name} | {' | '.join(figures)} |", flush=True)


def dense(measured: Measured) -> Matrix:
    """Return all cells of the largest tables by weighted least squares over the universe."""
    noise = measured.noise
    rows, weights, numbers = strategy(noise)
    values = np.concatenate([measured.numbers[axes][place].reshape(-1) for axes, place in numbers])
    rows = np.concatenate([rows, np.ones((1, rows.shape[1]))])
    weights = np.append(weights, EXACT * weights.max())
    solved, *_ = np.linalg.lstsq(
        rows * weights[:, None], np.append(values, measured.records) * weights, rcond=1e-12
    )
    return np.asarray(tables(noise.family) @ solved)


def strategy(noise: ResidualNoise) -> tuple[Matrix, Matrix, list[tuple[Axes, tuple[slice, ...]]]]:
    """Return a row for each measured number, the root of its precision, and where the numbers are."""
    family = noise.family
    bases = bases_of(family.sizes, family.is_ordered)
    rows, weights, places = [], [], []
    for residual in family.residuals:
        levels = dict(residual)
        matrix: Matrix = np.ones((1, 1))
        for axis, basis in enumerate(bases):
            own = np.ones((1, basis.size))
            if axis in levels:
                own = basis.analyse(np.eye(basis.size), 0)[basis.places[levels[axis] - 1]]
            matrix = np.kron(matrix, own)
        rows.append(matrix)
        weights.append(np.full(len(matrix), 1 / math.sqrt(noise.variance(residual))))
        places.append((tuple(levels), tuple(bases[axis].places[level - 1] for axis, level in residual)))
    return np.concatenate(rows), np.concatenate(weights), places


def tables(family: ResidualFamily) -> Matrix:
    """Return a row for each cell of the largest tables."""
    made = []
    for axes in family.largest:
        matrix: Matrix = np.ones((1, 1))
        for axis, size in enumerate(family.sizes):
            matrix = np.kron(matrix, np.eye(size) if axis in axes else np.ones((1, size)))
        made.append(matrix)
    return np.concatenate(made)


def shape_of(family: ResidualFamily, axes: Axes) -> tuple[int, ...]:
    """Return the shape of a table."""
    return tuple(family.sizes[axis] for axis in axes)


if __name__ == "__main__":
    main()
