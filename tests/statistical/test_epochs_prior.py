"""`online_private` from a prior: exact laws on both neighbour relations, and mutants.

The universe has two attributes of two categories, and the measurement tells one of them. Data: the law of the
measurement and of everything after it. Analysts: one statement is replaced, and all but its own answer is seen.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick
from numpy.typing import NDArray
from statistical.exact_epochs import Branches, EnumeratedEpochs, session_law

from equipoise.accounting import ZcdpEvent
from equipoise.accounting.residuals import PARAMETER_BITS
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import AllOf, Among, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.workload_compiler import compile_single
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.prior.measure import fitted_prior
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.residuals.direct import UniformReach
from equipoise_server.mechanisms.residuals.family import ResidualFamily
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.residuals.noise import ResidualNoise

SCHEMA = Schema((Attribute("a", ("0", "1")), Attribute("b", ("0", "1"))))
TOLD, BOTH = Among("a", ("0",)), AllOf((Among("a", ("0",)), Among("b", ("0",))))
WIDE = 1 << 40  # every interval of the measurement is narrow enough
VARIANCE = Fraction(1, 2)
PARAMETERS = PriorParameters.of(
    ResidualNoise.of(ResidualFamily.closed(SCHEMA.sizes, [(0,)]), (int(VARIANCE * 2**PARAMETER_BITS),))
)
MAX_INTEGER, LEFT_OUT = 6, 1e-6  # of the measured integers: those beyond are left out, and rarer
ORDERS = (1.25, 1.5, 2.0)
SETTING = PublicParameters(20, 4, (Share("a", 9, 9),), "query", Budget(5.0, 0.01), Budget(2.0, 0.01), 0.05, {})
SURE = Fraction(200)  # noise of this rate is 0


def parameters(**changed: object) -> EpochParameters:
    usual = EpochParameters(
        scale=Scale(3, 1),
        epochs=1,
        target=1,
        cap=1,
        ending_epsilon=SURE,
        records=0,
        step=0,
        threshold=1 << 16,
        test_epsilon=Fraction(1),
        noise=GaussianNoise(Fraction(2)),
        guard=0,
        certified_half_width=1,
        noise_half_widths=(1, 1),
    )
    return replace(usual, **changed)  # type: ignore[arg-type]


def known_from(numbers: NDArray[np.int64], records: int) -> MeasuredPrior:
    measured = Measured(PARAMETERS.noise, records, {(0,): numbers})
    reach = UniformReach(PARAMETERS.noise.family, Fraction(1, 10))
    return MeasuredPrior(fitted_prior(PARAMETERS, measured), measured, reach)


def starting_from(start: NDArray[np.int64]) -> type[EnumeratedEpochs]:
    class FromPrior(EnumeratedEpochs):
        def __init__(self, parameters: EpochParameters, universe: int, slots: int, branches: Branches) -> None:
            super().__init__(parameters, universe, slots, branches)
            self._multiset = start

    return FromPrior


@cache
def law(histogram: tuple[int, ...], asked: tuple[Predicate, ...]) -> Law:
    """Of what was measured, and of all answers; the first attribute's residual is `2 x - n`."""
    counts = np.array(histogram, dtype=np.int64)
    records, found = int(counts.sum()), dict[tuple[int, ...], float]()
    exact = 2 * counts.reshape(2, 2).sum(axis=1) - records
    weights = {z: math.exp(-z * z / (2 * float(VARIANCE))) for z in range(-20, 21)}
    total = sum(weights.values())
    for numbers in itertools.product(range(-MAX_INTEGER, MAX_INTEGER + 1), repeat=2):
        known = known_from(np.array(numbers), records)
        questions: list[Question | None] = [
            LinearQuestion(compile_single(each, SCHEMA), DenseCounts(counts, SCHEMA.sizes), records, (known, WIDE))
            for each in asked
        ]
        kind = starting_from(known.prior.weights >> 12)
        chance = math.prod(weights[z] / total for z in (np.array(numbers) - exact).tolist())
        for told, part in session_law(parameters(), 4, questions, kind=kind).items():
            key = (*numbers, *told)
            found[key] = found.get(key, 0.0) + chance * part
    return found


