"""What `equilibrium` plans from public things: its parameters, both costs, and what it promises."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from fractions import Fraction

from equipoise import accounting
from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost, rounded_up
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise_server.game.parameters import GameParameters
from equipoise_server.ledger.conversion import epsilon_for, mixture_delta
from equipoise_server.mechanisms import analyst_repair_plan, statement_repair_plan, tuning
from equipoise_server.mechanisms.analyst_repair import AnalystRepairParameters
from equipoise_server.mechanisms.choosing import choose
from equipoise_server.mechanisms.forecast import predicted_memory, predicted_seconds
from equipoise_server.mechanisms.interface import GRID_BITS, Plan, Setting
from equipoise_server.mechanisms.options import check_options
from equipoise_server.mechanisms.repair import RepairParameters
from equipoise_server.mechanisms.tuning import Size

SMALLEST_BETA = 1e-12


@dataclass(frozen=True)
class EquilibriumParameters:
    """All public parameters of one run. `repair` is None where the game has the whole data budget."""

    game: GameParameters
    repair: RepairParameters | AnalystRepairParameters | None

    def to_json(self) -> str:
        """Canonical JSON; fractions as `numerator/denominator`."""
        return json.dumps(
            {"game": asdict(self.game), "repair": None if self.repair is None else asdict(self.repair)},
            default=str,
            sort_keys=True,
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> EquilibriumParameters:
        """What `to_json` wrote."""
        fields = json.loads(text)
        game, repair = GameParameters(**fields["game"]), fields["repair"]
        if repair is None:
            return EquilibriumParameters(game, None)
        if "places" in repair:
            return EquilibriumParameters(game, AnalystRepairParameters.from_fields(repair))
        fractions = {key: Fraction(repair[key]) for key in ("test_epsilon", "answer_epsilon")}
        bounds = {"laplace_bounds": tuple(repair["laplace_bounds"])}
        return EquilibriumParameters(game, RepairParameters(**(repair | fractions | bounds)))


def plan_equilibrium(name: str, setting: Setting) -> Plan:
    """Parameters by `choosing`, or forced through the options; refused where a budget would be exceeded."""
    check(setting)
    size, places = Size.of(setting), None
    if setting.unit == "analyst":
        places = analyst_repair_plan.plan_places(setting)
    choice = choose(setting, places)
    game, playing = choice.game, choice.playing
    game_rho = rounded_up(tuning.data_rho(game, size), RHO_UNIT)
    allowed = tuning.usable_rho(setting.data_budget)
    if game_rho > allowed:
        raise BudgetExhausted("data_budget: the game alone would cost more; allow more or ask for less")
    left = Fraction(allowed - game_rho, RHO_UNIT)
    repair_seconds = 0.0
    if tuning.forced_share(setting) == 1:
        # Nothing is tested or repaired, so nothing is certified, and no repair places need hiding.
        parameters = EquilibriumParameters(game, None)
        promised_error, uncertified = 1.0, size.queries
    elif places is not None:
        analyst_repair = analyst_repair_plan.plan_analyst_repair(setting, game, places, left)
        parameters = EquilibriumParameters(game, analyst_repair)
        promised_error = analyst_repair_plan.promised(analyst_repair)
        uncertified = analyst_repair_plan.uncertified_queries(setting, analyst_repair, game, size)
        repair_seconds = analyst_repair_plan.repair_seconds(analyst_repair, size)
    else:
        repair = statement_repair_plan.plan_statement_repair(setting, game, left)
        parameters = EquilibriumParameters(game, repair)
        promised_error = max(repair.certified_bound, *repair.laplace_bounds) / 2**GRID_BITS
        uncertified = statement_repair_plan.uncertified_queries(setting, repair, game, size)
    data_cost = total_data_cost(parameters, size, setting)
    analyst_cost = total_analyst_cost(parameters, size, setting, playing.analyst_budget.epsilon)
    for field, cost, budget in (
        ("data_budget", data_cost, setting.data_budget),
        ("analyst_budget", analyst_cost, setting.analyst_budget),
    ):
        if cost is not None and epsilon_for(cost, budget.delta) > budget.epsilon:
            raise BudgetExhausted(f"{field}: the round would cost more; allow more or ask for less")
    return Plan(
        mechanism=name,
        parameters=parameters.to_json(),
        data_cost=data_cost,
        analyst_cost=analyst_cost,
        promised_error=promised_error,
        uncertified_at_most=uncertified,
        seconds=predicted_seconds(game, size) + repair_seconds,
        memory_bytes=predicted_memory(size),
    )


def check(setting: Setting) -> None:
    """Refuses what `equilibrium` cannot do, naming the field."""
    if setting.unit not in ("query", "analyst"):
        raise InvalidArgument("unit", 'must be "query" or "analyst"')
    if not setting.shares or any(s.statements < 1 or s.queries < s.statements for s in setting.shares):
        raise InvalidArgument("shares", "each needs at least 1 statement, and a query for each statement")
    for field, budget in (("data_budget", setting.data_budget), ("analyst_budget", setting.analyst_budget)):
        unlimited = field == "analyst_budget" and budget.epsilon == math.inf
        if not ((0 < budget.epsilon <= 50 or unlimited) and 0 < budget.delta < 1):
            raise InvalidArgument(field, "needs 0 < epsilon <= 50 and 0 < delta < 1")
    if not SMALLEST_BETA <= setting.beta < 1:
        raise InvalidArgument("beta", f"must lie between {SMALLEST_BETA} and 1")
    if not 1 <= setting.records < 2**40:
        raise InvalidArgument("records", f"must lie between 1 and {2**40 - 1}")
    check_options(setting)
    if Size.of(setting).units < 2:
        protected = "analysts" if setting.unit == "analyst" else "statements in all"
        raise InvalidArgument("shares", f"the game needs at least 2 {protected}")


def total_data_cost(parameters: EquilibriumParameters, size: Size, setting: Setting) -> Cost:
    """Game, detection and answers, all at their caps, and the truncation of every sampler."""
    repairs = parameters.repair
    rho, truncated = Fraction(0), Fraction(0)
    if isinstance(repairs, AnalystRepairParameters):
        rho, truncated = analyst_repair_plan.repair_data_cost(repairs, size)
    elif repairs is not None:
        rho, truncated = statement_repair_plan.repair_data_cost(repairs, size)
    rho += Fraction(tuning.data_rho(parameters.game, size))
    slack = sampler_delta(truncated + game_sampling_slack(parameters.game), setting.data_budget.epsilon)
    return Cost(rho=rounded_up(rho, RHO_UNIT), delta=rounded_up(slack, DELTA_UNIT))


def total_analyst_cost(
    parameters: EquilibriumParameters, size: Size, setting: Setting, game_epsilon: float
) -> Cost | None:
    """The game's cost: a rho in mixed play, an (epsilon, delta) pair in sampled play; and that of repair places.

    Where a statement is protected, repair costs nothing. `game_epsilon`: at which sampled play is charged. None
    where the setting does not protect the analysts.
    """
    if not setting.protects_analysts:
        return None
    truncated, beyond, hiding = game_sampling_slack(parameters.game), Fraction(0), Fraction(0)
    if isinstance(parameters.repair, AnalystRepairParameters):
        places = parameters.repair.places
        truncated += analyst_repair_plan.places_truncation(places, size)
        beyond, hiding = analyst_repair_plan.places_delta(places, setting), places.epsilon
    slack = sampler_delta(truncated, setting.analyst_budget.epsilon) + beyond
    if parameters.game.play == "mixed":
        rho = Fraction(tuning.analyst_rho(parameters.game, size)) + accounting.repair_places_rho(hiding)
        return Cost(rho=rounded_up(rho, RHO_UNIT), delta=rounded_up(slack, DELTA_UNIT))
    # The game's epsilon rounded down to whole units, and delta at exactly that epsilon.
    epsilon = math.floor(Fraction(game_epsilon) * RHO_UNIT)
    delta = mixture_delta(tuning.analyst_mixture(parameters.game, size), epsilon / RHO_UNIT)
    epsilon += rounded_up(hiding, RHO_UNIT)
    return Cost(epsilon=epsilon, delta=rounded_up(Fraction(delta) + slack, DELTA_UNIT))


def game_sampling_slack(game: GameParameters) -> Fraction:
    """Total variation between the records' sampler and the exact law: 2^-128 a draw at most."""
    return Fraction(game.rounds * game.batch, 2**128)


def sampler_delta(total_variation: Fraction, epsilon: float) -> Fraction:
    """Delta that a total-variation slack costs, as it is met on both sides: (1 + e^epsilon) times it."""
    return total_variation * math.ceil(1 + math.exp(epsilon))
