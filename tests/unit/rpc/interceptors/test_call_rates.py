"""How often one caller may call, and nobody else's calls count for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from equipoise.errors import TooFast
from equipoise.model.identities import Role
from equipoise_server.identity.policy import MethodPolicy, Ownership, Rate
from equipoise_server.rpc.interceptors.call_rates import CallRates
from equipoise_server.rpc.interceptors.interceptor import UNKNOWN
from equipoise_server.rpc.interceptors.token_bucket import TOO_OFTEN

READ, UPLOAD = f"/x/{Rate.READ}", f"/x/{Rate.UPLOAD}"
POLICY = {
    f"/x/{rate}": MethodPolicy(frozenset({Role.ANALYST}), Ownership.SELF, rate) for rate in (Rate.READ, Rate.UPLOAD)
}
SLOW = {Rate.READ: 2.0, Rate.UPLOAD: 0.5}


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def rates(clock: Clock, per_second: Mapping[Rate, float]) -> CallRates:
    return CallRates(per_second, 4, POLICY, clock)


def test_calls_in_a_row_are_limited_by_kind_and_caller_and_said_when_to_try_again() -> None:
    clock = Clock()
    limited = rates(clock, SLOW)
    for _ in range(8):
        limited.take("alice", READ)
    with pytest.raises(TooFast, match=TOO_OFTEN) as refused:
        limited.take("alice", READ)
    assert refused.value.retry_seconds == 0.5
    limited.take("alice", UPLOAD)
    limited.take("bob", READ)
    # Refusals take nothing, so waiting as told is enough.
    clock.now += 0.5
    limited.take("alice", READ)
    with pytest.raises(TooFast):
        limited.take("alice", READ)
    clock.now += 1000
    for _ in range(8):
        limited.take("alice", READ)
    with pytest.raises(TooFast):
        limited.take("alice", READ)


def test_calls_of_methods_that_do_not_exist_take_from_the_bucket_of_look_ups() -> None:
    limited = rates(Clock(), SLOW)
    for _ in range(8):
        limited.take("alice", UNKNOWN)
    for method in (UNKNOWN, READ):
        with pytest.raises(TooFast, match=TOO_OFTEN):
            limited.take("alice", method)
    limited.take("bob", UNKNOWN)


def test_refusals_are_logged_once_a_minute() -> None:
    clock = Clock()
    limited = rates(clock, dict.fromkeys(Rate, 0.001))
    limited.take("alice", READ)
    with capture_logs() as logged:
        for _ in range(50):
            clock.now += 2
            with pytest.raises(TooFast):
                limited.take("alice", READ)
    assert [entry["caller"] for entry in logged] == ["alice"] * 2
