"""What noisy answers really cost, from the exact law of their noise, against what is charged for them.

Renyi and hockey-stick divergences between the answers on neighbouring tables are sums over the laws.
Noise that is too small by a tenth, and a marginal taken for as sensitive as a column of it, must be caught.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import chi2

from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.conversion import delta_of_rho
from equipoise_server.mechanisms.noise_calibration import AnswerNoise, GaussianNoise, LaplaceNoise
from equipoise_server.mechanisms.repair.statement_repair import RepairParameters, SynopsisCounts, repair
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

RHO = Fraction(1, 8)
NOISES: list[AnswerNoise] = [GaussianNoise.within(RHO), LaplaceNoise.within(RHO)]
SCHEMA = Schema((Attribute("a", ("0", "1", "2")), Attribute("b", ("0", "1"))))
STATEMENTS: list[Statement] = [Among("a", ("1",)), Marginal(("a", "b"))]


def moves(statement: int) -> set[tuple[int, ...]]:
    """How the counts of a statement move, over all neighbouring tables of three records; zeros left out."""
    workload = compile_workload(STATEMENTS, SCHEMA)
    cells = slice(*workload.statement_offsets[statement : statement + 2].tolist())
    found = set()
    for first, second in product(range(SCHEMA.universe_size), repeat=2):
        before, after = (np.bincount([0, 1, cell], minlength=SCHEMA.universe_size) for cell in (first, second))
        moved = (workload.counts(after) - workload.counts(before))[cells]
        found.add(tuple(int(move) for move in moved if move))
    return found


def law_of(noise: AnswerNoise, moved: int) -> dict[int, Fraction]:
    law = noise.law(moved)
    assert isinstance(law, DiscreteGaussian | DiscreteLaplace)
    return law.law()


def renyi(law: dict[int, Fraction], move: int, order: int) -> float:
    """Renyi divergence of the law from itself moved; what its list leaves out has no weight in floating point."""
    logs = {z: math.log(mass.numerator) - math.log(mass.denominator) for z, mass in law.items() if mass}
    terms = [order * log - (order - 1) * logs[z - move] for z, log in logs.items() if z - move in logs]
    return math.log(math.fsum(map(math.exp, terms))) / (order - 1)


def hockey_stick(law: dict[int, Fraction], moved: Sequence[int], epsilon: float) -> float:
    """Hockey-stick divergence of independent noise on all counts that move, from itself moved."""
    here = there = np.ones(1)
    for move in moved:
        here = np.multiply.outer(here, [float(mass) for mass in law.values()]).ravel()
        there = np.multiply.outer(there, [float(law.get(z - move, 0)) for z in law]).ravel()
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum())


def costs_more_than_charged(noise: AnswerNoise, law: dict[int, Fraction], statement: int) -> bool:
    """Whether some neighbours and some order show a greater Renyi divergence than the charge allows."""
    charged = float(noise.rho(1))
    return any(
        sum(renyi(law, move, order) for move in moved) > order * charged * (1 + 1e-9)
        for moved in moves(statement)
        for order in (2, 3, 8)
    )


def test_tables_move_as_assumed() -> None:
    assert moves(0) == {(), (1,), (-1,)}
    assert moves(1) == {(), (1, -1), (-1, 1)}
    workload = compile_workload(STATEMENTS, SCHEMA)
    for statement in (0, 1):
        worst = max(sum(move**2 for move in moved) for moved in moves(statement))
        assert workload.statement_sensitivity(statement) == worst


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("statement", [0, 1])
def test_no_divergence_exceeds_its_charge(noise: AnswerNoise, statement: int) -> None:
    law = law_of(noise, statement + 1)
    assert not costs_more_than_charged(noise, law, statement)
    for moved in moves(statement):
        for epsilon in (0.1, 0.5, 1.0):
            assert hockey_stick(law, moved, epsilon) <= delta_of_rho(float(noise.rho(1)), epsilon)


def test_gaussian_noise_uses_its_whole_charge() -> None:
    noise = GaussianNoise.within(RHO)
    assert RHO * (1 - Fraction(1, 10**6)) < noise.rho(1) <= RHO
    for statement, moved in ((0, (1,)), (1, (1, -1))):
        law = law_of(noise, statement + 1)
        assert sum(renyi(law, move, 2) for move in moved) > 2 * float(noise.rho(1)) * (1 - 1e-9)


@pytest.mark.parametrize("statement", [0, 1])
def test_noise_too_small_by_a_tenth_is_caught(statement: int) -> None:
    gaussian, laplace = GaussianNoise.within(RHO), LaplaceNoise.within(RHO)
    smaller = DiscreteGaussian(gaussian.variance * (statement + 1) * Fraction(81, 100))
    assert costs_more_than_charged(gaussian, smaller.law(), statement)
    law = DiscreteLaplace(laplace.epsilon / (statement + 1) * Fraction(10, 9)).law()
    worst = math.log(law[0] / law[1]) * (statement + 1)
    assert worst > float(laplace.epsilon) * 1.1


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
def test_a_marginal_taken_for_a_column_is_caught(noise: AnswerNoise) -> None:
    # Adding a record moves one cell by one; replacing it moves two.
    assert costs_more_than_charged(noise, law_of(noise, 1), 1)


@pytest.mark.parametrize("noise", [GaussianNoise.within(Fraction(1, 10**4)), LaplaceNoise.within(Fraction(1, 200))])
def test_repair_adds_the_noise_that_is_charged(noise: AnswerNoise) -> None:
    # Every statement is answered afresh, and the sizes of all noises add up to what their law says. Over random
    # seeds each of the four comparisons raises a false alarm with probability at most 10^-6.
    sizes = (20, 20)
    schema = Schema(tuple(Attribute(name, tuple(map(str, range(20)))) for name in ("a", "b")))
    statements = [Among("a", (str(v % 20), str((v + 1 + v // 20) % 20))) for v in range(360)]
    workload = compile_workload([*statements, Marginal(("a", "b"))], schema)
    histogram = np.full(sizes, 10_000).ravel()
    counts, records = workload.counts(histogram), int(histogram.sum())
    half_width = 1 << 30
    parameters = RepairParameters(
        -(1 << 60), Fraction(1), noise, {"x": 361}, half_width, (half_width, half_width + 1)
    )
    answers = repair(parameters, "x", workload, counts, records, SynopsisCounts(counts, records), bytes(32))
    assert np.all(answers.methods == noise.method)
    assert np.all((answers.highs - answers.lows)[:360] == 2 * half_width)
    assert np.all((answers.highs - answers.lows)[360:] == 2 * half_width + 2)
    # Values are rounded down to 2^-40, so the count they came from is the nearest one.
    drawn = np.round(answers.values * (records / 2**40)) - counts
    for own, moved in ((drawn[:360], 1), (drawn[360:], 2)):
        if isinstance(noise, GaussianNoise):
            spread = float(np.sum(own**2)) / float(noise.variance * moved)
            degrees = len(own)
        else:  # twice a Laplace size over its scale has the chi-square law of 2 degrees, up to the grid
            spread = 2 * float(np.sum(np.abs(own))) * float(noise.epsilon / moved)
            degrees = 2 * len(own)
        assert 1e-6 / 2 < float(chi2.cdf(spread, degrees)) < 1 - 1e-6 / 2
