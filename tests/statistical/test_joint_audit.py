"""What all analysts but one see together, through the rounds service, against what the round charges for that one.

The statistical audit of the others' pooled view: answers of every one of them and the synopsis, from the bytes
that are delivered. Rounds are computed in this process; some by a real server, too, which gives the same bytes.
All audits together raise a false alarm with probability at most 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness.audit_size import SIZES, AuditSize
from statistical.joint_rounds import Integers, JointRound, computed, prepared, samplers, seed_of
from statistical.mutants_game import a_cap_of_two_over_s
from statistical.mutants_repair import shared_thresholds
from statistical.served_rounds import served

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, ResultColumns
from equipoise.model.rounds import MechanismPlan
from equipoise_lab.audit.clopper_pearson import Certificate, Outcome, certify
from equipoise_server.computation import round as round_module
from equipoise_server.computation.seed import bound_seed
from equipoise_server.conversion import epsilon_for
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.repair.repair_places import RepairPlaces

Told = Mapping[str, Sequence[ResultColumns]]


def how_often(told: Told, method: AnswerMethod) -> tuple[int, ...]:
    """How many answers each analyst got in this way."""
    return tuple(
        sum(int((each.answers.methods == method.value).sum()) for each in columns) for columns in told.values()
    )


def last_records(_: Told, synopsis: Integers) -> Outcome:
    """By how much record 1 is ahead of record 2 in the game's last round, in eighths of it."""
    last = synopsis[len(synopsis) // 2 :]
    return (int(np.count_nonzero(last == 1) - np.count_nonzero(last == 2)) * 8 // len(last),)


def places(told: Told, _: Integers) -> Outcome:
    """Who was answered afresh."""
    return (how_often(told, AnswerMethod.MULTIPLICATIVE_WEIGHTS),)


def badly_served(told: Told, _: Integers) -> Outcome:
    """Whose statements were found to be served badly."""
    return (how_often(told, AnswerMethod.SYNOPSIS),)


ONE_ROUND = {"play": "mixed", "rounds": 1, "batch": 4, "query_rate": 1, "data_rate": 0, "game_share": 0.1}
CONSTANT = {"bob": (7,) * 4, "cyd": (7,) * 3}  # always answered rightly: ann's unit holds all that one may
EXTREME = {"rounds": 2, "batch": 256, "density": 2, "query_rate": 150, "game_share": 1}
CASES = {
    # All that a round of mixed play may tell of one statement.
    "mixed play": JointRound(
        "query", (0, 200, 200), ((2,), (4,)), CONSTANT, Budget(8.0, 0.05),
        EXTREME | {"play": "mixed", "data_rate": 0.2}, last_records,
    ),
    # One action is drawn, and the records that follow from it tell which: delta is 1/s.
    "sampled play": JointRound(
        "query", (0, 200, 200), ((2,), (4,)), CONSTANT, Budget(0.2, 0.51),
        EXTREME | {"play": "sampled", "draws": 1, "data_rate": 20}, last_records,
    ),
    # The others need both places; whether ann needs one, too, decides whether they get them.
    "places": JointRound(
        "analyst", (20, 0, 0), ((1,), (7,)), {"bob": (1,), "cyd": (1,)}, Budget(1.5, 0.05),
        ONE_ROUND | {"density": 4, "cut_off": 2, "threshold": 0.2, "repair_rounds": 1}, places, absent=40,
    ),
    # Tests near their threshold, before and after ann's, which is sure to be positive or hardly ever.
    "tests": JointRound(
        "query", (1000, 0, 0), ((1,), (7,)), {"bob": (7,) * 20, "cyd": (7,) * 20}, Budget(1.0, 0.05),
        ONE_ROUND | {"density": 1.5, "cut_off": 1, "threshold": 0.0027}, badly_served,
    ),
}  # fmt: skip
FALSE_ALARM = 1e-6
LEVEL = FALSE_ALARM / len(CASES)
every_case = pytest.mark.parametrize("name", CASES)


def audited(case: JointRound, place: Path, runs: int) -> tuple[Certificate, float]:
    """What the others' pooled view certifies of epsilon at the budget's delta, and what is charged."""
    delta = case.analyst_budget.delta
    with prepared(place, case) as jobs:
        claim = epsilon_for(jobs[0].plan.charged_analyst_cost, delta)
        return certify(*samplers(case, jobs), runs, delta, LEVEL), claim


@pytest.mark.sparse(3)
@pytest.mark.thin(4)
@every_case
def test_the_pooled_view_shows_no_more_of_an_analyst_than_is_charged(
    name: str, tmp_path: Path, audit_size: AuditSize
) -> None:
    certificate, claim = audited(CASES[name], tmp_path / name, audit_size.runs // 4)
    print(f"\n{name}, seen by all others: epsilon is claimed to be {claim:.3f}, certified: {certificate}")
    assert certificate.epsilon <= claim


@pytest.mark.nightly
def test_a_real_server_gives_the_same_bytes(tmp_path: Path, audit_size: AuditSize) -> None:
    """Every case in turn, with either of ann's workloads in turn."""
    names = [list(CASES)[number % len(CASES)] for number in range(audit_size.served)]
    sides = [(number + number // len(CASES)) % 2 for number in range(audit_size.served)]
    lived = served(tmp_path / "state", [(CASES[name], side) for name, side in zip(names, sides, strict=True)])
    for name, case in CASES.items():
        with prepared(tmp_path / name, case) as jobs:
            for own, side, one in zip(names, sides, lived, strict=True):
                if own == name:
                    streams, synopsis = computed(jobs[side], one.seed, one.round_id)
                    assert one.streams == streams
                    assert one.synopsis.tolist() == synopsis.tolist()


def places_not_randomised(patches: pytest.MonkeyPatch) -> None:
    """Places are given out until there are none left, to the dot."""
    patches.setattr(
        RepairPlaces,
        "granted",
        lambda places, positive, _: places.grant(
            positive, np.zeros(1, dtype=np.int64), np.zeros(len(positive), dtype=np.int64)
        ),
    )


FAULTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "sampled play": a_cap_of_two_over_s,
    "places": places_not_randomised,
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_refuted_at_the_fast_size(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    certificate, claim = audited(CASES[name], tmp_path / name, SIZES["fast"].runs // 2)
    assert certificate.epsilon > claim


def tells_nothing(case: JointRound, place: Path, rounds: int) -> bool:
    """Whether, seed by seed, all others see the same bytes whatever ann asks."""
    with prepared(place, case) as jobs:
        assert jobs[0].plan.charged_analyst_cost == replace(jobs[0].plan.charged_analyst_cost, rho=0, epsilon=0)
        for number in range(rounds):
            seen = []
            for job in jobs:
                streams, synopsis = computed(job, seed_of(0, number), "one round")
                seen.append(([streams[name] for name in case.others], synopsis.tolist()))
            if seen[0] != seen[1]:
                return False
    return True


def unbound(
    seed: bytes, nonce: bytes | None, digest: bytes, setting: PublicParameters, plan: MechanismPlan, _: object
) -> bytes:
    """The seed of a mechanism, bound to all but the workloads."""
    return bound_seed(seed, nonce, digest, setting, plan, {})


@pytest.mark.full
def test_what_is_charged_nothing_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records drawn without any question, and tests that couple nobody; then with thresholds that all share.

    From one seed, too, the noise for two rounds' workloads is drawn apart (`computation.seed`). What a mechanism
    does with its noise is compared here, so it gets the same for both.
    """
    monkeypatch.setattr(round_module, "bound_seed", unbound)
    assert tells_nothing(CASES["tests"], tmp_path / "shipped", 50)
    shared_thresholds(monkeypatch, analysts=3)
    assert not tells_nothing(CASES["tests"], tmp_path / "shared", 50)
