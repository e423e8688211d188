"""What persons with several records lose, by exact enumeration over tiny tables, against what they are charged.

A table is a few persons, each with rows of a universe of a few records. A neighbour has one other person in its
place, with any rows. Nothing here is random beyond fixed seeds, so there are no false alarms. What is charged for
one replaced record alone must be exceeded in the worst case: otherwise the factor would not be needed.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from harness.exact_game import Law, game_of, masks_workload, released_law
from numpy.typing import NDArray
from statistical.exact_sparse_vector import pattern_law
from statistical.extreme_games import ORDERS, ROUNDING, both_ways, parameters, size_of

from equipoise.accounting import ApproximateDpEvent, PureDpEvent, ZcdpEvent, events_from_json, residuals_rho
from equipoise.accounting.residuals import Residual
from equipoise.model.accounts import Budget
from equipoise.model.persons import PersonMode, Persons
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.datasets.persons.dealing import PersonRows, dealt
from equipoise_server.mechanisms.equilibrium.cost_model import data_rho
from equipoise_server.mechanisms.independent_noise.mechanism import GAUSSIAN, LAPLACE
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import person_events, planned_starts
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

PURE = PureDpEvent | ApproximateDpEvent  # what Laplace noise is charged as
SIZES = (2, 2)  # of the rows' attributes
LIMIT = 3  # rows of a person
MODES = [
    Persons(PersonMode.EVENTS, 1),
    Persons(PersonMode.EVENTS, 2),
    Persons(PersonMode.EVENTS, 3),
    Persons(PersonMode.AVERAGE, 2),
    Persons(PersonMode.AVERAGE, 3),
    Persons(PersonMode.ONE),
]
every_mode = pytest.mark.parametrize("persons", MODES, ids=lambda each: f"{each.mode}-{each.records}")


def tables_of_a_person(persons: Persons) -> NDArray[np.int64]:
    """The records of one person, for all rows that it may have: int64[tables, 3, 3], the last one of nothing."""
    rows = list(itertools.product(*map(range, SIZES)))
    found = set()
    for count in range(1, LIMIT + 1):
        for chosen in itertools.combinations_with_replacement(rows, count):
            for name in ("ann", "bob", "cyd"):
                own = PersonRows([name], np.zeros(count, np.int64), np.array(chosen), np.ones(count, np.int64))
                records, counts = dealt(own, persons)
                table = np.zeros((3, 3), dtype=np.int64)
                np.add.at(table, tuple(records.T), counts)
                table[2, 2] = persons.records - table.sum()
                found.add(table.tobytes())
    return np.array([np.frombuffer(each, dtype=np.int64).reshape(3, 3) for each in sorted(found)])


def moves(persons: Persons) -> NDArray[np.int64]:
    """By what replacing a person can move a table, int64[pairs, 3, 3]."""
    own = tables_of_a_person(persons)
    return np.asarray((own[:, None] - own[None, :]).reshape(-1, 3, 3))


@pytest.mark.thin(3)
@every_mode
def test_a_person_has_all_of_its_records_and_they_reach_as_far_as_is_charged(persons: Persons) -> None:
    own = tables_of_a_person(persons)
    assert (own >= 0).all()
    assert (own.sum(axis=(1, 2)) == persons.records).all()
    cells = np.abs(moves(persons)).sum(axis=(1, 2))
    assert cells.max() == 2 * persons.records
    for mask in range(1, 1 << 4):  # predicates over the rows' universe
        chosen = np.array([[mask >> 2 * x + y & 1 if x < 2 and y < 2 else 0 for y in range(3)] for x in range(3)])
        assert np.abs((moves(persons) * chosen).sum(axis=(1, 2))).max() <= persons.records


def plan_of(name: str, persons: Persons) -> tuple[MechanismPlan, NoiseParameters]:
    """A round of one marginal over both attributes, on 60 persons."""
    mechanism = {"gaussian": GAUSSIAN, "laplace": LAPLACE}[name]
    shares, budget = (Share("a", 1, 9, 2),), Budget(2.0, 1e-6)
    setting = PublicParameters(
        60 * persons.records, 9, shares, "query", budget, budget, 0.05, {}, (3, 3), person_records=persons.records
    )
    plan = planned_starts(mechanism, setting)[0].plan
    return plan, NoiseParameters.from_json(plan.parameters)


@every_mode
def test_laplace_noise_costs_persons_what_it_is_charged(persons: Persons) -> None:
    plan, noise = plan_of("laplace", persons)
    charged = next(part.epsilon for part in events_from_json(plan.data_events) if isinstance(part, PURE))
    rate = Fraction(noise.noise.epsilon) / noise.l1_sensitivity  # type: ignore[union-attr]
    # The likelihood ratio of discrete Laplace noise moved by m is at most e^(rate |m|), and reaches it.
    worst = max(int(np.abs(move).sum()) for move in moves(persons)) * rate
    assert worst <= charged
    assert worst > Fraction(99, 100) * charged
    if persons.records > 1:
        assert worst > charged / persons.records


@every_mode
def test_gaussian_noise_costs_persons_what_it_is_charged(persons: Persons) -> None:
    plan, noise = plan_of("gaussian", persons)
    (answers,) = (part for part in events_from_json(plan.data_events) if isinstance(part, ZcdpEvent))
    variance = noise.noise.variance * noise.l1_sensitivity  # type: ignore[union-attr]
    squares = (moves(persons) ** 2).sum(axis=(1, 2))
    law = DiscreteGaussian(variance)
    for order in (1.5, 2.0, 8.0):
        leaked = sum(_renyi_of_moved(law, int(each), order) for each in moves(persons)[squares.argmax()].flat)
        assert leaked <= order * float(answers.rho) * (1 + 1e-9)
        assert leaked > 0.97 * order * float(answers.rho)
        if persons.records > 1:
            assert leaked > order * float(answers.rho) / persons.records**2


def _renyi_of_moved(law: DiscreteGaussian, move: int, order: float) -> float:
    variance = float(law.variance)
    reach = int(40 * math.sqrt(variance)) + abs(move)
    places = np.arange(-reach, reach + 1, dtype=np.float64)
    here, moved = (-(each**2) / 2 / variance for each in (places, places - move))
    whole = np.log(np.exp(here).sum())
    return float(np.log(np.exp(order * (here - whole) + (1 - order) * (moved - whole)).sum()) / (order - 1))


RESIDUALS: dict[Residual, int] = {((0, 1),): 5 << 10, ((1, 1),): 40 << 10, ((0, 1), (1, 1)): 300 << 10}


@pytest.mark.thin(2)
@every_mode
@pytest.mark.parametrize("ordered", [(False, False), (True, False), (True, True)])
def test_residuals_cost_persons_what_they_are_charged(persons: Persons, ordered: tuple[bool, bool]) -> None:
    """By convexity: a person is M times a mean of records, so M equal ones cost the most."""
    sizes = (3, 3)
    measured = dict(RESIDUALS) | ({((0, 2),): 7 << 10} if ordered[0] else {})
    maps = {axis: _levels(ordered[axis]) for axis in (0, 1)}
    rho = residuals_rho(sizes, ordered, measured)
    (charged,) = person_events([ZcdpEvent("residuals", Fraction(rho))], persons.records, 1.0)
    costs = []
    for move in moves(persons):
        cost = 0.0
        for residual, parameter in measured.items():
            levels = dict(residual)
            numbers = maps[0][levels.get(0, 0)] @ move @ maps[1][levels.get(1, 0)].T
            cost += float((numbers**2).sum()) / (2 * parameter / 1024)
        costs.append(cost)
    assert max(costs) <= float(charged.amounts()[0])
    if persons.records > 1:
        assert max(costs) > rho


def _levels(ordered: bool) -> list[NDArray[np.int64]]:
    """The maps of one axis of three categories, as `accounting.residuals` describes them."""
    every = np.ones((1, 3), dtype=np.int64)
    if not ordered:
        return [every, 3 * np.eye(3, dtype=np.int64) - 1]
    return [every, np.array([[1, 1, -1]]), np.array([[1, -1, 0]])]


@pytest.mark.parametrize("records", [6, 16])
def test_a_sparse_vector_costs_persons_what_it_is_charged(records: int) -> None:
    """Scores move by at most as many records as a person has, each as it likes."""
    epsilon, places = Fraction(1, 2), 1
    vector = SparseVector(epsilon, 1, 4, places)
    (charged,) = person_events([PureDpEvent("detection", epsilon, places)], records, 1.0)
    assert isinstance(charged, PureDpEvent)
    worst = 0.0
    for scores in ((0, 4, 4), (4, 4, 4), (4, 8, 20), (0, 0, 0), (-10, -10, 10)):
        law = pattern_law(vector, scores, places)
        for move in itertools.product((-records, 0, records), repeat=3):
            near = pattern_law(vector, tuple(np.add(scores, move).tolist()), places)
            worst = max(worst, *(abs(math.log(law[each] / near[each])) for each in law))
    assert worst <= float(charged.epsilon * charged.times) + ROUNDING
    assert worst > float(epsilon * places)


@pytest.mark.thin(2)
@pytest.mark.parametrize("play", ["mixed", "sampled"])
@pytest.mark.parametrize("records", [2, 3])
def test_the_game_costs_persons_what_it_is_charged(play: str, records: int) -> None:
    """All neighbours in which one person's records, all of a table but one, become any others."""
    game = parameters(play, 3, 1, 2 if play == "sampled" else 1, 1.5, 1.5, 1.5, records + 1)
    rho = data_rho(game, size_of(records + 1, 3, 3))
    (charged,) = person_events([ZcdpEvent("game", Fraction(rho))], records, 1.0)
    workload = masks_workload([1, 2, 5], 3)
    kept = np.array([0, 0, 1])
    people = [np.bincount(each, minlength=3) for each in itertools.combinations_with_replacement(range(3), records)]
    laws: list[Law] = [released_law(game_of(game, workload, (kept + own).astype(np.int64)), 3) for own in people]
    worst = 0.0
    for law, near in itertools.combinations(laws, 2):
        for order in ORDERS:
            leaked = both_ways(law, near, order)
            assert leaked <= order * float(charged.amounts()[0]) + ROUNDING
            worst = max(worst, leaked / order)
    alone = [both_ways(one, other, 2.0) / 2 for (_, one), (_, other) in _one_record_apart(people, laws)]
    assert worst > 1.5 * max(alone)


def _one_record_apart(
    people: list[NDArray[np.int64]], laws: list[Law]
) -> list[tuple[tuple[NDArray[np.int64], Law], tuple[NDArray[np.int64], Law]]]:
    pairs = itertools.combinations(zip(people, laws, strict=True), 2)
    return [(one, other) for one, other in pairs if np.abs(one[0] - other[0]).sum() == 2]
