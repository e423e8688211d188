"""`multiplicative_weights` from a prior: the exact law of what is measured and selected, and what others see."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from harness.answers import to_bytes
from harness.exact_game import Law
from harness.exponential_law import exponential_law
from numpy.typing import NDArray
from statistical.measured_attribute import support_at

from equipoise.accounting import PrivacyEvent
from equipoise.accounting.residuals import PARAMETER_BITS
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import Share
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.multiplicative_weights import mechanism, turns
from equipoise_server.mechanisms.multiplicative_weights.mechanism import Known, MultiplicativeWeights
from equipoise_server.mechanisms.multiplicative_weights.prior_plan import (
    PriorWeightsParameters,
    plan_from_prior,
    prior_events,
)
from equipoise_server.mechanisms.multiplicative_weights.turns import learn_in_turns
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.mechanisms.prior.choice import OWN
from equipoise_server.mechanisms.prior.measure import fitted_prior
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema((Attribute("a", ("0", "1")), Attribute("b", ("0", "1"))))
BOTH, ONE = AllOf((Among("a", ("0",)), Among("b", ("0",)))), Among("b", ("0",))
WORKLOAD = compile_workload([BOTH, ONE], SCHEMA)
NEAR, FAR = (2, 0, 1, 0), (1, 0, 2, 0)
MAX_INTEGER = 6  # of the measured integers: those beyond are left out
ORDERS = (1.25, 1.5, 2.0)  # whose moments lie within the integers that are kept
LEFT_OUT = 1e-6  # and rarer than this
VARIANCE, ANSWER = Fraction(1, 2), Fraction(1, 2)
SETTING = PublicParameters(
    records=3,
    universe_size=4,
    shares=(Share("a", 2, 2),),
    unit="query",
    data_budget=Budget(8.0, 0.01),
    analyst_budget=Budget(math.inf, 0.0),
    beta=0.1,
    options={"rounds": 1, "prior": "own"},
    attributes=SCHEMA.sizes,
)


@cache
def parameters() -> PriorWeightsParameters:
    """One turn after a measurement of one attribute."""
    noise = ResidualNoise.of(ResidualFamily.closed(SCHEMA.sizes, [(0,)]), (int(VARIANCE * 2**PARAMETER_BITS),))
    return replace(
        plan_from_prior(SETTING, OWN),
        prior=PriorParameters.of(noise),
        select_epsilon=Fraction(1),
        noise=GaussianNoise(ANSWER),
    )


def gaussian(variance: Fraction) -> dict[int, float]:
    weights = {z: math.exp(-z * z / (2 * float(variance))) for z in range(-20, 21)}
    return {z: weight / sum(weights.values()) for z, weight in weights.items()}


def selection(numbers: NDArray[np.int64], histogram: NDArray[np.int64], places: tuple[int, ...]) -> list[float]:
    """The law of the shipped turn's selection, from the prior that is fitted to these numbers."""
    measured, seen = Measured(parameters().prior.noise, 3, {(0,): numbers}), list[NDArray[np.int64]]()
    support = support_at(SCHEMA.sizes, places)

    def draw(exponents: NDArray[np.int64], *_: object) -> NDArray[np.int64]:
        seen.append(exponents)
        return np.zeros(1, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(turns, "draw_exponential", draw)
        prior = fitted_prior(parameters().prior, measured, support)
        stream, queries = KeyedStream.derive(bytes(32), "test"), support.queries(WORKLOAD)
        learn_in_turns(parameters(), queries, WORKLOAD.counts(histogram), 3, prior.potential, stream)
    return [float(chance) for chance in exponential_law(seen[0])]


@cache
def law(table: tuple[int, ...], places: tuple[int, ...]) -> Law:
    """Of what was measured, which statement was selected, and its noisy count; the residual is `2 x - n`."""
    histogram, found = np.array(table, dtype=np.int64), dict[tuple[int, ...], float]()
    exact = 2 * histogram.reshape(2, 2).sum(axis=1) - 3
    masses, answers = gaussian(VARIANCE), gaussian(ANSWER)
    for drawn in itertools.product(range(-MAX_INTEGER, MAX_INTEGER + 1), repeat=2):
        numbers = np.array(drawn)
        chance = math.prod(masses[z] for z in (numbers - exact).tolist())
        for statement, chosen in enumerate(selection(numbers, histogram, places)):
            count = int(WORKLOAD.counts(histogram)[statement])
            for noisy in range(-MAX_INTEGER, MAX_INTEGER + 3):
                found[(*drawn, statement, noisy)] = chance * chosen * answers[noisy - count]
    return found


def used(events: list[PrivacyEvent], places: tuple[int, ...] = ()) -> float:
    """The part of what is charged that the laws show, at the order that shows most; `places`: of a support."""
    worst, (near, far) = 0.0, (law(each, places) for each in (NEAR, FAR))
    for one, other in ((near, far), (far, near)):
        assert math.fsum(one.values()) == pytest.approx(1, abs=LEFT_OUT)
        for order in ORDERS:
            logs = [order * math.log(one[key]) + (1 - order) * math.log(other[key]) for key in one]
            moment = max(logs) + math.log(math.fsum(math.exp(each - max(logs)) for each in logs))
            charged = sum(float(event.divergence(Fraction(order))[0]) for event in events)
            worst = max(worst, moment / (order - 1) / charged)
    return worst


def charged_parts() -> list[PrivacyEvent]:
    """The charge without that of the final test, which the laws do not have."""
    return [event for event in prior_events(SETTING, parameters()) if event.name not in ("final tests", "samplers")]


@pytest.mark.nightly
@pytest.mark.parametrize("places", [(), (0, 3, 3), (1,)])
def test_a_record_shows_no_more_than_measurement_selection_and_answer_are_charged(places: tuple[int, ...]) -> None:
    """Over the universe, and over supports that lack records of the table."""
    assert {event.name for event in charged_parts()} == {"prior", "selections", "answers"}
    assert 0.6 <= used(charged_parts(), places) <= 1


@pytest.mark.sparse(6)
@pytest.mark.full
@pytest.mark.parametrize("places", [(), (0, 3, 3), (1,)])
@pytest.mark.parametrize("name", ["prior", "answers"])
def test_a_part_that_is_not_charged_is_caught(name: str, places: tuple[int, ...]) -> None:
    assert used([event for event in charged_parts() if event.name != name], places) > 1


WIDE = Schema(tuple(Attribute(name, ("0", "1", "2")) for name in "abc"))
RECORDS = 20_000
TABLE = np.random.default_rng(4).multinomial(RECORDS, np.arange(1, 28) / 378).astype(np.int64)
BEN: list[Statement] = [Marginal(("a", "b", "c")), AllOf((Among("a", ("0", "1")), Among("c", ("2",))))]
ANA: list[list[Statement]] = [[], [Among("a", ("0",))], [Marginal(("a", "b", "c"))]]


def what_ben_gets(asked_by_ana: list[Statement]) -> bytes:
    shares = (Share("ana", 2, 30), Share("ben", 2, 30))
    public = replace(
        SETTING,
        records=RECORDS,
        universe_size=27,
        shares=shares,
        attributes=WIDE.sizes,
        data_budget=Budget(1.0, 1e-9),
        options={"rounds": 2, "prior": "own"},
    )
    asked: Mapping[str, CompiledWorkload] = {
        "ana": compile_workload(asked_by_ana, WIDE),
        "ben": compile_workload(BEN, WIDE),
    }
    weights = MultiplicativeWeights()
    plan = weights.plan(public)
    data = DenseCounts(TABLE, WIDE.sizes)
    return to_bytes(weights.run(public, plan, data, asked, bytes(32), lambda *_: None).answers["ben"])


def test_an_analyst_shows_another_nothing_and_a_prior_that_was_moved_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Turns that learn in the place of the prior itself, from which the next analyst's start."""

    learn = mechanism.learn_from_prior

    def in_place(
        parameters: PriorWeightsParameters,
        known: Known,
        workload: CompiledWorkload,
        data: DenseCounts,
        stream: KeyedStream,
    ) -> Answers:
        answers = learn(parameters, known, workload, data, stream)
        known.prior.potential[::2] -= 1 << 50  # by 4 nats, as much as one tilt may
        return answers

    assert len({what_ben_gets(asked) for asked in ANA}) == 1
    monkeypatch.setattr(mechanism, "learn_from_prior", in_place)
    assert len({what_ben_gets(asked) for asked in ANA}) > 1


def test_the_noise_that_is_drawn_is_that_of_the_law() -> None:
    """What the enumeration takes for the noise of a measured count."""
    drawn = DiscreteGaussian(ANSWER).law()
    for value in range(-8, 9):
        assert float(drawn[value]) == pytest.approx(gaussian(ANSWER)[value], abs=1e-12)
