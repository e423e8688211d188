"""Fitting one distribution to noisy answers, against an exact solver and against what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls

from equipoise import Marginal, attribute
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.mechanisms.fitting import fit

SCHEMA = Schema.from_json('{"a": 3, "b": 4, "c": 2}')


def workload() -> CompiledWorkload:
    over = attribute("a").isin(["1", "2"])
    statements: list[Statement] = [Marginal(("b", "a")), Marginal(("c", "b")), Marginal(("b", "a")), over]
    return compile_workload(statements, SCHEMA)


def matrix(compiled: CompiledWorkload) -> NDArray[np.float64]:
    """All queries over the universe, float64[k, |X|], one cell at a time: the naive reference."""
    size = math.prod(compiled.schema_sizes)
    units = [np.bincount([cell], minlength=size).astype(np.int64) for cell in range(size)]
    return np.stack([compiled.counts(unit) for unit in units], axis=1).astype(np.float64)


def nearest(compiled: CompiledWorkload, measured: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    """The least loss of any distribution: non-negative least squares, with a heavy row for the sum."""
    roots = np.sqrt(variances)
    rows = np.vstack([matrix(compiled) / roots[:, None], np.full((1, 24), 1e10)])
    _, distance = nnls(rows, np.append(measured / roots, 1e10))
    return float(distance**2 / 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_it_is_as_near_as_an_exact_solver_s_where_noise_does_not_stop_it(seed: int) -> None:
    choose = np.random.default_rng(seed)
    compiled = workload()
    truth = matrix(compiled) @ choose.dirichlet(np.full(24, 0.3))
    measured = truth + choose.normal(0, 0.05, len(truth))
    # Measured far more finely than it was: so the stopping rule sees progress to the end.
    variances = choose.uniform(1, 4, len(truth)) * 1e-10
    fitted = fit(compiled, measured, variances, most_steps=4000)
    assert fitted.loss == pytest.approx(nearest(compiled, measured, variances), rel=3e-5)
    assert fitted.distribution.min() >= 0
    assert fitted.distribution.sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(matrix(compiled) @ fitted.distribution - fitted.answers).max() < 1e-12


def test_what_is_measured_more_finely_weighs_more() -> None:
    compiled = compile_workload([Marginal(("a",)), Marginal(("a",))], SCHEMA)
    measured = np.array([0.5, 0.3, 0.2, 0.2, 0.3, 0.5])
    fitted = fit(compiled, measured, np.repeat([1e-8, 3e-8], 3), most_steps=2000)
    assert fitted.answers[:3] == pytest.approx([0.425, 0.3, 0.275], abs=1e-4)
    assert fitted.answers[3:] == pytest.approx(fitted.answers[:3], abs=1e-15)


@pytest.mark.slow
def test_it_comes_nearer_to_the_truth_than_what_was_measured_and_stops_early() -> None:
    choose = np.random.default_rng(5)
    schema = Schema.from_json('{"a": 8, "b": 6, "c": 5, "d": 7}')
    compiled = compile_workload([Marginal(tuple(pair)) for pair in ("ab", "ac", "ad", "bc", "bd", "cd")], schema)
    truth = compiled.expectations(choose.dirichlet(np.full(1680, 0.05)))
    for deviation in (0.03, 0.003, 0.0003):
        measured = truth + choose.normal(0, deviation, len(truth))
        fitted = fit(compiled, measured, np.full(len(truth), deviation**2))
        longer = fit(compiled, measured, np.full(len(truth), (deviation / 1000) ** 2))
        error, measured_error, later = (
            float(np.mean((answers - truth) ** 2)) for answers in (fitted.answers, measured, longer.answers)
        )
        assert error < measured_error
        assert error < 1.2 * later
        assert fitted.steps < longer.steps


def test_what_was_not_measured_does_not_count() -> None:
    both = compile_workload([Marginal(("a",)), Marginal(("b",))], SCHEMA)
    measured, variances = np.array([0.5, 0.3, 0.2, 9.0, 9.0, 9.0, 9.0]), np.array([1e-6] * 3 + [math.inf] * 4)
    fitted = fit(both, measured, variances)
    assert fitted.answers == pytest.approx([0.5, 0.3, 0.2] + [0.25] * 4, abs=1e-3)


def test_the_same_input_gives_the_same_bits() -> None:
    compiled, choose = workload(), np.random.default_rng(6)
    measured, variances = choose.normal(0.1, 0.1, compiled.query_count), np.full(compiled.query_count, 0.01)
    one, other = (fit(compiled, measured.copy(), variances) for _ in range(2))
    assert one.distribution.tobytes() == other.distribution.tobytes()


def test_a_change_in_the_last_places_stays_there() -> None:
    """What another machine's rounding may do to the measurements' sums."""
    compiled, choose = workload(), np.random.default_rng(7)
    measured, variances = choose.normal(0.1, 0.05, compiled.query_count), np.full(compiled.query_count, 0.0025)
    fitted = fit(compiled, measured, variances)
    moved = fit(compiled, measured * (1 + choose.uniform(-1, 1, compiled.query_count) * 2.0**-48), variances)
    assert np.abs(fitted.answers - moved.answers).max() < 2.0**-30


def test_nothing_to_fit_and_a_universe_of_one_cell() -> None:
    nothing = compile_workload([], SCHEMA)
    assert fit(nothing, np.zeros(0), np.zeros(0)).distribution == pytest.approx(np.full(24, 1 / 24))
    single = compile_workload([Marginal(("a",))], Schema.from_json('{"a": 1}'))
    assert fit(single, np.array([3.7]), np.array([0.5])).answers.tolist() == [1.0]


@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan])
def test_what_cannot_be_fitted_is_refused(variance: float) -> None:
    compiled = compile_workload([Marginal(("a",))], SCHEMA)
    with pytest.raises(ValueError, match="variances"):
        fit(compiled, np.zeros(3), np.array([1.0, variance, 1.0]))
    with pytest.raises(ValueError, match="3 numbers"):
        fit(compiled, np.zeros(2), np.ones(2))
