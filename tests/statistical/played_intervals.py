"""Small rounds and sessions of every mechanism, with the truth, that are held against their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from harness import statistics_session
from numpy.typing import NDArray

from equipoise.accounting import Offer
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.predicates import Among, attribute
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

ONE = 1 << GRID_BITS
BETA = 0.2
SCHEMA = Schema.from_json('{"a": 2, "b": 2}')
HISTOGRAM = np.array([0, 31, 150, 19], dtype=np.int64)
ASKED = {
    "one": compile_workload([Marginal(("a", "b")), attribute("b") == "0"], SCHEMA),
    "two": compile_workload([Marginal(("a",)), attribute("b") == "1"], SCHEMA),
}
ALONE: list[Statement] = [Marginal(("a", "b")), attribute("b") == "0", attribute("a") == "1", Marginal(("a",))]
NONE: dict[str, object] = {}
GAME: dict[str, object] = {"rounds": 8, "batch": 4, "draws": 2, "density": 1, "data_rate": 0.01, "query_rate": 0.1}


# A table whose counts are far from 0 and from all records, and many questions about it: nothing is cut.
WIDE_SCHEMA = Schema.from_json('{"a": 8, "b": 8}')
EVEN = np.arange(64, dtype=np.int64) * 37 % 64 + 200
WIDE: list[Statement] = [
    *(
        Among("a", (str(i), str((i + 1 + j) % 8))) & attribute("b").isin(list("01234567"[: 4 + j]))
        for i in range(8)
        for j in range(5)
    ),
    Marginal(("a", "b")),
]


@dataclass(frozen=True)
class Case:
    """A mechanism, a setting of its own, the table, int64[|X|], and what each analyst asks."""

    mechanism: str
    setting: PublicParameters
    histogram: NDArray[np.int64]
    asked: Mapping[str, CompiledWorkload]


def case(
    mechanism: str,
    options: Mapping[str, object] = NONE,
    unit: str = "query",
    epsilon: float = 2.0,
    size: int = 1,
    asked: Mapping[str, CompiledWorkload] = ASKED,
    histogram: NDArray[np.int64] = HISTOGRAM,
) -> Case:
    """Two analysts; `epsilon`: of the data's budget; `size`: how many times the table."""
    whole = histogram * size
    shares = tuple(
        Share(name, each.statement_count, each.query_count, each.l1_sensitivity) for name, each in asked.items()
    )
    budgets, sizes = (Budget(epsilon, 1e-6), Budget(16.0, 1e-3)), next(iter(asked.values())).schema_sizes
    setting = PublicParameters(
        int(whole.sum()), len(whole), shares, unit, *budgets, BETA, options, attributes=sizes
    )
    return Case(mechanism, setting, whole, asked)


