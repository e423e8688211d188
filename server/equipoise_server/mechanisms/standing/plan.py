"""The plan of `standing`, from public facts: which measurement answers, and how far its answers may be off.

It costs nothing: the measurement has been paid for, and is public.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import MechanismPlan, Share
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.reach import log_chance, most_bits, reaches
from equipoise.residuals.released import ReleasedMeasurement
from equipoise.residuals.variances import cell_variances, largest_variance
from equipoise_server.mechanisms.checking import check_setting
from equipoise_server.mechanisms.expected_error import COVERED, gaussian_mean, mean_over_queries, mixed_error
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.residuals.sum_error import sum_error
from equipoise_server.mechanisms.running_time import (
    FITTING_BYTES,
    QUERY_BYTES,
    QUERY_SECONDS,
    START_SECONDS,
    listed_bytes,
    listed_seconds,
)
from equipoise_server.mechanisms.standing.released import named_measurement

RECORDS = 1 << 18  # of the synthetic table
SWEEP_SECONDS = 2e-8  # of one table in one sweep of the fit, for each record of the universe; good to a factor of 3
SWEEPS = 12
ANSWER_SECONDS = 8e-6  # of one query
SLACK = 1 + 1e-5  # on promises: more than doubles and the units of answers can err


@canonical_object
class StandingParameters(Parameters):
    """All public parameters of one run.

    `measurement`: which one answers. `log`: of 2 over beta (`reach.log_chance`), from which half-widths follow.
    `synopsis`: records of the synthetic table.
    """

    measurement: ReleasedMeasurement = key("measurement", codec_of(ReleasedMeasurement))
    log: Fraction = key("log_chance", FRACTION)
    synopsis: int = key("synopsis_records", COUNT)


def check_tells_all(setting: PublicParameters) -> None:
    """Raise `InvalidArgument`, naming the share, unless the measurement tells whatever the shares allow.

    A share that does not say how many attributes a statement may be about may ask about all of them together.
    """
    family = named_measurement(setting).noise.family
    telling = [axis for axis, size in enumerate(setting.attributes) if size > 1]
    told = 0
    for ways in range(1, len(telling) + 1):
        if not all(map(family.holds, itertools.combinations(telling, ways))):
            break
        told = ways
    for index, share in enumerate(setting.shares):
        if told < min(share.ways or len(telling), len(telling)):
            asked = f"{share.ways} attributes" if share.ways else "all attributes, as it does not declare how many"
            problem = f"allows statements about {asked}; the standing measurement tells all that are about {told}"
            raise InvalidArgument(f"shares[{index}].ways", problem)


def plan_standing(name: str, setting: PublicParameters) -> MechanismPlan:
    """Plan a round from public facts: nothing is charged to anybody.

    `max_half_width` holds for whatever the family tells: the largest variance, the longest code word (`reach`), and
    a record more, as sums are rounded down to whole records.
    """
    check_setting(setting)
    measurement = named_measurement(setting)
    noise, log = measurement.noise, log_chance(setting.beta)
    tables = len(noise.largest)
    if setting.enumerable:
        fitting = SWEEP_SECONDS * SWEEPS * tables * setting.universe_size
        held = 2 * FITTING_BYTES * setting.universe_size
    else:
        fitting, held = listed_seconds(tables), listed_bytes(tables, len(setting.attributes))
    return make_plan(
        name,
        setting,
        StandingParameters(measurement, log, RECORDS),
        [],
        max_half_width=half_width(noise, log, setting.records),
        expected_error=expected_error(noise, setting),
        seconds=START_SECONDS + fitting + ANSWER_SECONDS * setting.statements + QUERY_SECONDS * setting.queries,
        memory_bytes=held + QUERY_BYTES * setting.queries,
    )


def half_width(noise: ResidualNoise, log: Fraction, records: int) -> float:
    """Return the largest half-width of any answer that the family tells, as a fraction of the records.

    Args:
        noise: of every residual.
        log: the natural logarithm of 2 / beta, rounded up.
        records: the public number of records.
    """
    widest = 0.0
    for axes, bits in most_bits(noise.family).items():
        reach = float(reaches(log, np.array([bits]))[0])
        widest = max(widest, reach * math.sqrt(largest_variance(noise, axes)))
    return min(1.0, (widest + 1) / records * SLACK)


def expected_error(noise: ResidualNoise, setting: PublicParameters) -> float:
    """Return the mean error over all declared queries as the noise alone makes it, as a fraction of the records.

    Tables count with the mean over the cells of the largest tables that a share may ask about. A predicate counts
    with the mean over these tables of one that covers a quarter of the table's cells, drawn at random, and so does
    every condition of a share that must hold some. Where sums are expected, every answer counts as one: of each
    attribute of these tables, in a cell of all others.
    """
    tables = {share.ways: _tables_asked(noise, share) for share in setting.shares}
    if setting.sums:
        sums = {ways: sum_error(noise, asked) / setting.records for ways, asked in tables.items()}
        return mean_over_queries(setting, lambda share: min(1.0, sums[share.ways]))
    cells = {ways: cell_error(noise, asked) / setting.records for ways, asked in tables.items()}
    predicates = {ways: predicate_error(noise, asked) / setting.records for ways, asked in tables.items()}
    return mean_over_queries(
        setting, lambda share: min(1.0, mixed_error(share, predicates[share.ways], cells[share.ways]))
    )


def _tables_asked(noise: ResidualNoise, share: Share) -> tuple[Axes, ...]:
    """Return the family's largest tables, or those of so many attributes as a share's statements may be about."""
    return tuple(axes for axes in noise.family.sets if len(axes) == share.ways) or noise.largest


def cell_error(noise: ResidualNoise, tables: tuple[Axes, ...]) -> float:
    """Return the mean error of a cell of some of the family's tables, in records."""
    errors = [gaussian_mean(variance) for axes in tables for variance in _variances(noise, axes)]
    return math.fsum(errors) / len(errors)


def predicate_error(noise: ResidualNoise, tables: tuple[Axes, ...]) -> float:
    """Return the mean error of random sums of a quarter of the cells of some of the family's tables, in records.

    Their cells sum to a known number. So `j` of `N` drawn cells have the mean variance `j (N - j) / (N (N - 1))`
    times the sum of all cells' variances.
    """
    errors = []
    for axes in tables:
        variances = _variances(noise, axes)
        cells = len(variances)
        errors.append(gaussian_mean(COVERED * (1 - COVERED) * cells / (cells - 1) * math.fsum(variances)))
    return math.fsum(errors) / len(errors)


def _variances(noise: ResidualNoise, axes: tuple[int, ...]) -> list[float]:
    shape = tuple(noise.sizes[axis] for axis in axes)
    variances: list[float] = np.broadcast_to(cell_variances(noise, axes), shape).reshape(-1).tolist()
    return variances
