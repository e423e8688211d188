"""What every choice among plans keeps: no feasible plan is better by the rule."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise_server.mechanisms.choice import DOUBT, NEAR, Candidate, counted_error


def assert_none_is_expected_to_err_less(best: Candidate | None, candidates: Sequence[Candidate]) -> None:
    """Within the limits, but for plans that count as equal, and uncertain ones that are not certain to err less."""
    assert best is not None
    assert best.plan is not None
    for other in candidates:
        if other.plan is None or (other.beyond and not best.beyond):
            continue
        assert best.beyond == "" or other.beyond
        doubted = other.plan.max_uncertified and not best.plan.max_uncertified
        assert best.plan.expected_error <= other.plan.expected_error * (DOUBT if doubted else 1 + NEAR)


def assert_none_is_better(best: Candidate, candidates: Sequence[Candidate]) -> None:
    """By alpha at once, and by the promise where alphas say as little."""
    assert best.plan is not None
    for other in candidates:
        if other.plan is None or (other.beyond and not best.beyond):
            continue
        assert best.beyond == "" or other.beyond
        assert counted_error(best.alpha) <= counted_error(other.alpha) * (1 + NEAR)
        if counted_error(other.alpha) == counted_error(best.alpha) == 1:
            assert counted_error(best.plan.max_half_width) <= counted_error(other.plan.max_half_width) * (1 + NEAR)
