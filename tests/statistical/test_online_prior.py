"""`online` from a prior on neighbouring tables: the exact law of the measurement and of all that is told after it.

The universe has two attributes of two categories, and the measurement tells one of them. After a standing
measurement, which was charged when it was made, the session's own charge bounds the law of what is told.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from hashlib import sha256

import numpy as np
import pytest
from harness.exact_game import Law
from numpy.typing import NDArray
from statistical.exact_online import session_law
from statistical.exact_pipeline import SEED, Pair
from statistical.measured_attribute import support_at

from equipoise.accounting import PrivacyEvent
from equipoise.accounting.residuals import PARAMETER_BITS
from equipoise.errors import BudgetExhausted
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import AllOf, Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedNumbers
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online import prior_plan
from equipoise_server.mechanisms.online.mechanism import Online, OnlineSession
from equipoise_server.mechanisms.online.prior_plan import PriorOnlineParameters, plan_from_prior, prior_events
from equipoise_server.mechanisms.prior import known_answers
from equipoise_server.mechanisms.prior.choice import OWN
from equipoise_server.mechanisms.prior.known_answers import MeasuredPrior
from equipoise_server.mechanisms.prior.measure import fitted_prior
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.residuals.direct import UniformReach
from equipoise_server.mechanisms.residuals.measurement import Measured

SCHEMA = Schema((Attribute("a", ("0", "1")), Attribute("b", ("0", "1"))))
BOTH = compile_single(AllOf((Among("a", ("0",)), Among("b", ("0",)))), SCHEMA)  # to be tested
ONE = compile_single(Among("a", ("0",)), SCHEMA)  # told by the measurement
NEAR, FAR = (2, 0, 1, 0), (1, 0, 2, 0)
MAX_INTEGER = 6  # of the measured integers: those beyond are left out
ORDERS = (1.25, 1.5, 2.0)  # whose moments lie within the integers that are kept
LEFT_OUT = 1e-6  # and rarer than this
SETTING = PublicParameters(
    records=3,
    universe_size=4,
    shares=(Share("a", 2, 2),),
    unit="query",
    data_budget=Budget(8.0, 0.01),
    analyst_budget=Budget(math.inf, 0.0),
    beta=0.1,
    options={"length": 2, "answers": "gaussian", "threshold": 0, "updates": 1},
    attributes=SCHEMA.sizes,
)


@dataclass(frozen=True)
class Instance:
    """A session, the variance of its measurement's integers, what is asked, and its support (`support_at`)."""

    variance: Fraction
    statements: tuple[str, ...]
    places: tuple[int, ...] = ()

    def parameters(self) -> PriorOnlineParameters:
        """The planned stages after a measurement of one attribute."""
        family = ResidualFamily.closed(SCHEMA.sizes, [(0,)])
        noise = ResidualNoise.of(family, (int(self.variance * 2**PARAMETER_BITS),))
        planned = plan_from_prior(SETTING, OWN)
        return PriorOnlineParameters(
            PriorParameters.of(noise), planned.chance, planned.measured_half_width, planned.stages
        )

    def events(self) -> list[PrivacyEvent]:
        """What is charged."""
        return prior_events(SETTING, self.parameters())

    @cache  # noqa: B019
    def law(self, histogram: tuple[int, ...]) -> Law:
        """Of what was measured, and of all that is told; the first attribute's residual is `2 x - n`."""
        parameters, counts = self.parameters(), np.array(histogram, dtype=np.int64)
        exact = 2 * counts.reshape(2, 2).sum(axis=1) - counts.sum()
        weights = {z: math.exp(-z * z / (2 * float(self.variance))) for z in range(-20, 21)}
        total, law = sum(weights.values()), dict[tuple[int, ...], float]()
        asked = [{"both": BOTH, "one": ONE}[name] for name in self.statements]
        for found in itertools.product(range(-MAX_INTEGER, MAX_INTEGER + 1), repeat=2):
            numbers, drawn = np.array(found), (np.array(found) - exact).tolist()
            measured = Measured(parameters.prior.noise, int(counts.sum()), {(0,): numbers})
            support = support_at(SCHEMA.sizes, self.places)
            known = MeasuredPrior(
                support,
                fitted_prior(parameters.prior, measured, support),
                measured,
                UniformReach(parameters.prior.noise.family, parameters.chance),
            )

            def start(known: MeasuredPrior = known) -> OnlineSession:
                data = DenseCounts(counts, SCHEMA.sizes)
                return OnlineSession(SETTING, parameters.stages, (known, parameters), data, SEED)

            chance = math.prod(weights[z] / total for z in drawn)
            for told, part in session_law(SETTING, start, asked).items():
                key = (*numbers.tolist(), *told)
                law[key] = law.get(key, 0.0) + chance * part
        return law

    def used(self, charged: float) -> float:
        """What part of a charge, in zCDP, the laws on neighbouring tables use, at the order that shows most."""
        worst = 0.0
        for one, other in ((self.law(NEAR), self.law(FAR)), (self.law(FAR), self.law(NEAR))):
            assert one.keys() == other.keys()
            assert math.fsum(one.values()) == pytest.approx(1, abs=LEFT_OUT)
            for order in ORDERS:
                logs = [order * math.log(one[key]) + (1 - order) * math.log(other[key]) for key in one]
                moment = max(logs) + math.log(math.fsum(math.exp(each - max(logs)) for each in logs))
                worst = max(worst, moment / (order - 1) / order)
        return worst / charged


