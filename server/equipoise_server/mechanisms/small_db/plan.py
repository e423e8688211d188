"""The plan of `small_db`: the size of its databases, the epsilon of every draw, and the proven error."""

from __future__ import annotations

import math
from fractions import Fraction

from equipoise.accounting import (
    RHO_UNIT,
    ApproximateDpEvent,
    PrivacyEvent,
    ZcdpEvent,
)
from equipoise.accounting import exponential_mechanism_rho as draws_rho
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.universe_size import size_in_words
from equipoise.records.codec import COUNT, FRACTION, canonical_object, key
from equipoise_server.mechanisms.budget_rounding import MIN_EPSILON, epsilon_within, usable_rho, with_samplers
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds
from equipoise_server.randomness.exponential import UNIT_BITS

EXPECTED_PART = 0.25  # of the proven error that the mean error comes to, measured on small universes
MAX_DATABASES = 1 << 18
MAX_SIZE = 256  # records of a database
MAX_NATS = 1 << 13  # nats: databases that are less probable than e^-8192 times the best are taken for as probable
LOST = Fraction(1, 1 << 128)  # above 2^18 e^-8192, what that can add to all of them together
SCORE_SECONDS = 4e-9  # of one query on one database, for each of its records and one more
RECORD_SECONDS = 3e-8  # of listing a database, for each of its records


@canonical_object
class SmallDatabaseParameters(Parameters):
    """The public parameters of `small_db`.

    `size`: the records of each database (m). `epsilon`: of each analyst's draw. `half_width`: of every interval, in
    units of 2^-40.
    """

    size: int = key("size", COUNT)
    epsilon: Fraction = key("epsilon", FRACTION)
    half_width: int = key("half_width", COUNT)


def plan_small_database(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a round from public facts, under the mechanism's own name."""
    check_setting(setting)
    sizes = feasible_sizes(setting)
    epsilon, part = epsilon_of_draws(setting)
    errors = {size: promised(setting, size, epsilon) for size in sizes}
    size = min(errors, key=lambda each: errors[each])
    # A unit for the rounding of answers, and far more than doubles can err for the half-width itself.
    half_width = min(1 << GRID_BITS, math.ceil(errors[size] * (1 + 1e-9) * 2**GRID_BITS) + 1)
    parameters = SmallDatabaseParameters(size, epsilon, half_width)
    databases = number_of_databases(setting.universe_size, size)
    scored = databases * (RECORD_SECONDS * size + SCORE_SECONDS * setting.queries * (size + 1))
    return make_plan(
        name,
        setting,
        parameters,
        with_samplers([part], len(setting.shares) * LOST, setting.data_budget.epsilon),
        max_half_width=half_width / 2**GRID_BITS,
        expected_error=EXPECTED_PART * errors[size],
        seconds=counting_seconds(setting) + scored,
        memory_bytes=counting_bytes(setting) + 24 * databases * (size + 4),
    )


def number_of_databases(universe: int, size: int) -> int:
    """Return the number of multisets of `size` records: `C(|X| + m - 1, m)`.

    Args:
        universe: how many records can exist.
        size: of one database, in records.
    """
    return math.comb(universe + size - 1, size)


def units_of_score(epsilon: Fraction, size: int) -> int:
    """Return `epsilon / (2 m)` in units of 2^-48 nats, rounded down; above 2^12, as epsilon is at least 10^-8.

    Args:
        epsilon: of the one draw.
        size: of one database, in records.
    """
    return math.floor(epsilon * (1 << UNIT_BITS) / (2 * size))


def feasible_sizes(setting: PublicParameters) -> range:
    """Return the sizes with few enough databases. Raises `InvalidArgument`, saying what would be feasible."""
    universe, limit = setting.universe_size, f"at most {MAX_DATABASES:,} databases can be drawn from"
    for option in setting.options:
        if option != "database_size":
            raise InvalidArgument(f"options.{option}", "unknown; there is database_size")
    if universe > MAX_DATABASES:
        largest = f"with one record each, {MAX_DATABASES:,} possible records"
        raise InvalidArgument(
            "universe_size", f"has {size_in_words(universe)} possible records, but {limit}: {largest}"
        )
    most = 1
    while most < MAX_SIZE and number_of_databases(universe, most + 1) <= MAX_DATABASES:
        most += 1
    if "database_size" not in setting.options:
        return range(1, most + 1)
    size = setting.options["database_size"]
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise InvalidArgument("options.database_size", "must be a whole number of records, at least 1")
    if size > most:
        raise InvalidArgument(
            "options.database_size", f"{limit}, and over {universe:,} possible records that is {most} records each"
        )
    return range(size, size + 1)


def epsilon_of_draws(setting: PublicParameters) -> tuple[Fraction, PrivacyEvent]:
    """Return the epsilon of each analyst's draw and its event, in pure epsilon or in rho, whichever allows more."""
    analysts = len(setting.shares)
    plain = Fraction(math.floor(Fraction(setting.data_budget.epsilon) * RHO_UNIT) // analysts, RHO_UNIT)
    concentrated = epsilon_within(4 * Fraction(usable_rho(setting.data_budget), RHO_UNIT) / analysts)
    if max(plain, concentrated) < MIN_EPSILON:
        raise BudgetExhausted(
            "data_budget: is too small to draw a database for every analyst; raise it, or have fewer analysts"
        )
    if plain >= concentrated:
        return plain, ApproximateDpEvent("draws", analysts * plain, Fraction(0))
    return concentrated, ZcdpEvent("draws", draws_rho(concentrated, 1), analysts)


def promised(setting: PublicParameters, size: int, epsilon: Fraction) -> float:
    """Return the theorem's bound for databases of `size` records: the best one's error plus the draw's error.

    Args:
        setting: of the round.
        size: of one database, in records.
        epsilon: of the one draw.

    Returns:
        A fraction of the records.
    """
    databases, analysts = number_of_databases(setting.universe_size, size), len(setting.shares)
    # Rounded down to whole units, epsilon is a little less than what is charged.
    rate = units_of_score(epsilon, size) * size / 2**UNIT_BITS
    drawn: float = (math.log(databases) + math.log(analysts / setting.beta)) / (rate * setting.records)
    return min(1.0, nearest(setting, size) + drawn)


def nearest(setting: PublicParameters, size: int) -> float:
    """How far the best database of `m` records may be from the data on any of the `k` queries of one analyst.

    The least of three: `sqrt(log(2 k) / (2 m))`, as `m` records drawn from the data miss no query by more with
    positive probability (Hoeffding 1963); `floor(N/2) ceil(N/2) / (N m)` for `N` possible records, as the data's
    counts, times `m / n`, can be rounded so that all that are rounded up gain no more together; and nothing where
    `m` is a multiple of `n`, as the data itself is among the databases then, if need be several times over.
    """
    universe = setting.universe_size
    if size % setting.records == 0:
        return 0.0
    rounded = (universe // 2) * (universe - universe // 2) / (universe * size)
    return min(math.sqrt(math.log(2 * setting.largest_share) / (2 * size)), rounded)
