"""`projection` of tables whose possible records nobody can enumerate: the residuals of an analyst's own tables.

An analyst's part of the data's budget buys noise on each of its counts. The same part, spent on the residuals of
its own tables, tells all of them with less noise, as nothing that they share is measured twice. Whether that keeps
the promise of the plan depends on the workload alone; where it does not, there is noise on the counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.results import AnswerMethod, Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.fitted_records import FittedRecords, moved_near
from equipoise_server.mechanisms.independent_noise.plan import NoiseParameters
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.own_stream import own_stream
from equipoise_server.mechanisms.projection.plan import gaussian_law, reach_of, tables_half_width
from equipoise_server.mechanisms.residuals.allocation import least_largest
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import measure


def own_rho(parameters: NoiseParameters, setting: PublicParameters, analyst: str) -> Fraction:
    """Return an analyst's part of what the round costs the data: that of its share's declared sensitivity.

    With noise of variance v on every count it is `l1_sensitivity / (2 v)`, and all parts sum to what is charged.
    """
    declared = {share.analyst: share.l1_sensitivity for share in setting.shares}
    return Fraction(declared[analyst]) / (2 * Fraction(gaussian_law(parameters).variance))


def own_noises(
    setting: PublicParameters, parameters: NoiseParameters, workloads: Mapping[str, CompiledWorkload]
) -> dict[str, ResidualNoise]:
    """Return the noise on the residuals of the tables of each analyst who gets it: of least largest variance.

    Only an analyst's own workload and public facts decide who does: it asks for whole tables alone, these are not
    too large, and all half-widths keep to the promise.
    """
    promised = tables_half_width(parameters, setting)
    noises = {}
    for analyst, workload in workloads.items():
        noise = _least(setting, workload, own_rho(parameters, setting, analyst))
        if noise is not None and _half_width(noise, setting) <= promised:
            noises[analyst] = noise
    return noises


def answers_by_tables(
    analyst: str,
    workload: CompiledWorkload,
    noise: ResidualNoise,
    data: Counts,
    setting: PublicParameters,
    seed: bytes,
) -> Answers:
    """Measure the residuals, and answer every cell by a distribution that is fitted to them.

    Args:
        analyst: who asked.
        workload: whole tables alone.
        noise: of `own_noises`.
        data: the private table; the family's marginals are counted.
        setting: of the plan.
        seed: of the round; the noise comes from a stream of this analyst and workload.
    """
    own_seed = own_stream(seed, workload, "noise/residuals", analyst).words(4).astype("<u8").tobytes()
    measured = measure(data, noise, own_seed, "residuals")
    told = _measured_answers(estimates_of(workload, measured), setting)
    values = FittedRecords.of(measured).answers(workload)
    return moved_near(told, values, workload.statement_offsets, AnswerMethod.PROJECTION)


def _least(setting: PublicParameters, workload: CompiledWorkload, rho: Fraction) -> ResidualNoise | None:
    if workload.groups or workload.restricted or not workload.marginals or not setting.attributes:
        return None
    try:
        family = ResidualFamily.closed(
            setting.attributes, {tuple(sorted(each.axes)) for each in workload.marginals}
        )
        # The next smaller double, so that the cost is at most the fraction.
        return least_largest(family, math.nextafter(float(rho), 0.0)).noise
    except (InvalidArgument, BudgetExhausted):
        return None


def _half_width(noise: ResidualNoise, setting: PublicParameters) -> int:
    widest = max(float(cell_variances(noise, axes).max()) for axes in noise.largest)
    return int(_upwards(np.array([math.sqrt(widest) * reach_of(setting)]), setting.records, 2)[0])


def _measured_answers(estimates: Estimates, setting: PublicParameters) -> Answers:
    """Return the estimates as answers, each with the interval of its own noise. They are not cut at 0."""
    deviations = np.sqrt(estimates.variances)
    half_widths = _upwards(deviations * reach_of(setting) + estimates.slack, setting.records, 2)  # of two roundings
    values = np.rint(estimates.counts * (float(ONE) / setting.records)).astype(np.int64)
    return answers_within(values, AnswerMethod.GAUSSIAN, half_widths, _upwards(deviations, setting.records))


def _upwards(amounts: NDArray[np.float64], records: int, more: int = 0) -> NDArray[np.int64]:
    """Amounts of records as parts of all in units of 2^-40: rounded up, and so many more; at most 1."""
    units = np.ceil(amounts * (float(ONE) / records)) + more
    return np.asarray(np.minimum(units, ONE), dtype=np.int64)
