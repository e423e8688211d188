"""What `equilibrium` plans from public things: its parameters, both costs, and what it promises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from fractions import Fraction

from equipoise import accounting
from equipoise.accounting import DELTA_UNIT, RHO_UNIT, Cost, rounded_up
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise_server.game.parameters import GameParameters, Play
from equipoise_server.ledger.conversion import epsilon_for, mixture_delta
from equipoise_server.mechanisms import tuning
from equipoise_server.mechanisms.interface import GRID_BITS, Plan, Setting
from equipoise_server.mechanisms.repair import SCORE_BITS, RepairParameters, bound_on_grid
from equipoise_server.mechanisms.sparse_vector import SparseVector
from equipoise_server.mechanisms.tuning import Size
from equipoise_server.mechanisms.unprotected import choose_unprotected_game
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

REPAIR_PLACES = Fraction(1, 20)  # of an analyst's statements, may be answered afresh
DETECTION_SHARE = Fraction(3, 4)  # of the budget for repair: every certified bound carries the tests' noise
EPSILON_BITS = 40  # the repair's epsilons are rounded down to units of 2^-40
# What may be forced: words; numbers with the largest value of each, and whether it is whole and at least 1.
WORDS = {"play": ("mixed", "sampled"), "units": ("statement", "query")}
NUMBERS = {
    "rounds": (2**17, True),
    "batch": (2**20, True),
    "draws": (2**20, True),
    "density": (2**40, False),
    "query_rate": (300, False),
    "data_rate": (2**14, False),
    "threshold": (1, False),
    "cut_off": (2**40, False),
    "game_share": (1, False),
}
SMALLEST_BETA = 1e-12
SMALLEST_EPSILON = Fraction(1, 10**8)  # below it the tests' noise would be coarser than what its sampler draws


@dataclass(frozen=True)
class EquilibriumParameters:
    """All public parameters of one run. `repair` is None where the game has the whole data budget."""

    game: GameParameters
    repair: RepairParameters | None

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
        game, repairs = GameParameters(**fields["game"]), fields["repair"]
        if repairs is None:
            return EquilibriumParameters(game, None)
        fractions = {key: Fraction(repairs[key]) for key in ("test_epsilon", "answer_epsilon")}
        bounds = {"laplace_bounds": tuple(repairs["laplace_bounds"])}
        return EquilibriumParameters(game, RepairParameters(**(repairs | fractions | bounds)))


def plan_equilibrium(name: str, setting: Setting) -> Plan:
    """Parameters by `tuning`, or forced through the options; refused where a budget would be exceeded."""
    check(setting)
    size = Size.of(setting)
    choose = tuning.choose_game if setting.protects_analysts else choose_unprotected_game
    game = forced_game(setting, choose(setting))
    game_rho = rounded_up(tuning.data_rho(game, size), RHO_UNIT)
    allowed = tuning.usable_rho(setting.data_budget)
    if game_rho > allowed:
        raise BudgetExhausted("data_budget: the game alone would cost more; allow more or ask for less")
    repairs = None
    if tuning.game_share(setting) < 1:
        repairs = plan_repair(setting, game, Fraction(allowed - game_rho, RHO_UNIT))
    parameters = EquilibriumParameters(game, repairs)
    data_cost = total_data_cost(parameters, size, setting)
    analyst_cost = total_analyst_cost(parameters, size, setting)
    for field, cost, budget in (
        ("data_budget", data_cost, setting.data_budget),
        ("analyst_budget", analyst_cost, setting.analyst_budget),
    ):
        if cost is not None and epsilon_for(cost, budget.delta) > budget.epsilon:
            raise BudgetExhausted(f"{field}: the round would cost more; allow more or ask for less")
    worst = 2**GRID_BITS if repairs is None else max(repairs.certified_bound, *repairs.laplace_bounds)
    return Plan(
        mechanism=name,
        parameters=parameters.to_json(),
        data_cost=data_cost,
        analyst_cost=analyst_cost,
        promised_error=worst / 2**GRID_BITS,
        uncertified_at_most=uncertified_at_most(setting, parameters, size),
        seconds=predicted_seconds(game, size),
        memory_bytes=300 * 2**20 + 8 * (6 * size.universe + 40 * size.queries),
    )


def check(setting: Setting) -> None:
    """Refuses what `equilibrium` cannot do, naming the field."""
    if setting.unit != "query":
        raise InvalidArgument("unit", "equilibrium serves unit = query only, so far")
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
        raise InvalidArgument("shares", "the game needs at least 2 statements in all")


def check_options(setting: Setting) -> None:
    """Refuses options that are unknown or out of range, naming them, before anything is computed from them."""
    for name, value in sorted(setting.options.items()):
        if name in WORDS:
            if value not in WORDS[name]:
                raise InvalidArgument(f"options.{name}", f"must be {' or '.join(WORDS[name])}")
            continue
        if name not in NUMBERS:
            raise InvalidArgument(f"options.{name}", f"unknown; there is {', '.join(sorted({*WORDS, *NUMBERS}))}")
        largest, whole = NUMBERS[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not whole <= value <= largest:
            raise InvalidArgument(f"options.{name}", f"must be a number between {int(whole)} and {largest}")
        if (whole or name == "cut_off") and value != int(value):
            raise InvalidArgument(f"options.{name}", "must be a whole number")
    if tuning.game_share(setting) == 0:
        raise InvalidArgument("options.game_share", "must be above 0")
    if tuning.every_query_a_unit(setting) and setting.protects_analysts:
        raise InvalidArgument("options.units", "must be statement: hiding one cell of a table hides nothing")


def forced_game(setting: Setting, chosen: GameParameters | None) -> GameParameters:
    """The chosen game with what the options force; refused where it cannot be played within the budgets."""
    size, options = Size.of(setting), setting.options
    if chosen is None and not {"rounds", "batch", "density", "query_rate", "data_rate"} <= set(options):
        raise BudgetExhausted("no game of this size keeps to both budgets; allow more or ask for less")
    play: Play = "sampled" if options.get("play") == "sampled" else "mixed"
    game = chosen or GameParameters(play, 1, 1, 1, 1.0, 0, 0)
    game = replace(
        game,
        rounds=_whole(options, "rounds", game.rounds),
        batch=_whole(options, "batch", game.batch),
        draws=_whole(options, "draws", game.draws),
        density=_real(options, "density", game.density),
    )
    game = tuning.with_steps(
        game,
        _real(options, "query_rate", (chosen or game).query_rate(size.records)),
        _real(options, "data_rate", (chosen or game).data_rate),
        size.records,
    )
    problem = game.problem(size.records, size.units)
    if problem:
        raise InvalidArgument("options", problem)
    if not tuning.within_budgets(game, size, setting, 1.0):
        raise BudgetExhausted("options: the forced game costs more than the round's budgets")
    return game


def plan_repair(setting: Setting, game: GameParameters, rho: Fraction) -> RepairParameters:
    """Thresholds, cut-offs and noise from what the game leaves of the data budget, and the bounds they give."""
    size, beta, records = Size.of(setting), setting.beta, setting.records
    cut_offs = {
        share.analyst: min(
            share.statements,
            _whole(setting.options, "cut_off", max(1, math.ceil(REPAIR_PLACES * share.statements))),
        )
        for share in setting.shares
    }
    places = max(1, sum(cut_offs.values()))
    test_epsilon = _epsilon(DETECTION_SHARE * rho / places)
    answer_epsilon = _epsilon((1 - DETECTION_SHARE) * rho / places)
    if min(test_epsilon, answer_epsilon) < SMALLEST_EPSILON:
        raise BudgetExhausted("data_budget: too little is left for repair; allow more or ask for less")
    scale = records << SCORE_BITS
    threshold = math.ceil(_real(setting.options, "threshold", tuning.sampling_error(game, size, beta / 4)) * scale)
    vector = SparseVector(test_epsilon, 1 << SCORE_BITS, threshold, 1)
    # beta is shared out: half to the tests, a quarter to the thresholds, a quarter to the answers' noise.
    certified = (
        threshold
        + vector.test_noise.quantile(beta / 2 / size.units)
        + vector.threshold_noise.quantile(beta / 4 / places)
        + 1  # the score's own rounding
    )
    laplace = [
        DiscreteLaplace(answer_epsilon / sensitivity).quantile(beta / 8 / size.queries) for sensitivity in (1, 2)
    ]
    return RepairParameters(
        threshold=threshold,
        test_epsilon=test_epsilon,
        answer_epsilon=answer_epsilon,
        cut_offs=cut_offs,
        certified_bound=bound_on_grid(certified, scale),
        laplace_bounds=(bound_on_grid(laplace[0], records), bound_on_grid(laplace[1], records)),
    )


def total_data_cost(parameters: EquilibriumParameters, size: Size, setting: Setting) -> Cost:
    """Game, detection and answers, all at their caps, and the truncation of every sampler."""
    repairs = parameters.repair
    rho, truncated = Fraction(tuning.data_rho(parameters.game, size)), game_sampling_slack(parameters.game)
    if repairs is None:
        slack = sampler_delta(truncated, setting.data_budget.epsilon)
        return Cost(rho=rounded_up(rho, RHO_UNIT), delta=rounded_up(slack, DELTA_UNIT))
    places = sum(repairs.cut_offs.values())
    rho += accounting.sparse_vector_rho(repairs.test_epsilon, places)
    rho += accounting.laplace_rho(repairs.answer_epsilon, places)
    vector = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1)
    truncated += (
        places * vector.threshold_noise.truncation_delta()
        + size.units * vector.test_noise.truncation_delta()
        + 2 * size.queries * DiscreteLaplace(repairs.answer_epsilon / 2).truncation_delta()
    )
    slack = sampler_delta(truncated, setting.data_budget.epsilon)
    return Cost(rho=rounded_up(rho, RHO_UNIT), delta=rounded_up(slack, DELTA_UNIT))


def total_analyst_cost(parameters: EquilibriumParameters, size: Size, setting: Setting) -> Cost | None:
    """The game's cost: a rho in mixed play, an (epsilon, delta) pair in sampled play. Repair costs nothing.

    None where the setting does not protect the analysts.
    """
    if not setting.protects_analysts:
        return None
    slack = sampler_delta(game_sampling_slack(parameters.game), setting.analyst_budget.epsilon)
    if parameters.game.play == "mixed":
        rho = tuning.analyst_rho(parameters.game, size)
        return Cost(rho=rounded_up(rho, RHO_UNIT), delta=rounded_up(slack, DELTA_UNIT))
    # The budget's epsilon rounded down to whole units, and delta at exactly that epsilon.
    epsilon = math.floor(Fraction(setting.analyst_budget.epsilon) * RHO_UNIT)
    delta = mixture_delta(tuning.analyst_mixture(parameters.game, size), epsilon / RHO_UNIT)
    return Cost(epsilon=epsilon, delta=rounded_up(Fraction(delta) + slack, DELTA_UNIT))


def game_sampling_slack(game: GameParameters) -> Fraction:
    """Total variation between the records' sampler and the exact law: 2^-128 a draw at most."""
    return Fraction(game.rounds * game.batch, 2**128)


