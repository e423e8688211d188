"""Predicts the time of mechanisms on one ordinary core, and their memory, from measurements; good to a factor of 3.

Shares are caps, and the prediction assumes that all are used up. A run is shorter where analysts ask for less. The
prediction covers the mechanism alone: not reading the table, and not starting the worker process.
"""

from __future__ import annotations

import math

from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.noise_calibration import NoiseDistribution
from equipoise_server.mechanisms.prior.listed_tables import MAX_KEPT
from equipoise_server.mechanisms.prior.support import RECORDS, support_size
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian
from equipoise_server.randomness.discrete_laplace import DiscreteLaplace

START_SECONDS = 2e-3
CELL_SECONDS = 6e-9  # of summing the histogram down to tables, for each cell of the universe
RECORD_SECONDS = 2e-8  # of summing coded records down to one table, for each record
PREDICATE_SECONDS = 4e-10  # of counting one predicate on coded records, for each record
SHARE_SECONDS = 3e-5
ALONE_SECONDS = 4e-4  # of a statement that is answered alone: counted twice, and tested with noise of its own
STATEMENT_SECONDS = 1e-6
QUERY_SECONDS = 6e-8  # of counting one, and of writing its answer down
DIGIT_SECONDS = 1.8e-8  # of one discrete Laplace number, for each of its digits
GAUSSIAN_SECONDS = 1.8e-7  # of one discrete Gaussian number
DRAW_SECONDS = {DiscreteLaplace: 5e-5, DiscreteGaussian: 4e-4}  # of any number of them from one stream
FITTING_SECONDS = 2e-8  # of one step of a fit, for each cell of the universe: 1e-8 for one table, more for many
FITTING_QUERY_SECONDS = 1e-7  # and for each query
FITTING_STEP_SECONDS = 5e-4  # and at least
FITTING_BYTES = 64  # for each cell of the universe
LISTED_START_SECONDS = 1.0  # of planning what is measured, and of drawing a support
LISTED_STEPS = 60  # of a fit over a support
LISTED_SECONDS = 3e-9  # of one step, for each table and each record of the support
LISTED_TABLE_SECONDS = 1e-4  # of one step, for each table
# Of summing a support down to one statement of many, and of spreading it back: 0.8 ms for a table of two
# attributes, 1.4 ms for one of six, 6 ms for one with a condition; of conditions eight are read at once.
LISTED_STATEMENT_SECONDS = 2e-3
LISTED_ALONE_SECONDS = 1.1e-2  # of summing a support down to one condition alone; 0.5 ms for a table
ALONE_RECORD_SECONDS = 5e-8  # of counting one condition alone on coded records, for each record
LISTED_BYTES = 120  # for each record of the support
TILT_SECONDS = 4e-8  # of one tilt of a hypothesis, for each cell of the universe
TILTS_A_ROUND = 24  # `hypothesis.AGAIN`, of which about half move anything
TILT_STEP_SECONDS = 1e-3  # and at least
PROCESS_BYTES = 200 * 2**20
CELL_BYTES = 24
RECORD_BYTES = 64  # of a coded record in sums, beside its categories
QUERY_BYTES = 320


def counting_seconds(setting: PublicParameters) -> float:
    """Return the seconds of counting all declared statements on the data once and writing their answers."""
    asked = STATEMENT_SECONDS * setting.statements + QUERY_SECONDS * setting.queries
    tables = sum(0 if share.queries == share.statements else share.statements for share in setting.shares)
    counted = table_seconds(setting, tables)
    if not setting.enumerable:
        counted += PREDICATE_SECONDS * setting.records * (setting.statements - tables)
    return START_SECONDS + counted + SHARE_SECONDS * len(setting.shares) + asked


def table_seconds(setting: PublicParameters, tables: int) -> float:
    """Return the seconds of summing the data down to so many tables, once for all statements that share them."""
    return CELL_SECONDS * setting.universe_size if setting.enumerable else RECORD_SECONDS * setting.records * tables


def table_bytes(setting: PublicParameters) -> int:
    """Return the peak bytes while summing the data down to tables."""
    if setting.enumerable:
        return CELL_BYTES * setting.universe_size
    return (RECORD_BYTES + 4 * len(setting.attributes)) * setting.records