def wide(mechanism: str, options: Mapping[str, object] = NONE, epsilon: float = 2.0, delta: float = 1e-6) -> Case:
    """One analyst who asks 41 statements of 104 queries."""
    asked = {"one": compile_workload(WIDE, WIDE_SCHEMA)}
    made = case(mechanism, options, asked=asked, histogram=EVEN)
    return replace(made, setting=replace(made.setting, data_budget=Budget(epsilon, delta)))


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
    "equilibrium, prior": case("equilibrium", {"prior": "own"}),
    "pooled": case("pooled", REPAIR),
    "pooled, residuals": case("pooled", {"ways": 1, "residuals": 1}),
    "pooled, analysts": case("pooled", REPAIR | {"repair_rounds": 2}, "analyst"),
    "laplace": case("laplace"),
    "gaussian": case("gaussian"),
    "histogram": case("histogram"),
    "small_db": case("small_db", {"database_size": 6}, epsilon=8.0),
    "projection": case("projection"),
    "multiplicative_weights": case("multiplicative_weights", {"rounds": 2}),
    "multiplicative_weights, prior": case("multiplicative_weights", {"prior": "own", "rounds": 2}),
    "multiplicative_weights, proven": case("multiplicative_weights", {"rounds": 2}, size=25),
}
# Their half-widths are nearly what the noise's law needs: a third less is too little.
TIGHT = {
    "laplace, wide": wide("laplace"),
    "gaussian, wide": wide("gaussian"),
    "projection, wide": wide("projection"),
    "histogram, wide": wide("histogram", delta=0.3),  # with which it takes Gaussian noise
    "pooled, wide": wide("pooled", {"ways": 2, "summed": 16}),
    "pooled, residuals, wide": wide("pooled", {"ways": 2, "summed": 16, "residuals": 1}),
    "equilibrium, wide": wide("equilibrium", GAME | {"threshold": 0.0, "cut_off": 41}, epsilon=8.0),
    "equilibrium, prior, wide": wide("equilibrium", {"prior": "own"}),
    "multiplicative_weights, wide": wide("multiplicative_weights", {"rounds": 2}),
}
# Counts that are smaller than the noise: nearly every interval is cut.
SPARSE = {
    f"{name}, sparse": case(name, asked={"one": compile_workload(WIDE, WIDE_SCHEMA)}, histogram=EVEN % 8)
    for name in ("laplace", "gaussian", "projection", "histogram")
}
SESSIONS = {
    "online": session("online", 8, math.inf, {"updates": 3}),
    "online, prior": session("online", 8, math.inf, {"prior": "own"}),
    "online_private": session("online_private", 4, 16.0),
    "online_private, prior": session("online_private", 4, 16.0, {"prior": "own"}),
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


def rounds_of(given: Case, beta: float = BETA) -> Play:
    """Rounds by number."""
    made = replace(given, setting=replace(given.setting, beta=beta))
    mechanism = MECHANISMS[made.mechanism]
    plan, truth = mechanism.plan(made.setting), counted(made.asked, made)

    def told(number: int) -> Told:
        seed = number.to_bytes(32)
        outcome = mechanism.run(
            made.setting,
            plan,
            DenseCounts(made.histogram, made.setting.attributes),
            made.asked,
            seed,
            lambda *_: None,
        )
        return together(outcome.answers, truth)

    return Play(plan, told)


def counted(asked: Mapping[str, CompiledWorkload], made: Case) -> dict[str, NDArray[np.float64]]:
    """True answers."""
    return {name: each.counts(made.histogram) / made.setting.records for name, each in asked.items()}


def sessions_of(given: Case, beta: float = BETA) -> Play:
    """Sessions by number."""
    made = replace(given, setting=replace(given.setting, beta=beta))
    mechanism = SESSION_MECHANISMS[made.mechanism]
    plan = mechanism.plan(made.setting)
    some = tuple(compile_single(each, SCHEMA) for each in ALONE)
    asked = {name: SessionWorkload(np.arange(4) * 2 + place, some) for place, name in enumerate(ASKED)}
    whole = np.concatenate([each.counts(made.histogram) for each in some]) / made.setting.records

    def told(number: int) -> Told:
        seed = number.to_bytes(32)
        counts = DenseCounts(made.histogram, made.setting.attributes)
        outcome = play(mechanism, made.setting, plan, counts, asked, seed, lambda *_: None)
        return together(outcome.answers, dict.fromkeys(ASKED, whole))

    return Play(plan, told)


def grants_of(beta: float = BETA) -> Play:
    """Grants by number: one analyst pays differently for each statement, and asks the first one again."""
    made = session("grant", 8, 1.0)
    share = replace(made.setting.shares[0], statements=8, queries=64)
    setting = replace(made.setting, shares=(share,), beta=beta)
    mechanism = SESSION_MECHANISMS["grant"]
    plan = mechanism.plan(setting)
    said = (*ALONE, ALONE[0])
    some = tuple(compile_single(each, SCHEMA) for each in said)
    offers = tuple(Offer(repr(each).encode(), plan.data_cost.rho // (8 + said.index(each) % 3)) for each in said)
    asked = {share.analyst: SessionWorkload(np.arange(len(some)), some, offers)}
    whole = np.concatenate([each.counts(made.histogram) for each in some]) / setting.records

    def told(number: int) -> Told:
        counts = DenseCounts(made.histogram, setting.attributes)
        outcome = play(mechanism, setting, plan, counts, asked, number.to_bytes(32), lambda *_: None)
        return together(outcome.answers, {share.analyst: whole})

    return Play(plan, told)


def statistics_of(prior: str, beta: float = BETA) -> Play:
    """Sessions of `low_sensitivity` by number, from candidates or from a prior."""
    among = statistics_session.setting(records=2000, statements=3, sensitivity="1/400")
    setting = among if prior == "none" else statistics_session.without(among, "candidates", prior=prior)
    setting = replace(setting, beta=beta)
    histogram = statistics_session.table(2000, 0.3)
    mechanism = SESSION_MECHANISMS["low_sensitivity"]
    plan, asked = mechanism.plan(setting), statistics_session.everything_asked(setting)
    counted_in = DenseCounts(histogram, setting.attributes)
    data = database_of(setting.attributes, counted_in)

    def true_answer(statement: CompiledStatistic | CompiledWorkload) -> float:
        if isinstance(statement, CompiledStatistic):
            return float(statement.values(data)[0]) / ONE
        return float(statement.counts(histogram)[0]) / setting.records

    truth = {name: np.array([true_answer(each) for each in own.statements]) for name, own in asked.items()}

    def told(number: int) -> Told:
        outcome = play(mechanism, setting, plan, counted_in, asked, number.to_bytes(32), lambda *_: None)
        return together(outcome.answers, truth)

    return Play(plan, told)


PLAYS: dict[str, Callable[[float], Play]] = {
    **{name: partial(rounds_of, made) for name, made in (ROUNDS | TIGHT | SPARSE).items()},
    **{name: partial(sessions_of, made) for name, made in SESSIONS.items()},
    "low_sensitivity": partial(statistics_of, "none"),
    "low_sensitivity, prior": partial(statistics_of, "own"),
    "grant": grants_of,
}
