"""A cap holds against every operator who chooses each round after seeing the results of all before it.

The rule that converts the sum of all rounds at whatever order is best afterwards is the reference that must fail:
so it is known that the attack would find a rule that is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from harness.adversary import (
    ROOM,
    Losses,
    Rule,
    Value,
    after_any_rounds,
    after_growing_rounds,
    all_rho,
    all_that_is_left,
    at_the_best_order_afterwards,
    by_ledger,
    growing,
    with_limits,
)
from harness.ledger_store import NOW, ledger_store, open_with
from scipy.special import logsumexp
from sqlalchemy import Connection

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    Cost,
    Mixture,
    PrivacyEvent,
    PureDpEvent,
    ThresholdTests,
    ZcdpEvent,
    charge_of,
    events_to_json,
)
from equipoise.errors import BudgetExhausted
from equipoise_server.conversion import epsilon_for, largest_rho
from equipoise_server.ledger import charges, journal
from equipoise_server.ledger.accounts import account
from equipoise_server.ledger.caps import Cap, Composition, at_order, limits
from equipoise_server.storage.store import Store

pytestmark = pytest.mark.slow

DELTA = 1e-6
HUGE = 100_000.0  # a Renyi order
NAMES = ("data/t", "analyst/t/analyst/ann")
PATHS, SIMULATED = 30_000, 20


@pytest.mark.sparse(4)
@pytest.mark.thin(12)
@pytest.mark.parametrize("rounds", [5, 10, 20, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("epsilon", "excess"), [(1.0, 1.2), (3.0, 1.35), (10.0, 1.4)])
def test_growing_rounds_and_a_last_one_break_the_best_order_afterwards_and_no_account(
    epsilon: float, excess: float, rounds: int
) -> None:
    """The operator spends all that is left, pure or with any part of delta, as soon as its luck is best."""
    plain = Cap(epsilon, DELTA)
    adding = at_order("cap", plain)
    broken = after_growing_rounds(
        at_the_best_order_afterwards(plain), plain, growing(plain, rounds, 3), Losses(epsilon, upwards=False)
    )
    assert broken > DELTA * (excess if rounds == 5 else 1.35 * excess)
    held = [
        after_growing_rounds(
            by_ledger(name, adding), adding, growing(adding, rounds, power), Losses(epsilon, True, points=1 << 14)
        )
        for name, power in zip(NAMES, (1, 3), strict=True)
    ]
    assert DELTA / 10 < max(held) <= DELTA


# As many rounds as losses can be rounded upwards for, so often and at that order.
@pytest.mark.sparse(8)
@pytest.mark.thin(10)
@pytest.mark.parametrize(
    ("order", "rounds"),
    [
        *((order, rounds) for order in (0.0, 50.0, HUGE) for rounds in (5, 20)),
        *(pytest.param(*each, marks=pytest.mark.full) for each in ((0.0, 10), (50.0, 10))),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((0.0, 100), (HUGE, 100))),
    ],
)
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_growing_rounds_break_no_account_at_any_order(
    epsilon: float, name: str, power: int, order: float, rounds: int
) -> None:
    """At 0 the usual order, of 4 to 25."""
    cap = at_order("cap", Cap(epsilon, DELTA), order)
    on = losses(cap, points=1 << (13 if rounds <= 20 else 16))
    assert DELTA / 10 < after_growing_rounds(by_ledger(name, cap), cap, growing(cap, rounds, power), on) <= DELTA


def losses(cap: Cap, points: int) -> Losses:
    """No course reaches more; but at a huge order only that no course is sure to.

    There a cap is all but pure, and leaves its conversion less room than a grid has between two losses.
    """
    return Losses(cap.epsilon, upwards=(cap.order or 0) < HUGE, points=points)


def sized(make: Callable[[Fraction], PrivacyEvent], order: float, divergence: Fraction) -> PrivacyEvent:
    """A part that counts nearly as much as this at the order, by a bisection of its own size."""
    low, high = Fraction(0), Fraction(1)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if counts(make(middle), order) <= divergence else (low, middle)
    return make(low)


def counts(part: PrivacyEvent, order: float) -> Fraction:
    return part.divergence(Fraction(order))[0]


def of_every_kind(cap: Cap) -> tuple[PrivacyEvent, ...]:
    """A third or a half of what fits, as every kind of part that a round is charged for."""
    order, left = cap.order or 0.0, ROOM * Fraction(limits(cap).divergence, RHO_UNIT)
    whole = Fraction(cap.epsilon), Fraction(0)  # the pair that is not used at an order
    return (
        sized(lambda size: ThresholdTests("tests and answers", 2, size, size**2 / 4, *whole), order, left / 3),
        sized(lambda size: ZcdpEvent("answers", size * left, 2), order, left / 2),
        sized(lambda size: PureDpEvent("tests", size * left, 3), order, left / 2),
        sized(lambda size: Mixture("game", 12, Fraction(1, 20), size, *whole), order, left / 3),
        ApproximateDpEvent("places", left / 4, Fraction(cap.delta) / 4),
    )


@pytest.mark.sparse(4)
@pytest.mark.thin(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", [0.0, *(pytest.param(each, marks=pytest.mark.full) for each in (50.0, HUGE))])
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_parts_of_every_kind_break_no_account(epsilon: float, order: float, name: str) -> None:
    """Pure tests, draws that rarely differ and tests against a threshold besides, chosen by all results so far."""
    cap = at_order("cap", Cap(epsilon, DELTA), order)
    tests, *others = of_every_kind(cap)
    # Nothing is known of large tests against a threshold at huge orders, and of small ones too many would fit.
    menu = others if order == HUGE else [tests, *others]
    assert all(counts(part, cap.order or 0) * RHO_UNIT > limits(cap).divergence / 20 for part in menu)
    held = after_any_rounds(by_ledger(name, cap), cap, menu, losses(cap, points=1 << 12))
    assert DELTA / 10 < held <= DELTA


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_where_the_worst_round_counts_no_course_tells_more_of_a_statement(epsilon: float) -> None:
    """Many rounds, each of which may spend all of the cap; a statement is in one, chosen after all results before.

    Nothing of it is in the results before its own round, so the most that is told of it is the most of any round.
    """
    cap = Cap(epsilon, DELTA)
    add, on = by_ledger("analyst/t/query/ann", cap), Losses(epsilon, upwards=True)
    whole = ROOM * Fraction(largest_rho(epsilon, DELTA), RHO_UNIT)
    # A little less than the cap's epsilon, so that losses may be rounded upwards.
    pair = ApproximateDpEvent("places", Fraction(epsilon) * Fraction(995, 1000), Fraction(DELTA) / 2)
    course: list[PrivacyEvent] = [ZcdpEvent("answers", whole), PureDpEvent("tests", whole / 4), pair] * 10
    total, told = Cost(), 0.0
    for part in course:
        grown = add(total, part)
        assert grown is not None
        total, told = grown, max(told, on.at_none(on.after(on.stop(), part)))
    assert DELTA / 10 < told <= DELTA
    assert add(total, replace(pair, delta=Fraction(DELTA) * 2)) is None
    assert add(total, ZcdpEvent("answers", whole * Fraction(1001, 1000))) is None
    doubled = on.at_none(on.after(on.after(on.stop(), course[0]), course[0]))
    assert doubled > 2 * DELTA  # were the statement in two rounds


@pytest.mark.sparse(3)
@pytest.mark.slow
@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_no_mixture_of_rho_pure_pairs_and_pairs_with_delta_breaks_an_account(epsilon: float, name: str) -> None:
    plain = Cap(epsilon, DELTA)
    adding = at_order("cap", plain)
    left = Fraction(limits(adding).divergence, RHO_UNIT)
    menu: tuple[PrivacyEvent, ...] = (
        ZcdpEvent("little", all_rho(adding) / 5),
        ZcdpEvent("much", all_rho(adding) / 2),
        ApproximateDpEvent("pure", left / 3, Fraction(0)),
        ApproximateDpEvent("places", left / 4, Fraction(DELTA) / 4),
        ApproximateDpEvent("samplers", Fraction(0), Fraction(DELTA) / 5),
    )
    held = after_any_rounds(by_ledger(name, adding), adding, menu, Losses(epsilon, True, points=1 << 14))
    assert DELTA / 10 < held <= DELTA
    most = all_rho(plain)
    menu = (
        ZcdpEvent("little", most / 16),
        ZcdpEvent("much", most / 4),
        ApproximateDpEvent("pure", Fraction(epsilon) / 5, Fraction(0)),
        ApproximateDpEvent("places", Fraction(epsilon) / 6, Fraction(DELTA) / 4),
    )
    broken = after_any_rounds(
        at_the_best_order_afterwards(plain), plain, menu, Losses(epsilon, upwards=False, points=1 << 13)
    )
    assert broken > 1.5 * DELTA


@pytest.mark.thin(2)
@pytest.mark.parametrize("epsilon", [1.0, 3.0, 10.0])
def test_without_the_conversion_a_cap_does_not_hold(epsilon: float) -> None:
    cap = at_order("cap", Cap(epsilon, DELTA))
    whole = replace(limits(cap), divergence=int(epsilon * RHO_UNIT))
    rho = ROOM * Fraction(whole.divergence, RHO_UNIT) / Fraction(cap.order or 1)
    rounds = [ZcdpEvent("answers", rho / 5)] * 5
    for rule, broken in ((with_limits(cap, whole), True), (by_ledger("data/t", cap), False)):
        found = after_growing_rounds(rule, cap, rounds, Losses(epsilon, upwards=not broken))
        assert (found > 2 * DELTA) is broken


@dataclass(frozen=True)
class Attack:
    """Growing rounds, what is left after each for a last pure one, and the losses from which that is played."""

    rounds: list[PrivacyEvent]
    last: list[ApproximateDpEvent]
    from_loss: Value

    @classmethod
    def on(cls, add: Rule, cap: Cap, rounds: list[PrivacyEvent]) -> Attack:
        """The last round is played as soon as the loss and its epsilon may together exceed the cap's."""
        last, total = [], Cost()
        for part in rounds:
            grown = add(total, part)
            assert grown is not None
            total = grown
            rest = all_that_is_left(add, total, cap, Fraction(0))
            assert rest is not None
            last.append(rest)
        return cls(rounds, last, np.array([cap.epsilon - float(each.epsilon) for each in last]))

    def course(self, number: int) -> list[PrivacyEvent]:
        """All rounds, where the last one follows the growing round of this number."""
        return [*self.rounds[: number + 1], self.last[number]]

    def simulated(self, epsilon: float, seed: int) -> tuple[float, float]:
        """Delta at `epsilon`, and its standard error.

        Every path is drawn towards the loss from which the last round is played after a round chosen by chance, and
        weighted by how likely it is against all of these ways to draw it.
        """
        draw = np.random.default_rng(seed)
        rho = np.array([float(part.divergence(Fraction(1))[0]) for part in self.rounds])
        count = rho.size
        # means[j, i]: of the loss of round i where the path is drawn towards stopping after round j
        means = np.array(
            [
                np.where(np.arange(count) <= j, self.from_loss[j] * rho / rho[: j + 1].sum(), rho)
                for j in range(count)
            ]
        )
        chosen = draw.integers(count, size=PATHS)
        loss, likely, drawn = np.zeros(PATHS), np.zeros(PATHS), np.zeros((count, PATHS))
        found, going = np.zeros(PATHS), np.ones(PATHS, dtype=bool)
        for number in range(count):
            more = draw.normal(means[chosen, number], math.sqrt(2 * rho[number]))
            loss += more
            likely -= (more - rho[number]) ** 2 / (4 * rho[number])
            drawn -= (more - means[:, number, None]) ** 2 / (4 * rho[number])
            stops = going & ((loss >= self.from_loss[number]) | (number == count - 1))
            weight = np.exp(likely - logsumexp(drawn, axis=0) + math.log(count))
            found[stops] = (weight * self.won(epsilon, loss, number))[stops]
            going &= ~stops
        return float(found.mean()), float(found.std() / math.sqrt(PATHS))

    def won(self, epsilon: float, loss: Value, number: int) -> Value:
        """What the last pure round makes of a loss, on average over its two results."""
        last = float(self.last[number].epsilon)
        right = 1 / (1 + math.exp(-last))
        lucky, unlucky = (-np.expm1(np.minimum(0, epsilon - loss - more)) for more in (last, -last))
        return np.asarray(right * lucky + (1 - right) * unlucky)