def drawing_seconds(law: NoiseDistribution, count: int, streams: int) -> float:
    """Return the seconds of drawing `count` numbers of integer noise in all, from `streams` streams.

    Args:
        law: of each number.
        count: how many numbers are drawn.
        streams: of randomness, each with a start of its own.
    """
    seconds = DIGIT_SECONDS * law.digits if isinstance(law, DiscreteLaplace) else GAUSSIAN_SECONDS
    return DRAW_SECONDS[type(law)] * streams + seconds * count


def counting_bytes(setting: PublicParameters) -> int:
    """Return the peak bytes while counting: of the data and their sums, the queries and their answers."""
    return PROCESS_BYTES + table_bytes(setting) + QUERY_BYTES * setting.queries


def fitting_seconds(setting: PublicParameters, deviation: float) -> float:
    """Return the seconds of one fit for each analyst, over the universe or a support.

    `deviation`: the standard deviation of the answers' noise, as a fraction of the records.
    """
    steps = fitting_steps(deviation, setting.queries / len(setting.shares))
    passes = len(setting.shares) * (FITTING_STEP_SECONDS + FITTING_SECONDS * setting.universe_size)
    if not setting.enumerable:
        passes = setting.statements * LISTED_STATEMENT_SECONDS
    return steps * (passes + FITTING_QUERY_SECONDS * setting.queries)


def fitting_steps(deviation: float, queries: float) -> float:
    """Return the number of steps of a fit to `queries` answers.

    A fit makes more steps where the noise is smaller: 20 steps at 10^-2, 45 at 10^-3 and 115 at 10^-4 on 35 tables
    of Adult. It makes fewer steps where there are fewer answers: 31 at 10^-3 on one of the tables.

    Args:
        deviation: of the noise on one answer, as a fraction of the records.
        queries: how many answers there are.
    """
    few = math.pow(min(1.0, queries / 15_000), 0.08)
    return min(400.0, max(5.0, 2.8 * math.pow(deviation, -0.4) * few))


def weights_seconds(setting: PublicParameters, rounds: int) -> float:
    """Return the seconds of multiplicative weights and a final fit for each analyst.

    `rounds`: the rounds of each analyst. Every round uses earlier measurements again.
    """
    tilts = sum(min(done, TILTS_A_ROUND) for done in range(1, rounds + 1)) / 2
    tilted = tilts * (TILT_STEP_SECONDS + TILT_SECONDS * support_size(setting.axes))
    counted = rounds * (CELL_SECONDS * setting.universe_size + QUERY_SECONDS * setting.largest_share)
    if not setting.enumerable:
        counted = rounds * setting.statements / len(setting.shares) * LISTED_STATEMENT_SECONDS
    return len(setting.shares) * (tilted + counted) + fitting_seconds(setting, 1e-3)


def online_seconds(setting: PublicParameters, updates: int) -> float:
    """Return the seconds of a session of `online`, in which each statement is counted twice, and tested."""
    counted = ALONE_SECONDS + statement_seconds(setting, 1)
    tilts = sum(min(done, TILTS_A_ROUND) for done in range(1, updates + 1)) / 2
    tilted = tilts * (TILT_STEP_SECONDS + TILT_SECONDS * support_size(setting.axes))
    return START_SECONDS + setting.statements * counted + QUERY_SECONDS * setting.queries + tilted


def statement_seconds(setting: PublicParameters, passes: int) -> float:
    """Return the seconds of counting one statement on the data, and so many times over the universe or a support.

    Args:
        setting: public facts.
        passes: how many times over what the hypothesis has weights of.
    """
    if setting.enumerable:
        return (1 + passes) * CELL_SECONDS * setting.universe_size
    return ALONE_RECORD_SECONDS * setting.records + passes * LISTED_ALONE_SECONDS


def listed_seconds(tables: int) -> float:
    """Return the seconds of drawing a support, and of fitting so many tables and their residuals to it."""
    return LISTED_START_SECONDS + LISTED_STEPS * tables * (LISTED_TABLE_SECONDS + LISTED_SECONDS * RECORDS)


def listed_bytes(tables: int, attributes: int) -> int:
    """Return the peak bytes of a fit of so many tables over a support.

    Args:
        tables: how many there are.
        attributes: of the table.
    """
    return (LISTED_BYTES + 2 * attributes) * RECORDS + min(2 * tables * RECORDS, MAX_KEPT)


def fitting_bytes(setting: PublicParameters) -> int:
    """Return the peak bytes of a fit besides the table. One analyst is fitted at a time."""
    return FITTING_BYTES * support_size(setting.axes) + QUERY_BYTES * setting.largest_share
