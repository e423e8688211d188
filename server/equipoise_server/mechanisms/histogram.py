"""`histogram`: noise on every cell of the universe once; every answer is computed from it.

The identity strategy (Li, Hay, Rastogi, Miklau & McGregor 2010): what it costs and promises depends on neither the
number of queries nor who asks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import ApproximateDpEvent, Cost, PrivacyEvent, charge_of, events_to_json
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.box_terms import EXACT
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.workload_builder import concatenate
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import FRACTION, canonical_object, key
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import MAX_UNIVERSE
from equipoise_server.mechanisms.budget_rounding import sampler_delta
from equipoise_server.mechanisms.calibration import (
    Calibration,
    calibrate_laplace,
    least_gaussian,
    noise_distribution,
)
from equipoise_server.mechanisms.checking import check_costs, check_inputs, check_setting
from equipoise_server.mechanisms.interface import GRID_BITS, Answers, Outcome, Plan, Progress, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED, NOISE, AnswerNoise, NoiseDistribution
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.running_time import counting_bytes, counting_seconds, drawing_seconds
from equipoise_server.mechanisms.weighted_noise_tail import sum_reach
from equipoise_server.randomness.stream import KeyedStream

METHOD = 7  # the wire's AnswerMethod
BEYOND = Fraction(1, 2**160)  # probability that the noise of one cell is cut, so that sums of all stay exact


@canonical_object
class HistogramParameters(Parameters):
    """`noise` of counts that move by 1 in sum (the cells move by 2); `chance` that one answer's bound fails."""

    noise: AnswerNoise = key("noise", NOISE)
    chance: Fraction = key("chance", FRACTION)


class Histogram:
    """The mechanism `histogram`.

    Formal guarantees. A record replaced takes one from a cell and adds one to another: the cells move by 2 in L1
    and by `sqrt(2)` in L2. For the people in the table, up to the truncation of the samplers: discrete Laplace
    noise of scale `2 / epsilon` on each cell is epsilon-DP; discrete Gaussian noise of variance `v` costs `1 / v`
    in zCDP. For the analysts: nothing, for either unit; answers are functions of the noisy cells, which know no
    query, and of the analyst's own workload. With probability `1 - beta` every answer is within its own bound
    (`sums_of_noise`): for a query that covers `c` of the `N` cells, one that grows with `c (1 - c / N)`. The plan
    promises the one at the largest support of any share, which is half of the cells where none is declared. Since
    all records are known to be `n`, what the noisy cells are too many or too few in sum is spread over them: of
    the noise in `c` cells, that leaves `c (1 - c / N)` variances of one cell.
    """

    name = "histogram"

    def plan(self, setting: PublicParameters) -> Plan:
        """The law that promises less error. There are no options."""
        check_setting(setting)
        for option in setting.options:
            raise InvalidArgument(f"options.{option}", "unknown; histogram has no options")
        if setting.universe_size > MAX_UNIVERSE:
            problem = f"is too large to put noise on every cell: {setting.universe_size:,}, not {MAX_UNIVERSE:,}"
            raise InvalidArgument("universe_size", f"{problem} at most")
        found = [each for kind in (least_gaussian, calibrate_laplace) if (each := promise_of(kind, setting))]
        if not found:
            raise BudgetExhausted("data_budget: so much noise on each cell could not be summed exactly; allow more")
        bound, parameters, part = min(found, key=lambda each: each[0])
        law = noise_distribution(parameters.noise, MAX_MOVED)
        slack = sampler_delta(truncation(law, setting), setting.data_budget.epsilon, [part])
        parts = [part, ApproximateDpEvent("samplers", Fraction(0), slack)]
        data_cost, analyst_cost = charge_of(parts), Cost() if setting.protects_analysts else None
        check_costs(setting, data_cost, analyst_cost)
        return Plan(
            mechanism=self.name,
            parameters=parameters.to_json(),
            data_cost=data_cost,
            analyst_cost=analyst_cost,
            error_bound=bound / 2**GRID_BITS,
            max_uncertified=0,
            seconds=counting_seconds(setting) + drawing_seconds(law, setting.universe_size, 1),
            memory_bytes=counting_bytes(setting) + 8 * setting.universe_size,
            data_events=events_to_json(self.name, parts),
            analyst_events=events_to_json(self.name, []),
        )

    def run(
        self,
        setting: PublicParameters,
        plan: Plan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: Progress,
    ) -> Outcome:
        """Noise on every cell, whoever is present; then the answers of each analyst."""
        check_inputs(setting, data, workloads)
        parameters = HistogramParameters.from_json(plan.parameters)
        limit, size, records = cell_limit(setting), setting.universe_size, setting.records
        progress("adding noise", 0, 1)
        noisy = noise_distribution(parameters.noise, MAX_MOVED).draw(size, KeyedStream.derive(seed, "noise/cells"))
        np.clip(noisy, -limit, limit, out=noisy)
        noisy += data.dense()
        progress("adding noise", 1, 1)
        present = [share.analyst for share in setting.shares if share.analyst in workloads]
        if not present:
            return Outcome({}, np.zeros(0, dtype=np.int64))
        together = concatenate([workloads[name] for name in present])
        progress("counting", 0, 1)
        seen = together.counts(noisy)
        # What all cells are too many by, spread evenly: `covered (whole + rest / size)`, to the nearest record.
        whole, rest = divmod(int(noisy.sum()) - records, size)
        covered = together.covered()
        spread = covered * whole + (2 * covered * rest + size) // (2 * size)
        values = on_grid(np.clip(seen - spread, 0, records), records)
        bounds = bounds_of(parameters, covered, setting)
        progress("counting", 1, 1)
        answers, start = {}, 0
        for analyst in present:
            own = slice(start, start := start + workloads[analyst].query_count)
            methods = np.full(own.stop - own.start, METHOD, dtype=np.uint8)
            answers[analyst] = Answers(values[own], methods, bounds[own])
        return Outcome(answers, np.zeros(0, dtype=np.int64))