def divergence(one: Law, other: Law, order: float) -> float:
    assert one.keys() == other.keys()
    assert math.fsum(one.values()) == pytest.approx(1, abs=LEFT_OUT)
    logs = [order * math.log(one[key]) + (1 - order) * math.log(other[key]) for key in one if one[key] > 1e-300]
    return (max(logs) + math.log(math.fsum(math.exp(each - max(logs)) for each in logs))) / (order - 1)


def test_a_moved_record_shows_no_more_than_measurement_tests_and_answers_are_charged() -> None:
    asked = (BOTH, TOLD)
    session = Session(4, Scale(3, 1), 2, 2, 2, 2)
    rest = data_parts(SETTING, session, parameters())
    laws = law((2, 0, 1, 0), asked), law((1, 0, 2, 0), asked)
    for order in ORDERS:
        charged = sum(float(part.divergence(Fraction(order))[0]) for part in (*PARAMETERS.events(), *rest))
        assert max(divergence(*laws, order), divergence(laws[1], laws[0], order)) <= charged


def test_a_prior_that_is_not_charged_is_caught() -> None:
    """What the measurement tells is all that is seen, and most of its charge shows."""
    laws, prior = (law((2, 0, 1, 0), (TOLD,)), law((1, 0, 2, 0), (TOLD,))), PARAMETERS.events()[0]
    assert isinstance(prior, ZcdpEvent)
    assert all(0.9 * order * prior.rho <= divergence(*laws, order) <= order * prior.rho for order in ORDERS)


DATA = np.array([12, 1, 0, 7], dtype=np.int64)  # the prior holds 6.5 in the first cell
NEVER = AllOf((Among("a", ("0", "1")), Among("b", ("0", "1"))))
FIRST: tuple[Predicate | None, ...] = (TOLD, BOTH, NEVER, None)
KNOWN = known_from(np.array([6, -6]), int(DATA.sum()))
UNIFORM = np.ones(4, dtype=np.int64)
ENDS = parameters(
    scale=Scale(20, 1),
    cap=99,
    ending_epsilon=Fraction(1),
    test_epsilon=SURE,
    noise=GaussianNoise(Fraction(1, 10**6)),
    threshold=1 << 15,
)


def seen_by_others(first: Predicate | None, start: NDArray[np.int64]) -> Law:
    asked = [first, BOTH, TOLD, BOTH]
    data, records = DenseCounts(DATA, SCHEMA.sizes), int(DATA.sum())
    questions: list[Question | None] = [
        None if each is None else LinearQuestion(compile_single(each, SCHEMA), data, records, (KNOWN, WIDE))
        for each in asked
    ]
    return session_law(ENDS, 4, questions, hidden=0, kind=starting_from(start))


def test_a_statement_shows_no_more_than_the_end_of_the_epoch() -> None:
    laws = [seen_by_others(first, KNOWN.prior.weights >> 12) for first in FIRST]
    lost = max(hockey_stick(one, other, 1.0) for one, other in itertools.permutations(laws, 2))
    assert lost <= 1e-7
    assert max(hockey_stick(one, other, 0.5) for one, other in itertools.permutations(laws, 2)) > 0.01
    # Whether the measurement tells a statement is not seen: it is like one that is never positive.
    assert hockey_stick(laws[0], laws[3], 0.0) <= 1e-12


def test_a_prior_that_depends_on_a_statement_is_caught() -> None:
    one, other = seen_by_others(TOLD, KNOWN.prior.weights >> 12), seen_by_others(BOTH, UNIFORM)
    assert max(hockey_stick(one, other, 5.0), hockey_stick(other, one, 5.0)) > 0.5
