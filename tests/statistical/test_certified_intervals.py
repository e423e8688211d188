"""Every truth lies in its answer's interval, in all but `beta` of many small rounds of each mechanism.

A round fails if any truth lies outside its answer's interval, or more answers are uncertified than was planned.
Where rounds fail with probability at most `beta`, a test here raises a false alarm with probability at most
`FALSE_ALARM`, by the exact binomial law. And in no round at all may what is told refute an interval that is told:
counts are whole, so an interval that holds no whole count is certainly wrong.

`make audit` plays 10,000 rounds of each, `make test-rest` a hundred, `make test` forty of some.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from harness.answers import half_widths, misses_shortened
from harness.audit_size import AuditSize
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.interval_cases import PLAYS, SPARSE, TIGHT
from statistical.played_intervals import BETA, ONE, Play, Told

from equipoise.model.results import AnswerMethod, Answers
from equipoise_server.mechanisms import answers as answers_module
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS
from equipoise_server.mechanisms.repair import private_weights
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid

FALSE_ALARM = 1e-9  # of each test
CATCHING = 200  # rounds that show a fault
COVERED = 200  # rounds at each beta
ALARM = 1e-6


@dataclass
class Seen:
    """What came of many rounds.

    `broken`: in how many a truth lies outside its interval; `surplus`: more answers are uncertified than was
    planned; `refuted`: an interval is told that is refuted. `certified`, `uncertified`: answers.
    """

    broken: int = 0
    surplus: int = 0
    refuted: int = 0
    certified: int = 0
    uncertified: int = 0


def seen(played: Play, rounds: int) -> Seen:
    """Play rounds."""
    found = Seen()
    for number in range(rounds):
        each = played.told(number)
        certified = each.answers.certified
        found.broken += bool(each.answers.misses(each.truth).any())
        if played.records:
            lows, highs = (
                ends[certified] * (played.records / ONE) for ends in (each.answers.lows, each.answers.highs)
            )
            found.refuted += bool((np.ceil(lows) > np.floor(highs)).any())
        uncertified = int(np.count_nonzero(~certified))
        found.surplus += uncertified > played.plan.max_uncertified
        found.certified += len(certified) - uncertified
        found.uncertified += uncertified
        assert half_widths(each.answers).max(initial=0) <= played.plan.max_half_width
    return found


@pytest.mark.sparse(45)
@pytest.mark.thin(36)
@pytest.mark.parametrize("name", PLAYS)
def test_truths_lie_in_their_intervals_and_no_interval_is_refuted(name: str, audit_size: AuditSize) -> None:
    found = seen(PLAYS[name](BETA), audit_size.rounds)
    allowed = int(binom.isf(FALSE_ALARM, audit_size.rounds, BETA))
    print(f"\n{name}: {found} of {audit_size.rounds:,} rounds; {allowed:,} may fail at beta {BETA}")
    assert found.broken + found.surplus <= allowed
    assert found.refuted == 0
    assert found.certified > 0


def test_every_mechanism_is_played() -> None:
    assert {name.partition(",")[0] for name in PLAYS} == {*MECHANISMS, *SESSION_MECHANISMS}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["multiplicative_weights", "equilibrium, analysts"])
def test_intervals_of_tests_that_have_failed_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they were once told: whatever the noise, with no less than no error at all."""

    def told(noisy: int, margin: int, _: object, records: int) -> int:
        return half_width_on_grid(max(0, noisy + margin + private_weights.SCORE_ROUNDING), records << SCORE_BITS)

    for module in ("multiplicative_weights.mechanism", "repair.analyst_repair"):
        monkeypatch.setattr(f"equipoise_server.mechanisms.{module}.tested_half_width", told)
    assert seen(PLAYS[name](BETA), CATCHING).refuted > 0


def missed(told: Sequence[Told], part: float = 1.0) -> int:
    """In how many rounds a truth lies outside an interval of which only so large a part is left."""
    return sum(bool(misses_shortened(each.answers, each.truth, part).any()) for each in told)


def covered(name: str, beta: float = BETA) -> list[Told]:
    """What is told in the first rounds."""
    played = PLAYS[name](beta)
    return [played.told(number) for number in range(COVERED)]


@pytest.mark.nightly
@pytest.mark.parametrize("beta", [0.05, 0.2])
@pytest.mark.parametrize("name", PLAYS)
def test_the_share_of_rounds_with_a_truth_outside_is_at_most_beta(name: str, beta: float) -> None:
    assert missed(covered(name, beta)) <= binom.isf(ALARM, COVERED, beta)


@pytest.mark.sparse(32)
@pytest.mark.full
@pytest.mark.parametrize("beta", [0.05, 0.2])
@pytest.mark.parametrize("name", TIGHT)
def test_intervals_a_third_shorter_fail(name: str, beta: float) -> None:
    """Where the noise's law decides, and where the table is the worst case for which an interval is made."""
    told = covered(name, beta)
    assert missed(told) <= binom.isf(ALARM, COVERED, beta) < missed(told, 2 / 3)


def cut_on_the_wrong_side(patches: pytest.MonkeyPatch) -> None:
    """What an interval has beyond 0 or 1 is taken from its other end."""
    within = answers_module.answers_within

    def shifted(
        values: NDArray[np.int64],
        method: AnswerMethod,
        half_widths: NDArray[np.int64] | int,
        standard_errors: NDArray[np.int64] | int = 0,
    ) -> Answers:
        told = within(values, method, half_widths, standard_errors)
        below, above = np.maximum(half_widths - values, 0), np.maximum(values + half_widths - ONE, 0)
        lows = np.minimum(told.lows + above, ONE)
        return replace(told, lows=lows, highs=np.maximum(lows, told.highs - below))

    for folder in ("independent_noise", "histogram"):
        patches.setattr(f"equipoise_server.mechanisms.{folder}.mechanism.answers_within", shifted)


@pytest.mark.sparse(4)
@pytest.mark.full
@pytest.mark.parametrize("name", SPARSE)
def test_an_interval_cut_on_the_wrong_side_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = binom.isf(ALARM, COVERED, BETA)
    assert missed(covered(name)) <= allowed
    cut_on_the_wrong_side(monkeypatch)
    assert missed(covered(name)) > allowed
