"""Every plan charges the cutting of every sampler that its run draws from: total variation in both laws."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest
from harness import mechanism_cases as cases
from numpy.typing import NDArray

from equipoise.accounting import ApproximateDpEvent, events_from_json, repair_places_delta
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session, analyst_parts, data_parts
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.histogram.plan import BEYOND
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online_private.mechanism import OnlinePrivate, sizes
from equipoise_server.mechanisms.registry import MECHANISMS
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace
from equipoise_server.randomness.stream import KeyedStream

SESSION = PublicParameters(
    records=100_000,
    universe_size=16,
    shares=(Share("alice", 200, 800), Share("bob", 200, 800)),
    unit="query",
    data_budget=Budget(1.0, 1e-6),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    options={"length": 300, "epochs": 4, "target": 60, "beyond": 200},
)


@dataclass
class Drawn:
    """How many numbers were drawn from each law."""

    laplace: dict[DiscreteLaplace, int] = field(default_factory=dict)
    gaussian: dict[DiscreteGaussian, int] = field(default_factory=dict)

    @property
    def cut(self) -> Fraction:
        """Their total variation, together: `2^-128` for each of a number's coins, and for what is cut."""
        return sum(
            (count * Fraction(2 * law.digits + 2, 2**128) for law, count in self.laplace.items()), Fraction(0)
        )


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """What is drawn while a test runs."""
    seen = Drawn()
    laplace, gaussian = DiscreteLaplace.draw, DiscreteGaussian.draw

    def drawing_laplace(self: DiscreteLaplace, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        seen.laplace[self] = seen.laplace.get(self, 0) + count
        return laplace(self, count, stream)

    def drawing_gaussian(self: DiscreteGaussian, count: int, stream: KeyedStream) -> NDArray[np.int64]:
        seen.gaussian[self] = seen.gaussian.get(self, 0) + count
        return gaussian(self, count, stream)

    monkeypatch.setattr(DiscreteLaplace, "draw", drawing_laplace)
    monkeypatch.setattr(DiscreteGaussian, "draw", drawing_gaussian)
    return seen


def charged(events: str) -> Fraction:
    """The delta of all parts."""
    return sum((part.amounts()[2] for part in events_from_json(events)), Fraction(0))


@pytest.mark.parametrize("unit", cases.UNITS)
@pytest.mark.parametrize("name", [name for name in cases.NAMES if name != "pooled"])
def test_what_a_round_draws_is_charged_for_being_cut(drawn: Drawn, name: str, unit: str) -> None:
    """`1 + e^s` times, for an `s` no less than the budget's epsilon: to the data, or to those whom it hides."""
    setting = replace(cases.setting_for(name, "a table", unit), beta=0.05)
    plan = MECHANISMS[name].plan(setting)
    case = cases.CASES["a table"]
    data = DenseCounts(case.histogram, setting.attributes)
    MECHANISMS[name].run(setting, plan, data, case.workloads, cases.SEED, lambda *_: None)
    least = drawn.cut * Fraction(1 + math.exp(min(setting.data_budget.epsilon, setting.analyst_budget.epsilon)))
    assert charged(plan.data_events) + charged(plan.analyst_events) >= least
    assert drawn.laplace or drawn.gaussian or name == "small_db"


@pytest.mark.parametrize("unit", cases.UNITS)
def test_the_game_s_draws_and_those_of_repair_are_charged_together(drawn: Drawn, unit: str) -> None:
    """In a game of two records most numbers are repair's; as all get places, all of them are the data's."""
    case, options = cases.CASES["a table"], {"rounds": 2, "batch": 1, "play": "mixed", "cut_off": 3}
    setting = replace(case.setting, unit=unit, options=options, beta=0.05)
    plan = MECHANISMS["equilibrium"].plan(setting)
    repair = json.loads(plan.parameters)["repair"]
    assert unit == "query" or repair["places"]["epsilon"] == "0"
    data = DenseCounts(case.histogram, setting.attributes)
    MECHANISMS["equilibrium"].run(setting, plan, data, case.workloads, cases.SEED, lambda *_: None)
    assert drawn.cut > Fraction(100, 2**128)
    least = (drawn.cut + Fraction(2, 2**128)) * Fraction(1 + math.exp(setting.data_budget.epsilon))
    assert charged(plan.data_events) >= least


def test_cells_whose_noise_is_cut_are_charged_for_it(drawn: Drawn) -> None:
    """Gaussian noise is drawn exactly, so all of the delta is for cutting it, on either side of either law."""
    setting = replace(cases.setting_for("histogram", "a table", "query"), beta=0.05, data_budget=Budget(1.0, 0.05))
    plan = MECHANISMS["histogram"].plan(setting)
    case = cases.CASES["a table"]
    data = DenseCounts(case.histogram, setting.attributes)
    MECHANISMS["histogram"].run(setting, plan, data, case.workloads, cases.SEED, lambda *_: None)
    assert drawn.gaussian
    assert not drawn.laplace
    assert charged(plan.data_events) >= 2 * setting.universe_size * BEYOND * Fraction(1 + math.e)
    assert plan.data_cost.delta > 0


def played(session: Session, parameters: EpochParameters) -> None:
    """All slots pass, and none is asked in."""
    Epochs(parameters, session.universe, session.slots, bytes(32)).finish()


def test_a_session_s_count_noise_is_charged_to_the_analysts_for_being_cut(drawn: Drawn) -> None:
    """A number for every slot, asked in or not, and one for the target of every epoch."""
    session, plan = sizes(SESSION), OnlinePrivate().plan(SESSION)
    parameters = EpochParameters.from_json(plan.parameters)
    played(session, parameters)
    assert drawn.laplace[parameters.count_noise] >= session.slots + 1
    count = session.slots + parameters.epochs
    cut = count * Fraction(2 * parameters.count_noise.digits + 2, 2**128)
    (slack,) = [part for part in analyst_parts(SESSION, session, parameters) if part.name == "samplers and caps"]
    assert isinstance(slack, ApproximateDpEvent)
    # Caps so far beyond the target are never met, but for much less than the samplers are cut by.
    far = replace(parameters, cap=parameters.target + 10**6)
    (alone,) = [part for part in analyst_parts(SESSION, session, far) if part.name == "samplers and caps"]
    assert isinstance(alone, ApproximateDpEvent)
    assert slack.delta > alone.delta >= cut * Fraction(1 + math.exp(SESSION.analyst_budget.epsilon))


def test_a_cap_that_may_be_met_in_any_epoch_is_charged_for_each() -> None:
    """A statement may fall into any of them, and each epoch's hard cap changes what others see by a chance."""
    session, plan = sizes(SESSION), OnlinePrivate().plan(SESSION)
    parameters = replace(EpochParameters.from_json(plan.parameters), epochs=4, target=60, cap=110)
    met = repair_places_delta(parameters.ending_epsilon, 50, SESSION.analyst_budget.epsilon)
    assert 0 < met < 1 / 4
    (part,) = [part for part in analyst_parts(SESSION, session, parameters) if part.name == "samplers and caps"]
    assert part.amounts()[2] >= 4 * Fraction(met)


def test_a_session_s_tests_are_charged_to_the_data_for_being_cut() -> None:
    session, plan = sizes(SESSION), OnlinePrivate().plan(SESSION)
    parameters = EpochParameters.from_json(plan.parameters)
    (slack,) = [part for part in data_parts(SESSION, session, parameters) if part.name == "samplers"]
    cut = session.statements * Fraction(2 * parameters.test_noise.digits + 2, 2**128)
    assert slack.amounts()[2] >= cut * Fraction(1 + math.exp(SESSION.data_budget.epsilon))
