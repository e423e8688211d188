"""What is told in small rounds and sessions, with the truth, to be held against intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from harness import statistics_session
from numpy.typing import NDArray

from equipoise.accounting import Offer
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


@dataclass(frozen=True)
class Told:
    """What analysts were told in one round, and the truth in units of 2^-40, rounded; of all queries together."""

    answers: Answers
    truth: NDArray[np.float64]


@dataclass(frozen=True)
class Play:
    """A plan, and what is told in the rounds of it, by number.

    `records`: of the table; 0 where what is asked for are not counts, so that nothing but the truth refutes.
    """

    plan: MechanismPlan
    told: Callable[[int], Told]
    records: int = 0


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

    return Play(plan, told, made.setting.records)


def counted(asked: Mapping[str, CompiledWorkload], made: Case) -> dict[str, NDArray[np.float64]]:
    """True answers."""
    return {name: each.counts(made.histogram) / made.setting.records for name, each in asked.items()}


def session(
    mechanism: str,
    length: int,
    analysts: float,
    options: Mapping[str, object] = NONE,
    asked: tuple[Schema, Sequence[Statement]] = (SCHEMA, ALONE),
    histogram: NDArray[np.int64] = HISTOGRAM,
) -> Callable[[float], Play]:
    """Two analysts who ask everything that is asked, in turn; `analysts`: the epsilon of their budget."""
    schema, alone = asked
    whole = compile_workload(alone, schema)
    made = case(mechanism, {"length": length, **options}, asked=dict.fromkeys(ASKED, whole), histogram=histogram)
    shares = tuple(Share(name, whole.statement_count, whole.query_count) for name in ASKED)
    setting = replace(made.setting, shares=shares, analyst_budget=Budget(analysts, 1e-3))
    some = tuple(compile_single(each, schema) for each in alone)
    return partial(sessions_of, replace(made, setting=setting), some)


def sessions_of(given: Case, some: tuple[CompiledWorkload, ...], beta: float = BETA) -> Play:
    """Sessions by number, in which each analyst asks for `some` statements."""
    made = replace(given, setting=replace(given.setting, beta=beta))
    mechanism = SESSION_MECHANISMS[made.mechanism]
    plan = mechanism.plan(made.setting)
    slots = np.arange(len(some)) * len(ASKED)
    asked = {name: SessionWorkload(slots + place, some) for place, name in enumerate(ASKED)}
    whole = np.concatenate([each.counts(made.histogram) for each in some]) / made.setting.records

    def told(number: int) -> Told:
        seed = number.to_bytes(32)
        counts = DenseCounts(made.histogram, made.setting.attributes)
        outcome = play(mechanism, made.setting, plan, counts, asked, seed, lambda *_: None)
        return together(outcome.answers, dict.fromkeys(ASKED, whole))

    return Play(plan, told, made.setting.records)


def grants_of(beta: float = BETA) -> Play:
    """Grants by number: one analyst pays differently for each statement, and asks the first one again."""
    made = case("grant", {"length": 8})
    share = Share(next(iter(ASKED)), 8, 64)
    setting = replace(made.setting, shares=(share,), analyst_budget=Budget(1.0, 1e-3), beta=beta)
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
