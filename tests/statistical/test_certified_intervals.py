"""Every truth lies in its answer's interval, in all but `beta` of many small rounds of each mechanism.

A round fails if any truth lies outside its answer's interval, or more answers are uncertified than was planned.
Where rounds fail with probability at most `beta`, a test here raises a false alarm with probability at most
`FALSE_ALARM`, by the exact binomial law. And in no round at all may what is told refute an interval that is told:
counts are whole, so an interval that holds no whole count is certainly wrong.

`make audit` plays 10,000 rounds of each, `make test` a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from harness import statistics_session
from harness.answers import half_widths
from harness.audit_size import AuditSize
from numpy.typing import NDArray
from scipy.stats import binom

from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledWorkload, compile_single, compile_workload
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.registry import MECHANISMS, SESSION_MECHANISMS
from equipoise_server.mechanisms.repair import private_weights
from equipoise_server.mechanisms.repair.statement_repair import SCORE_BITS, half_width_on_grid

FALSE_ALARM = 1e-9  # of each test
ONE = 1 << GRID_BITS
BETA = 0.2
CATCHING = 200  # rounds that show a fault
SCHEMA = Schema.from_json('{"a": 2, "b": 2}')
HISTOGRAM = np.array([0, 31, 150, 19], dtype=np.int64)
ASKED = {
    "one": compile_workload([Marginal(("a", "b")), attribute("b") == "0"], SCHEMA),
    "two": compile_workload([Marginal(("a",)), attribute("b") == "1"], SCHEMA),
}
ALONE: list[Statement] = [Marginal(("a", "b")), attribute("b") == "0", attribute("a") == "1", Marginal(("a",))]
NONE: dict[str, object] = {}
GAME: dict[str, object] = {"rounds": 8, "batch": 4, "draws": 2, "density": 1, "data_rate": 0.01, "query_rate": 0.1}


@dataclass(frozen=True)
class Case:
    """A mechanism and a setting of its own. `size`: how many times the table."""

    mechanism: str
    setting: PublicParameters
    size: int = 1

    @property
    def histogram(self) -> NDArray[np.int64]:
        """The table."""
        return HISTOGRAM * self.size


def case(
    mechanism: str, options: Mapping[str, object] = NONE, unit: str = "query", epsilon: float = 2.0, size: int = 1
) -> Case:
    """Two analysts; `epsilon`: of the data's budget."""
    records = int(HISTOGRAM.sum()) * size
    shares = tuple(
        Share(name, each.statement_count, each.query_count, each.l1_sensitivity) for name, each in ASKED.items()
    )
    budgets = Budget(epsilon, 1e-6), Budget(16.0, 1e-3)
    return Case(
        mechanism, PublicParameters(records, 4, shares, unit, *budgets, BETA, options, attributes=(2, 2)), size
    )


def session(mechanism: str, length: int, analysts: float, options: Mapping[str, object] = NONE) -> Case:
    """Two analysts who ask everything in turn; `analysts`: the epsilon of their budget."""
    made = case(mechanism, {"length": length, **options})
    shares, budget = tuple(Share(name, 4, 8) for name in ASKED), Budget(analysts, 1e-3)
    return replace(made, setting=replace(made.setting, shares=shares, analyst_budget=budget))


REPAIR: dict[str, object] = {"ways": 1, "least": 0, "repair_share": 0.5, "synopsis": 200}
ROUNDS = {
    "equilibrium": case("equilibrium", GAME | {"threshold": 0.02}, size=10),
    "equilibrium, analysts": case(
        "equilibrium", GAME | {"threshold": 0.05, "repair_rounds": 2}, "analyst", epsilon=0.1
    ),
    "pooled": case("pooled", REPAIR),
    "pooled, analysts": case("pooled", REPAIR | {"repair_rounds": 2}, "analyst"),
    "laplace": case("laplace"),
    "gaussian": case("gaussian"),
    "histogram": case("histogram"),
    "small_db": case("small_db", {"database_size": 6}, epsilon=8.0),
    "projection": case("projection"),
    "multiplicative_weights": case("multiplicative_weights", {"rounds": 2}),
    "multiplicative_weights, proven": case("multiplicative_weights", {"rounds": 2}, size=25),
}
SESSIONS = {
    "online": session("online", 8, math.inf, {"updates": 3}),
    "online_private": session("online_private", 4, 16.0),
}


@dataclass(frozen=True)
class Told:
    """What analysts were told in one round, and the truth in units of 2^-40, rounded; of all queries together."""

    answers: Answers
    truth: NDArray[np.float64]


@dataclass(frozen=True)
class Play:
    """A plan, and what is told in the rounds of it, by number."""

    plan: MechanismPlan
    told: Callable[[int], Told]


def together(answers: Mapping[str, Answers], truth: Mapping[str, NDArray[np.float64]]) -> Told:
    """Of all analysts."""
    names = sorted(answers)
    return Told(Answers.join(answers[name] for name in names), np.concatenate([truth[name] for name in names]))


