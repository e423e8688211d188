"""Calls with a certificate that is refused again and again: limited by itself, and by nothing and nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from structlog.testing import capture_logs

from equipoise.errors import NotAuthenticated, TooFast, Unavailable
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.credential import credential_of, serial_of
from equipoise_server.rpc.interceptors.refused_certificates import Refusals

AT_ONCE = 10
NOW = datetime(2026, 1, 1, tzinfo=UTC)
AUTHORITY = Authority.create("here", NOW)
THEIRS, ANOTHER = (AUTHORITY.issue_identity("mal", new_key().public_key(), NOW) for _ in range(2))


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def refusals(clock: Clock) -> Refusals:
    return Refusals(per_second=1, burst_seconds=AT_ONCE, clock=clock)


def refuse(refusals: Refusals, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(NotAuthenticated), refusals.counted(credential_of(THEIRS)):
            raise NotAuthenticated("not, or no longer, in force")


def test_some_refusals_at_once_then_one_a_second_for_each_certificate(refusals: Refusals, clock: Clock) -> None:
    refuse(refusals, AT_ONCE)
    looked_up = False
    with pytest.raises(TooFast) as limited, refusals.counted(credential_of(THEIRS)):
        looked_up = True
    assert (looked_up, limited.value.retry_seconds) == (False, 1.0)
    with refusals.counted(credential_of(ANOTHER)):
        pass
    clock.now += 1.0
    refuse(refusals)
    with pytest.raises(TooFast), refusals.counted(credential_of(THEIRS)):
        pass


def test_whoever_is_let_in_is_not_limited_here(refusals: Refusals, clock: Clock) -> None:
    refuse(refusals, AT_ONCE)
    clock.now += 1.0
    for _ in range(2 * AT_ONCE):
        with refusals.counted(credential_of(THEIRS)):
            pass


def test_a_store_that_says_nothing_refuses_nobody(refusals: Refusals) -> None:
    for _ in range(2 * AT_ONCE):
        with pytest.raises(Unavailable), refusals.counted(credential_of(THEIRS)):
            raise Unavailable("the store is busy")


def test_a_flood_is_one_line_a_minute(refusals: Refusals, clock: Clock) -> None:
    refuse(refusals, AT_ONCE)
    with capture_logs() as logged:
        for _ in range(300):
            clock.now += 0.3
            with pytest.raises((NotAuthenticated, TooFast)), refusals.counted(credential_of(THEIRS)):
                raise NotAuthenticated("not, or no longer, in force")
    assert [entry["certificate"] for entry in logged] == [serial_of(THEIRS)] * 2
