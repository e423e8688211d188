"""Measures the marginals of a prior once, or reads what was released of them before, and fits the prior to them.

The fit sees the noisy tables and public variances only: post-processing. So a prior costs what its measurement does
(`PriorParameters.events`), and whatever starts from it may depend on every bit of it.
"""

from __future__ import annotations

import math

import numpy as np

from equipoise.queries.marginal_tables import Axes
from equipoise.queries.record_list import RecordList
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.universe import is_enumerable
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.distribution import Prior, floored
from equipoise_server.mechanisms.prior.drawing import drawn_records
from equipoise_server.mechanisms.prior.fit import Target, fit_potential
from equipoise_server.mechanisms.prior.plan import VARIANCE_BITS, PriorParameters
from equipoise_server.mechanisms.prior.support import ListedSupport, Support, Universe
from equipoise_server.mechanisms.residuals.measurement import Measured, measure
from equipoise_server.mechanisms.standing.released import released_numbers

LABEL = "prior"  # of the streams from which its noise is drawn


def measured_for(parameters: PriorParameters, setting: PublicParameters, data: Counts, seed: bytes) -> Measured:
    """Return what a prior is fitted to. No workload is an argument.

    Args:
        parameters: of the plan.
        setting: of the run; it has the numbers of a measurement that was released before.
        data: the private table; its marginals are counted, and nothing else, unless they were released before.
        seed: of the round or session; the streams named `prior` are read, once, unless nothing is drawn.

    Raises:
        ValueError: the table is over another universe, or the numbers are others than the plan names.
    """
    if parameters.released:
        return released_numbers(setting, parameters.released, parameters.noise)
    return measure(data, parameters.noise, seed, LABEL)


def support_of(measured: Measured) -> Support:
    """Return the records over which weights are kept: all that can exist, or some that a measurement tells of.

    Args:
        measured: the noisy residuals, which alone decide which records are drawn.
    """
    sizes = measured.noise.sizes
    if is_enumerable(sizes, math.prod(sizes)):
        return Universe(sizes)
    return ListedSupport(drawn_support(measured))


def drawn_support(measured: Measured) -> RecordList:
    """Draw records along the measured tables of one and of two attributes, whatever the width."""
    told = [axes for axes in measured.noise.family.sets if len(axes) <= 2]
    return drawn_records(measured.noise.sizes, [target_of(measured, axes) for axes in told])


def target_of(measured: Measured, axes: Axes) -> Target:
    """Return what was measured of one table, with the mean variance of its cells: the same on every machine."""
    fractions = np.asarray(measured.table(axes).counts() / measured.records)
    variances = cell_variances(measured.noise, axes)
    return Target(axes, fractions, math.fsum(variances.ravel().tolist()) / variances.size / measured.records**2)


def fitted_prior(parameters: PriorParameters, measured: Measured, support: Support | None = None) -> Prior:
    """Fit the prior to what was measured with its noise.

    Args:
        parameters: of the measurement.
        measured: the noisy residuals.
        support: the records over which it keeps weights; None: those of `support_of`.
    """
    # Elementwise divisions alone, which are the same on every machine.
    squared = float(measured.records) ** 2
    targets = [
        Target(axes, np.asarray(measured.table(axes).counts() / measured.records), variance / squared)
        for axes, variance in zip(
            parameters.noise.largest,
            (variance / 2.0**VARIANCE_BITS for variance in parameters.variances),
            strict=True,
        )
    ]
    return floored(fit_potential(support or support_of(measured), targets))