def promise_of(
    calibrate: Calibration, setting: PublicParameters
) -> tuple[int, HistogramParameters, PrivacyEvent] | None:
    """The largest bound of any query with one law, in units of 2^-40, and the charge; None: it cannot be had."""
    try:
        noise, part = calibrate(setting.data_budget)
        law = noise_distribution(noise, MAX_MOVED)
    except BudgetExhausted:
        return None
    if law.quantile(BEYOND) >= cell_limit(setting):
        return None
    kept = Fraction(setting.beta) - truncation(law, setting)
    parameters = HistogramParameters(noise, kept / setting.queries)
    most = np.array([setting.largest_support])
    return int(bounds_of(parameters, most, setting)[0]), parameters, part


def truncation(law: NoiseDistribution, setting: PublicParameters) -> Fraction:
    """The total variation of all cells' noise from the ideal law: that of its sampler, and what is cut.

    Noise is cut before a cell's records are added, so this is not post-processing and must be charged. It is cut at
    least one further out than `BEYOND` is reached, which is all that a record moves: so what is cut of either
    neighbour's law is at most as probable as `BEYOND` on each side under the other one's, also in Gaussian noise.
    """
    return setting.universe_size * (law.truncation_delta() + 2 * BEYOND)


def cell_limit(setting: PublicParameters) -> int:
    """The most noise on one cell with which all cells, noise and records, add up to at most 2^53."""
    return (EXACT - setting.records) // setting.universe_size


def bounds_of(
    parameters: HistogramParameters, covered: NDArray[np.int64], setting: PublicParameters
) -> NDArray[np.int64]:
    """The error of queries that cover so many cells, in units of 2^-40: int64[k].

    Half a record more than the noise reaches, as the answer is rounded to whole records; and a unit of the grid.
    """
    size = setting.universe_size
    law = noise_distribution(parameters.noise, MAX_MOVED)
    reach = sum_reach(law, (covered * (size - covered)) / size, parameters.chance)
    # No answer is further from the truth than all records are.
    records = np.minimum(reach + 0.5, setting.records)
    units = np.ceil(records * (2.0**GRID_BITS / setting.records)).astype(np.int64) + 1
    return np.minimum(units, 1 << GRID_BITS)