WHOLE = Instance(Fraction(1, 2), ("both", "one"))
MEASUREMENT = Instance(Fraction(1, 2), ("one",))
OVER_SUPPORTS = [Instance(Fraction(1, 2), ("both", "one"), places) for places in ((0, 3, 3), (1,))]


SPLIT = [np.array(each) for each in ([3, -3], [0, 1], [-5, 2])]  # what a standing measurement may have told
KEPT = (NEAR, FAR)


def standing(numbers: NDArray[np.int64]) -> tuple[PublicParameters, PriorOnlineParameters]:
    """A session from a standing measurement of these numbers."""
    own = WHOLE.parameters()
    told = Measured(own.prior.noise, 3, {(0,): numbers}).to_bytes()
    prior = PriorParameters.of(own.prior.noise, ReleasedNumbers("a" * 32, sha256(told).digest()))
    return replace(SETTING, measured=told), replace(own, prior=prior)


def told_law(histogram: tuple[int, ...], numbers: NDArray[np.int64]) -> Law:
    """Of all that the shipped session tells after a standing measurement."""
    setting, parameters = standing(numbers)
    data = DenseCounts(np.array(histogram, dtype=np.int64), SCHEMA.sizes)
    plan = replace(Online().plan(SETTING), parameters=parameters.to_json())
    return session_law(setting, lambda: Online().start(setting, plan, data, SEED), [BOTH, ONE])


def told_used(charged: float) -> float:
    """What part of a charge, in zCDP, neighbouring tables use after what a standing measurement told."""
    worst = 0.0
    for numbers in SPLIT:
        laws = [told_law(each, numbers) for each in KEPT]
        if laws[0].keys() != laws[1].keys():
            return math.inf
        for one, other in ((laws[0], laws[1]), (laws[1], laws[0])):
            for order in ORDERS:
                moment = math.fsum(one[key] ** order * other[key] ** (1 - order) for key in one)
                worst = max(worst, math.log(moment) / (order - 1) / order)
    return worst / charged


def test_after_a_standing_measurement_a_moved_record_shows_no_more_than_the_session_is_charged() -> None:
    setting, parameters = standing(SPLIT[0])
    events = prior_events(setting, parameters)
    assert events == [event for event in prior_events(SETTING, WHOLE.parameters()) if event.name != "prior"]
    assert 0.1 < told_used(rho_of(events)) <= 1


def test_a_standing_measurement_that_is_quietly_made_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(prior: PriorParameters, setting: PublicParameters, data: Counts, seed: bytes) -> Measured:  # noqa: ARG001
        ((_, table),) = data.marginals([(0,)])
        return Measured(prior.noise, data.records, {(0,): 2 * table - data.records})

    monkeypatch.setattr(known_answers, "measured_for", again)
    assert told_used(rho_of(prior_events(*standing(SPLIT[0])))) > 1


def rho_of(events: list[PrivacyEvent]) -> float:
    return float(sum(event.amounts()[0] for event in events))


@pytest.mark.full
@pytest.mark.parametrize(
    "instance",
    [WHOLE, MEASUREMENT, *OVER_SUPPORTS],
    ids=["whole", "measurement alone", "a support without the table's records", "one record"],
)
def test_a_moved_record_shows_no_more_than_is_charged(instance: Instance) -> None:
    assert 0.2 < instance.used(rho_of(instance.events())) <= 1
    pair = Pair.of(instance.law(NEAR), instance.law(FAR))
    rho = rho_of(instance.events())
    for delta in (0.1, 0.01):
        assert pair.delta(rho + 2 * math.sqrt(rho * math.log(1 / delta))) <= delta


@pytest.mark.full
def test_a_prior_that_is_not_charged_is_caught() -> None:
    events = MEASUREMENT.events()
    assert MEASUREMENT.used(rho_of([event for event in events if event.name == "prior"])) <= 1
    assert MEASUREMENT.used(rho_of([event for event in events if event.name == "prior"])) > 0.9
    assert MEASUREMENT.used(rho_of([event for event in events if event.name == "samplers"]) + 1e-3) > 1


def test_stages_that_are_planned_without_the_prior_s_share_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = replace(SETTING, options={**SETTING.options, "prior": "own"})
    Online().plan(setting)
    stages = prior_plan._stages
    monkeypatch.setattr(
        prior_plan, "_stages", lambda setting, length, rho, count: stages(setting, length, 2 * rho, count)
    )
    with pytest.raises(BudgetExhausted):
        Online().plan(setting)
