"""A session's mechanism, run on statements in their order as a session would run it, and compared to the truth."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import RHO_UNIT
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod, Answers
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledStatement
from equipoise_lab.options import in_words_of_options
from equipoise_lab.simulation.baselines import GAUSSIAN, LAPLACE, noise_errors
from equipoise_lab.simulation.measure import Errors
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.session_task import SessionTask
from equipoise_lab.simulation.simulate import Begun
from equipoise_lab.simulation.task import seed_bytes
from equipoise_server.mechanisms.budget_rounding import usable_rho
from equipoise_server.mechanisms.forecasts import analyst_pair, data_pair
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.online.interface import play
from equipoise_server.mechanisms.planner import without_choice
from equipoise_server.mechanisms.registry import session_mechanism

# How statements end: with the interval of the measurement or of a test; afresh with noise; without an interval.
CERTIFIED, AFRESH, UNCERTIFIED = "certified", "afresh", "uncertified"
WAYS = {
    AnswerMethod.MEASURED: CERTIFIED,
    AnswerMethod.HYPOTHESIS: CERTIFIED,
    AnswerMethod.GAUSSIAN: AFRESH,
    AnswerMethod.LAPLACE: AFRESH,
    AnswerMethod.FITTED: AFRESH,
    AnswerMethod.UNCERTIFIED: UNCERTIFIED,
}


@dataclass(frozen=True)
class SessionRun:
    """One run. `certified`: errors of all answers with an interval, None where there are none.

    `largest_half_width`: of all intervals. `statements` counts them by `WAYS`: those that were answered afresh are
    what the hypothesis has learnt from.
    `outside_interval` counts cells whose truth lies outside their interval. `seconds` of the mechanism alone.
    """

    seed: int
    delivered: Errors
    certified: Errors | None
    largest_half_width: float
    statements: Mapping[str, int]
    outside_interval: int
    seconds: float


@dataclass(frozen=True)
class SessionReport:
    """A plan, its costs as (epsilon, delta), and what came of it.

    `alone`: what answering each statement alone with Laplace and with Gaussian noise, for the same data budget in
    equal parts, would be expected to err by; None where the budget allows no noise of that kind.
    """

    setting: PublicParameters
    plan: MechanismPlan
    data_cost: Budget
    analyst_cost: Budget | None
    alone: Mapping[str, Errors | None]
    runs: tuple[SessionRun, ...]


def simulate_session(task: SessionTask, request: Request, begun: Begun) -> SessionReport:
    """Plan a session once, and play it several times, each with a seed of its own, one more than the last.

    Args:
        task: The table, and what each analyst asks.
        request: What was typed.
        begun: Called with the number of each run; returns what hears of its progress.

    Raises:
        InvalidArgument: Naming options.
        BudgetExhausted: Naming options.
    """
    try:
        mechanism = session_mechanism(request.mechanism)
        setting = session_setting(task, request, mechanism.slotted)
        plan = without_choice(mechanism, setting).plan
        asked = task.asked(mechanism.slotted)
        for own in asked.values():
            for statement in own.statements:
                mechanism.check_statement(plan, statement)
    except (InvalidArgument, BudgetExhausted) as error:
        raise in_words_of_options(error, {**request.option_of_field, **OPTION_OF_FIELD}) from None
    truth = task.truth()
    runs = []
    for number in range(request.repeat):
        seed = request.seed + number
        progress = begun(number)
        start = time.perf_counter()
        outcome = play(mechanism, setting, plan, task.data, asked, seed_bytes(seed), progress)
        seconds = time.perf_counter() - start
        runs.append(_measured(task, truth, [outcome.answers[analyst] for analyst in asked], seed, seconds))
    return SessionReport(
        setting=setting,
        plan=plan,
        data_cost=data_pair(plan, setting),
        analyst_cost=analyst_pair(plan, setting),
        alone=alone(task, setting),
        runs=tuple(runs),
    )


OPTION_OF_FIELD = {"session.length": "--length", "statement": "--workload"}


def session_setting(task: SessionTask, request: Request, slotted: bool) -> PublicParameters:
    """Return what the mechanism plans from. Without slots several analysts are not protected from one another."""
    length, needed = request.length, task.length(slotted)
    if length is not None and length < needed:
        kind = "turns" if slotted else "statements in all"
        raise InvalidArgument("session.length", f"is {length:,}, but {needed:,} {kind} are asked")
    return of_session(request.setting(task), slotted, length)


def of_session(setting: PublicParameters, slotted: bool, length: int | None) -> PublicParameters:
    """Return the setting of a session with these shares and this length; None: as long as the shares allow.

    Several analysts who are not given slots are not protected from one another.

    Args:
        setting: of a round with these shares.
        slotted: whether statements are asked by turns.
        length: how many statements the session answers at most.
    """
    statements = [share.statements for share in setting.shares]
    needed = max(statements) if slotted else sum(statements)
    options = {**setting.options, "length": needed if length is None else length}
    if slotted or len(statements) == 1:
        return replace(setting, options=options)
    return replace(setting, options=options, analyst_budget=Budget(math.inf, 0.0))


def alone(task: SessionTask, setting: PublicParameters) -> dict[str, Errors | None]:
    """Expected errors of independent noise on each of N statements, with an N-th of the budget for each.

    Gaussian: deviation `L2 sqrt(N / (2 rho))` for the statement's sensitivity L2 (Bun & Steinke 2016, Proposition
    1.6). Laplace: scale `L1 / e` with the larger epsilon of `epsilon / N` (basic composition) and
    `sqrt(2 rho / N)` (ibid., Proposition 1.4). Where a person has M records, both move by M times as much.
    """
    statements = [statement for own in task.statements.values() for statement in own]
    cells = [statement.query_count for statement in statements]
    count, rho = len(statements), usable_rho(setting.data_budget) / RHO_UNIT
    if rho == 0:
        return {"laplace": None, "gaussian": None}
    of_record = np.array([sensitivities(statement, setting.records) for statement in statements])
    first, second = setting.person_records * of_record.T
    epsilon = max(setting.data_budget.epsilon / count, math.sqrt(2 * rho / count))
    deviation = math.sqrt(count / (2 * rho))
    return {
        "laplace": noise_errors(LAPLACE, np.repeat(first / epsilon, cells)),
        "gaussian": noise_errors(GAUSSIAN, np.repeat(second * deviation, cells)),
    }


def sensitivities(statement: CompiledStatement, records: int) -> tuple[float, float]:
    """By how much its answers move when a record is replaced, as fractions: in sum, and the root of the squares."""
    if isinstance(statement, CompiledStatistic):
        delta = float(statement.sensitivity(records))
        return delta, delta
    l1_sensitivity = statement.statement_sensitivity(0)
    return l1_sensitivity / records, math.sqrt(l1_sensitivity) / records


def _measured(
    task: SessionTask, truth: NDArray[np.float64], answers: list[Answers], seed: int, seconds: float
) -> SessionRun:
    whole = Answers.join(answers)
    values, certified = whole.values / 2.0**GRID_BITS, whole.certified
    delivered = Errors.between(values, truth)
    assert delivered is not None  # there is a statement, and each has a cell
    statements = Counter(dict.fromkeys((CERTIFIED, AFRESH, UNCERTIFIED), 0))
    for own, given in zip(task.statements.values(), answers, strict=True):
        firsts = np.cumsum([0, *(each.query_count for each in own[:-1])])
        statements.update(WAYS[AnswerMethod(number)] for number in given.methods[firsts].tolist())
    return SessionRun(
        seed=seed,
        delivered=delivered,
        certified=Errors.between(values[certified], truth[certified]),
        largest_half_width=int((whole.highs - whole.lows).max()) / 2.0 ** (GRID_BITS + 1),
        statements=dict(statements),
        outside_interval=int(np.count_nonzero(whole.misses(truth))),
        seconds=seconds,
    )