def rounds_of(made: Case) -> Play:
    """Rounds by number."""
    mechanism = MECHANISMS[made.mechanism]
    plan, truth = mechanism.plan(made.setting), counted(ASKED, made)

    def told(number: int) -> Told:
        seed = number.to_bytes(32)
        outcome = mechanism.run(
            made.setting, plan, DenseCounts(made.histogram, made.setting.attributes), ASKED, seed, lambda *_: None
        )
        return together(outcome.answers, truth)

    return Play(plan, told)


def counted(asked: Mapping[str, CompiledWorkload], made: Case) -> dict[str, NDArray[np.float64]]:
    """True answers."""
    return {name: each.counts(made.histogram) / made.setting.records for name, each in asked.items()}


def sessions_of(made: Case) -> Play:
    """Sessions by number."""
    mechanism = SESSION_MECHANISMS[made.mechanism]
    plan = mechanism.plan(made.setting)
    some = tuple(compile_single(each, SCHEMA) for each in ALONE)
    asked = {name: SessionWorkload(np.arange(4) * 2 + place, some) for place, name in enumerate(ASKED)}
    whole = np.concatenate([each.counts(made.histogram) for each in some]) / made.setting.records

    def told(number: int) -> Told:
        seed = number.to_bytes(32)
        outcome = play(mechanism, made.setting, plan, DenseCounts(made.histogram), asked, seed, lambda *_: None)
        return together(outcome.answers, dict.fromkeys(ASKED, whole))

    return Play(plan, told)


def statistics_of() -> Play:
    """Sessions of `low_sensitivity` by number."""
    setting = replace(statistics_session.setting(records=2000, statements=3, sensitivity="1/400"), beta=BETA)
    histogram = statistics_session.table(2000, 0.3)
    mechanism = SESSION_MECHANISMS["low_sensitivity"]
    plan, asked = mechanism.plan(setting), statistics_session.everything_asked(setting)
    data = database_of(setting.attributes, DenseCounts(histogram))

    def true_answer(statement: CompiledStatistic | CompiledWorkload) -> float:
        if isinstance(statement, CompiledStatistic):
            return float(statement.values(data)[0]) / ONE
        return float(statement.counts(histogram)[0]) / setting.records

    truth = {name: np.array([true_answer(each) for each in own.statements]) for name, own in asked.items()}

    def told(number: int) -> Told:
        outcome = play(
            mechanism, setting, plan, DenseCounts(histogram), asked, number.to_bytes(32), lambda *_: None
        )
        return together(outcome.answers, truth)

    return Play(plan, told)


PLAYS: dict[str, Callable[[], Play]] = {
    **{name: partial(rounds_of, made) for name, made in ROUNDS.items()},
    **{name: partial(sessions_of, made) for name, made in SESSIONS.items()},
    "low_sensitivity": statistics_of,
}


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


def seen(played: Play, rounds: int, records: int) -> Seen:
    """Plays rounds. `records`: 0 where what is asked for are not counts, so that nothing but the truth refutes."""
    found = Seen()
    for number in range(rounds):
        each = played.told(number)
        certified = each.answers.certified
        found.broken += bool(each.answers.misses(each.truth).any())
        if records:
            lows, highs = (ends[certified] * (records / ONE) for ends in (each.answers.lows, each.answers.highs))
            found.refuted += bool((np.ceil(lows) > np.floor(highs)).any())
        uncertified = int(np.count_nonzero(~certified))
        found.surplus += uncertified > played.plan.max_uncertified
        found.certified += len(certified) - uncertified
        found.uncertified += uncertified
        assert half_widths(each.answers).max(initial=0) <= played.plan.max_half_width
    return found


def records_of(name: str) -> int:
    """Of the table, where counts of it are asked for."""
    made = (ROUNDS | SESSIONS).get(name)
    return 0 if made is None else made.setting.records


@pytest.mark.parametrize("name", PLAYS)
def test_truths_lie_in_their_intervals_and_no_interval_is_refuted(name: str, audit_size: AuditSize) -> None:
    found = seen(PLAYS[name](), audit_size.rounds, records_of(name))
    allowed = int(binom.isf(FALSE_ALARM, audit_size.rounds, BETA))
    print(f"\n{name}: {found} of {audit_size.rounds:,} rounds; {allowed:,} may fail at beta {BETA}")
    assert found.broken + found.surplus <= allowed
    assert found.refuted == 0
    assert found.certified > 0


def test_every_mechanism_is_played() -> None:
    assert {name.partition(",")[0] for name in PLAYS} == {*MECHANISMS, *SESSION_MECHANISMS}


@pytest.mark.parametrize("name", ["multiplicative_weights", "equilibrium, analysts"])
def test_intervals_of_tests_that_have_failed_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they were once told: whatever the noise, with no less than no error at all."""

    def told(noisy: int, margin: int, _: object, records: int) -> int:
        return half_width_on_grid(max(0, noisy + margin + private_weights.SCORE_ROUNDING), records << SCORE_BITS)

    for module in ("multiplicative_weights.mechanism", "repair.analyst_repair"):
        monkeypatch.setattr(f"equipoise_server.mechanisms.{module}.tested_half_width", told)
    assert seen(PLAYS[name](), CATCHING, records_of(name)).refuted > 0