@pytest.mark.slow
@pytest.mark.thin(4)
@pytest.mark.parametrize(("epsilon", "excess"), [(1.0, 1.8), (3.0, 2.3), (10.0, 2.5)])
def test_simulated_courses_confirm_the_induction(epsilon: float, excess: float) -> None:
    plain = Cap(epsilon, DELTA)
    adding = at_order("cap", plain)
    rules = {None: at_the_best_order_afterwards(plain), adding.order: by_ledger("data/t", adding)}
    found = {}
    for cap in (plain, adding):
        attack = Attack.on(rules[cap.order], cap, growing(cap, SIMULATED, 3))
        mean, error = attack.simulated(epsilon, seed=7)
        assert error < mean / 20
        most = after_growing_rounds(rules[cap.order], cap, attack.rounds, Losses(epsilon, True, points=1 << 14))
        assert mean - 5 * error <= most
        found[cap.order] = mean, error
    mean, error = found[None]
    assert mean - 5 * error > excess * DELTA
    mean, error = found[adding.order]
    assert mean + 5 * error < DELTA


def test_a_store_reserves_the_courses_of_an_attack_on_its_own_rule(store_url: str) -> None:
    """And no round more; the journal holds what counts on the account, round by round."""
    adding = at_order("cap", Cap(3.0, DELTA))
    attack = Attack.on(by_ledger("data/t", adding), adding, growing(adding, SIMULATED, 3))
    store = ledger_store(store_url, [f"r{number}" for number in range(SIMULATED + 2)])
    last = ZcdpEvent("one more", all_rho(adding) / 100)
    for number, name in enumerate(("data/t", "data/u", "analyst/t/analyst/ann", "analyst/t/analyst/ben")):
        course = attack.course(SIMULATED * number // 4)
        reserve_all(store, name, adding, course)
        with pytest.raises(BudgetExhausted), store.write() as connection:
            reserve(connection, SIMULATED + 1, name, last)
        with store.read() as connection:
            entries = [each for each in journal.of_account(connection, name, 0, None) if each.action == "reserve"]
            committed = account(connection, name).committed
        assert sum((each.cost for each in entries), Cost()) == committed
        assert len(entries) == len(course)
        assert 0.99 * limits(adding).divergence < committed.divergence <= limits(adding).divergence
    store.close()


def reserve_all(store: Store, name: str, cap: Cap, course: Sequence[PrivacyEvent]) -> None:
    """Reserve rounds one after the other on an account of their own."""
    open_with(store, name, Composition.SEQUENTIAL, cap)
    for number, part in enumerate(course):
        with store.write() as connection:
            reserve(connection, number, name, part)


def reserve(connection: Connection, number: int, name: str, part: PrivacyEvent) -> None:
    asked = [charges.Charge(name, charge_of([part]), events_to_json("test", [part]))]
    charges.reserve(connection, f"r{number}", asked, NOW)


def test_where_one_round_counts_it_may_spend_all_of_its_cap() -> None:
    """What is fixed before any result can be converted at its best order: nothing is traded afterwards."""
    for epsilon in (1.0, 3.0, 10.0):
        rho = Fraction(largest_rho(epsilon, DELTA), RHO_UNIT)
        on = Losses(epsilon, upwards=True)
        assert epsilon_for(charge_of([ZcdpEvent("answers", rho)]), DELTA) <= epsilon
        assert DELTA / 100 < on.at_none(on.gaussian(on.stop(), float(rho))) <= DELTA
