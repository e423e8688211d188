"""A mechanism, run as a round would run it, and compared with the truth."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import MechanismPlan
from equipoise_lab.options import in_words_of_options
from equipoise_lab.simulation.baselines import gaussian_deviation, gaussian_errors, uniform_guess
from equipoise_lab.simulation.measure import Errors, Run, measure_run
from equipoise_lab.simulation.request import Request
from equipoise_lab.simulation.task import Task, seed_bytes
from equipoise_server.mechanisms.equilibrium.cost_model import Size, game_bound
from equipoise_server.mechanisms.equilibrium.parameters import EquilibriumParameters
from equipoise_server.mechanisms.forecasts import analyst_pair, data_pair
from equipoise_server.mechanisms.interface import OnStep, PublicParameters
from equipoise_server.mechanisms.planner import without_choice
from equipoise_server.mechanisms.registry import PLANNERS, mechanism
from equipoise_server.memory import peak_memory_bytes

Begun = Callable[[int], OnStep]  # is told that a run begins, and gives what follows it


@dataclass(frozen=True)
class GamePromise:
    """Fewer than `mishandled` units have a query whose synopsis error exceeds `error`; above 1 it says nothing."""

    error: float
    mishandled: float


@dataclass(frozen=True)
class Report:
    """A plan, its costs as (epsilon, delta), and what came of it.

    `analyst_cost` is None where analysts are not protected. `gaussian` is what independent Gaussian
    noise on every answer would be expected to err by for the same data budget and shares: a table that several
    analysts ask for is paid for by each, and so it protects the analysts from one another, too.
    """

    setting: PublicParameters
    plan: MechanismPlan
    queries: int
    data_cost: Budget
    analyst_cost: Budget | None
    game: GamePromise | None
    uniform: Errors
    gaussian: Errors | None
    runs: tuple[Run, ...]
    peak_memory_bytes: int


def simulate(task: Task, request: Request, begun: Begun) -> Report:
    """Plan once and run several times, each time with its own seed, one more than the last.

    Args:
        task: the table, and what each analyst asks of it.
        request: the mechanism, its budgets and options, the first seed and the number of runs.
        begun: is called with the number of each run; it returns what is told of that run's progress.

    Returns:
        The errors of every run, and those of the baselines, as fractions of the records.

    Raises:
        InvalidArgument: an option is wrong, or no query is asked; the error names the option.
        BudgetExhausted: a budget is too small for the mechanism; the error names its option.
    """
    setting = request.setting(task)
    try:
        plan = plan_of(request.choose_by.mechanism(request.mechanism), setting)
    except (InvalidArgument, BudgetExhausted) as error:
        raise in_words_of_options(error, request.option_of_field) from None
    run = mechanism(plan.mechanism).run
    together = task.together
    truth = task.data.count(together) / task.records
    runs = []
    for number in range(request.repeat):
        seed = request.seed + number
        progress = begun(number)
        start = time.perf_counter()
        outcome = run(setting, plan, task.data, task.workloads, seed_bytes(seed), progress)
        seconds = time.perf_counter() - start
        outcome = replace(outcome, answers={analyst: outcome.answers[analyst] for analyst in task.workloads})
        runs.append(measure_run(together, truth, outcome, seed, seconds))
    uniform = Errors.between(uniform_guess(together), truth)
    if uniform is None:
        raise InvalidArgument("--workload", "holds no query")
    l1_sensitivity = sum(share.l1_sensitivity for share in setting.shares)
    deviation = gaussian_deviation(l1_sensitivity, setting.records, setting.data_budget) * setting.person_records
    return Report(
        setting=setting,
        plan=plan,
        queries=together.query_count,
        data_cost=data_pair(plan, setting),
        analyst_cost=analyst_pair(plan, setting),
        game=game_promise(plan, setting),
        uniform=uniform,
        gaussian=None if math.isinf(deviation) else gaussian_errors(deviation, len(truth)),
        runs=tuple(runs),
        peak_memory_bytes=peak_memory_bytes(),
    )


def plan_of(name: str, setting: PublicParameters) -> MechanismPlan:
    """Return the plan of the mechanism, or planner, called `name`, as a server makes it. Raises its refusal."""
    if name in PLANNERS:
        return PLANNERS[name].compare(setting).plan
    return without_choice(mechanism(name), setting).plan


def game_promise(plan: MechanismPlan, setting: PublicParameters) -> GamePromise | None:
    """Return the proven bound on the synopsis before repair, where the mechanism plays a game."""
    if plan.mechanism != "equilibrium":
        return None
    game = EquilibriumParameters.from_json(plan.parameters).game
    if game is None:
        return None
    return GamePromise(game_bound(game, Size.of(setting), setting.beta / 4), game.density)
