"""`measurement`: a round in which nobody has a share. It measures residuals of marginals once, for later rounds.

Formal guarantees. For the people in the table: `noise.rho()` in zCDP, the worst pair of neighbours, exactly
(`accounting.residuals_rho`); the noise is drawn exactly, so nothing is charged for samplers. For the analysts:
nothing, as no analyst's choice has a part in it: what is released is a function of the table, of public parameters
and of its own noise. Whatever is computed from it afterwards is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from equipoise.accounting import RHO_UNIT, ZcdpEvent
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.rounds import MEASUREMENT, MechanismPlan
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise.records.codec import canonical_object, codec_of, key
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.reach import log_chance
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.checking import check_table, check_table_setting
from equipoise_server.mechanisms.expected_error import stated
from equipoise_server.mechanisms.interface import OnStep, Outcome, PublicParameters
from equipoise_server.mechanisms.make_plan import make_plan
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.running_time import (
    DRAW_SECONDS,
    GAUSSIAN_SECONDS,
    PROCESS_BYTES,
    START_SECONDS,
    table_bytes,
    table_seconds,
)
from equipoise_server.mechanisms.standing.plan import cell_error, half_width
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

CELL_BYTES = 32
_NOISE = codec_of(ResidualNoise)


@canonical_object
class MeasurementParameters(Parameters):
    """All public parameters of one measurement: its family, and the noise of each residual."""

    noise: ResidualNoise = key("noise", _NOISE)


class Measurement:
    """The mechanism `measurement`."""

    name = MEASUREMENT
    fitted = False

    def plan(self, setting: PublicParameters) -> MechanismPlan:
        """Plan a measurement with the noise in the options, which `family.planned_noise` makes of a family.

        `max_half_width`: of any answer of later rounds with the same beta. `expected_error`: of one cell of the
        family's largest tables, before any fit.
        """
        if setting.shares:
            raise InvalidArgument("shares", "must be empty: nobody has a share of a measurement")
        check_table_setting(setting)
        noise = _noise_of(setting)
        charged = Fraction(math.ceil(Fraction(noise.rho()) * RHO_UNIT), RHO_UNIT)
        cells = sum(math.prod(noise.sizes[axis] for axis in axes) for axes in noise.family.sets)
        drawn = DRAW_SECONDS[DiscreteGaussian] * len(noise.parameters) + GAUSSIAN_SECONDS * cells
        return make_plan(
            self.name,
            setting,
            MeasurementParameters(noise),
            [ZcdpEvent("residuals", charged)],
            max_half_width=half_width(noise, log_chance(setting.beta), setting.records),
            expected_error=stated(cell_error(noise, noise.largest) / setting.records),
            seconds=START_SECONDS + table_seconds(setting, len(noise.family.sets)) + drawn,
            memory_bytes=PROCESS_BYTES + table_bytes(setting) + CELL_BYTES * cells,
        )

    def run(
        self,
        setting: PublicParameters,
        plan: MechanismPlan,
        data: Counts,
        workloads: Mapping[str, CompiledWorkload],
        seed: bytes,
        progress: OnStep,
    ) -> Outcome:
        """Measure the residuals. There are no answers."""
        if workloads:
            raise ValueError(f"workloads must be none in a measurement, not {len(workloads)}")
        check_table(setting, data)
        progress("measuring", 0, 1)
        measured = measure(data, MeasurementParameters.from_json(plan.parameters).noise, seed, "measurement")
        progress("measuring", 1, 1)
        return Outcome({}, measured=measured.to_bytes())


def as_options(noise: ResidualNoise) -> dict[str, object]:
    """Return the options by which a measurement with this noise is planned."""
    return {"noise": _NOISE.encode(noise)}


def _noise_of(setting: PublicParameters) -> ResidualNoise:
    for name in sorted(setting.options.keys() - {"noise"}):
        raise InvalidArgument(
            f"options.{name}", "unknown; a measurement is planned from the noise of its residuals"
        )
    try:
        noise = _NOISE.decode(setting.options.get("noise"), "options.noise")
    except VerificationFailed as problem:
        raise InvalidArgument("options.noise", problem.message) from None
    if noise.sizes != setting.attributes:
        raise InvalidArgument("options.noise", "is for other attributes")
    return noise
