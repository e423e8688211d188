"""The rules of choice: what counts as less error, as equal, as too long; and that no feasible plan is better."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from harness.choices import assert_none_is_better, assert_none_is_expected_to_err_less
from hypothesis import given
from hypothesis import strategies as st

from equipoise.accounting import Cost
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan, Share
from equipoise_server.mechanisms.choice import (
    DOUBT,
    NEAR,
    Candidate,
    Rule,
    by_expected_error,
    by_promise,
    choose,
    counted_error,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import MAX_MEMORY, MAX_SECONDS, alpha, beyond_limits

pytestmark = pytest.mark.slow

PAID = Cost(rho=1)
ROUND = PublicParameters(
    records=48_842,
    universe_size=336_000,
    shares=tuple(Share(f"analyst-{number}", 50, 1000) for number in range(4)),
    unit="query",
    data_budget=Budget(1.0, 1e-10),
    analyst_budget=Budget(1.0, 1e-6),
    beta=0.05,
    options={},
    attributes=(16, 7, 15, 5, 2, 2, 10),
)


def plan(promised: float, uncertified: int = 0, name: str = "a", **changes: object) -> MechanismPlan:
    """A plan of this promise, for `ROUND` of 4,000 queries."""
    return replace(MechanismPlan(name, "{}", PAID, Cost(), promised, uncertified, 1.0, 1, 1.0), **changes)  # type: ignore[arg-type]


def candidate(made: MechanismPlan) -> Candidate:
    return Candidate(made.mechanism, made, None, alpha(made, ROUND), beyond_limits(made))


def chosen(*plans: MechanismPlan, rule: Rule = by_promise) -> str:
    best = choose([candidate(each) for each in plans], rule)
    assert best is not None
    return best.mechanism


def test_alpha_counts_what_may_end_uncertified_as_one() -> None:
    assert alpha(plan(0.25), ROUND) == 0.25
    assert alpha(plan(0.25, 1000), ROUND) == pytest.approx(0.25 + 0.75 * 0.25)
    assert alpha(plan(0.001, 4000), ROUND) == alpha(plan(1.5), ROUND) == 1
    assert counted_error(0.4999) == 0.4999
    assert counted_error(0.5) == counted_error(0.9) == 1


def test_certifying_little_does_not_win() -> None:
    assert chosen(plan(0.001, 3900, "few"), plan(0.4, 0, "all")) == "all"
    assert chosen(plan(0.001, 3, "nearly"), plan(0.4, 0, "all")) == "nearly"


def test_where_nothing_is_said_of_all_the_promise_to_the_certified_decides() -> None:
    assert chosen(plan(0.2, 3900, "few", analyst_cost=PAID), plan(0.9, 0, "all")) == "few"
    assert chosen(plan(0.6, 3900, "few", analyst_cost=PAID), plan(0.9, 0, "all")) == "all"
    assert chosen(plan(0.6, 4000, "few", analyst_cost=PAID), plan(1.0, 0, "all")) == "few"


def test_between_near_equals_the_analysts_pay_nothing_then_time_and_name_decide() -> None:
    near = 0.1 * (1 + NEAR / 2)
    assert chosen(plan(0.1, 0, "paid", analyst_cost=PAID), plan(near, 0, "free")) == "free"
    assert chosen(plan(0.1, 0, "paid", analyst_cost=PAID), plan(0.1 * (1 + 2 * NEAR), 0, "free")) == "paid"
    assert chosen(plan(0.1, 0, "a", seconds=2.0), plan(0.1, 0, "b")) == "b"
    assert chosen(plan(0.1, 0, "b"), plan(0.1, 0, "a")) == "a"


def test_the_expected_error_decides_then_the_promise_then_the_analysts_then_time() -> None:
    def won(*plans: MechanismPlan) -> str:
        return chosen(*plans, rule=by_expected_error)

    assert won(
        plan(0.9, 4000, "errs less", expected_error=0.001), plan(0.01, 0, "promises", expected_error=0.002)
    ) == ("errs less")
    near = 0.001 * (1 + NEAR / 2)
    assert won(plan(0.2, 0, "a", expected_error=0.001), plan(0.1, 0, "b", expected_error=near)) == "b"
    assert won(plan(0.1, 0, "a", analyst_cost=PAID), plan(0.1 * (1 + NEAR / 2), 0, "b")) == "b"
    assert won(plan(0.1, 0, "a", seconds=2.0), plan(0.1, 0, "b")) == "b"


@pytest.mark.parametrize(("more", "won"), [(0.99 * DOUBT, "certifies"), (1.01 * DOUBT, "guesses")])
def test_what_has_no_interval_must_be_expected_to_err_less_by_more_than_that_is_known(
    more: float, won: str
) -> None:
    guesses = plan(0.9, 1, "guesses", expected_error=0.001)
    certifies = plan(0.1, 0, "certifies", expected_error=0.001 * more)
    worse = plan(0.01, 0, "worse", expected_error=0.001 * DOUBT * (1 + 2 * NEAR))
    assert chosen(guesses, certifies, worse, rule=by_expected_error) == won
    certain = replace(guesses, max_uncertified=0)
    assert chosen(certain, certifies, worse, rule=by_expected_error) == "guesses"


def test_plans_beyond_a_limit_come_last() -> None:
    slow, large = {"seconds": MAX_SECONDS * 2}, {"memory_bytes": MAX_MEMORY + 1}
    for beyond in (slow, large, {"seconds": math.nan}):
        assert chosen(plan(0.01, 0, "beyond", **beyond), plan(0.3, 0, "within")) == "within"
    assert chosen(plan(0.3, 0, "large", **large), plan(0.2, 0, "slow", **slow)) == "slow"
    assert beyond_limits(plan(0.1)) == ""


@st.composite
def plans(draw: st.DrawFn) -> list[MechanismPlan]:
    """Any plans of different names, near-ties and empty promises among them."""
    promises = st.one_of(st.floats(1e-6, 2), st.sampled_from([0.1, 0.102, 0.5, 1.0]))
    return [
        plan(
            draw(promises),
            draw(st.sampled_from([0, 0, 40, 3900, 4000])),
            f"mechanism-{number}",
            seconds=draw(st.sampled_from([1.0, 2.0, 1e9])),
            expected_error=draw(st.one_of(st.floats(1e-9, 1), st.sampled_from([0.01, 0.0102]))),
            analyst_cost=draw(st.sampled_from([None, Cost(), PAID])),
        )
        for number in range(draw(st.integers(1, 7)))
    ]


@given(plans(), st.randoms())
def test_no_feasible_plan_is_better_by_the_rule_and_their_order_means_nothing(
    made: list[MechanismPlan], shuffled: Random
) -> None:
    candidates = [candidate(each) for each in made]
    best = choose(candidates, by_promise)
    assert best is not None
    expected = choose(candidates, by_expected_error)
    shuffled.shuffle(candidates)
    assert choose(candidates, by_promise) == best
    assert choose(candidates, by_expected_error) == expected
    assert_none_is_expected_to_err_less(expected, candidates)
    assert_none_is_better(best, candidates)