def sampler_delta(total_variation: Fraction, epsilon: float) -> Fraction:
    """Delta that a total-variation slack costs, as it is met on both sides: (1 + e^epsilon) times it."""
    return total_variation * math.ceil(1 + math.exp(epsilon))


def uncertified_at_most(setting: Setting, parameters: EquilibriumParameters, size: Size) -> int:
    """At most how many queries can end uncertified.

    None where every analyst has one place more than the game may mishandle statements (once the last place is
    used, nothing more is tested) and the threshold lies above the game's bound and the tests' noise; otherwise
    nothing but the number of places limits it.
    """
    repairs, game = parameters.repair, parameters.game
    if repairs is None:
        return size.queries
    noise = SparseVector(repairs.test_epsilon, 1 << SCORE_BITS, repairs.threshold, 1).test_noise
    reach = tuning.game_bound(game, size, setting.beta / 4) * (setting.records << SCORE_BITS)
    enough = all(
        repairs.cut_offs[share.analyst] >= min(share.statements, math.ceil(game.density))
        for share in setting.shares
    )
    if enough and repairs.threshold > reach + 2 * noise.quantile(setting.beta / 4 / size.units):
        return 0
    return sum(
        share.queries - repairs.cut_offs[share.analyst]
        for share in setting.shares
        if repairs.cut_offs[share.analyst] < share.statements
    )


def predicted_seconds(game: GameParameters, size: Size) -> float:
    """A rough prediction for one ordinary core: queries and universe cells touched a round."""
    cells = size.universe + (4 * size.queries if game.play == "mixed" else game.draws * 2000)
    return 2 + 1e-5 * size.queries + game.rounds * (cells * 3e-7 + size.queries * game.batch * 2e-9 + 2e-3)


def _epsilon(rho: Fraction) -> Fraction:
    """The largest epsilon on the grid with `epsilon^2 / 2 <= rho`."""
    return Fraction(math.isqrt(int(2 * rho * 4**EPSILON_BITS)), 2**EPSILON_BITS)


def _whole(options: Mapping[str, object], name: str, default: int) -> int:
    value = options.get(name, default)
    return int(value) if isinstance(value, int | float) else default


def _real(options: Mapping[str, object], name: str, default: float) -> float:
    value = options.get(name, default)
    return float(value) if isinstance(value, int | float) else default
