"""The plan of a prior, from public facts: which marginals are measured, with what noise, and what that costs.

A prior is made of a measurement of the round's or session's own, or of the dataset's standing one, which has been
paid for.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

from equipoise.accounting import ZcdpEvent
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.queries.marginal_tables import Axes
from equipoise.records.codec import POSITIVE, canonical_object, codec_of, key, list_of, optional
from equipoise.residuals.family import ResidualFamily
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.released import ReleasedNumbers
from equipoise.residuals.variances import cell_variances
from equipoise_server.datasets.universe import is_enumerable
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.fit import MAX_SWEEPS
from equipoise_server.mechanisms.prior.support import support_size
from equipoise_server.mechanisms.residuals.allocation import least_summed
from equipoise_server.mechanisms.standing.released import named_measurement
from equipoise_server.randomness.discrete_gaussian import DiscreteGaussian

# Of an attribute that is measured. Telling a statement about it takes time and memory of their square, and the
# noise of a pair of larger ones is spread over cells that say nothing.
MAX_CATEGORIES = 256
VARIANCE_BITS = 10  # cells' variances are recorded in units of 2^-10 records squared

# Measured on one ordinary core.
START_SECONDS = 0.05
RESIDUAL_SECONDS = 4e-4  # of any noise from one stream
NUMBER_SECONDS = 3e-7  # of one noisy integer, and its places in the tables
SWEEP_SECONDS = 1.5e-8  # of one table's turn, for each record of the support
TURN_SECONDS = 4e-4  # and at least
USUAL_SWEEPS, DRAWN_SWEEPS = 10, MAX_SWEEPS  # of all possible records, and of drawn ones, which are slower to fit
FIT_BYTES = 56  # for each record of the support
NUMBER_BYTES = 64


@canonical_object
class PriorParameters:
    """Public: all that measuring and fitting a prior needs.

    `noise`: the family of marginals with the noise of each residual. `variances`: the mean variance of a cell of
    each of the family's largest tables, in units of 2^-10 records squared. The fit weighs tables by it; it is
    recorded, so that no replay computes it again. `released`: the standing measurement that has this noise; None
    where the round or session measures. Raises `ValueError` where tables and variances differ in number.
    """

    noise: ResidualNoise = key("noise", codec_of(ResidualNoise))
    variances: tuple[int, ...] = key("variances", list_of(POSITIVE))
    released: ReleasedNumbers | None = key("released", optional(codec_of(ReleasedNumbers)))

    def __post_init__(self) -> None:
        if len(self.variances) != len(self.noise.largest):
            raise ValueError(f"{len(self.variances)} variances for {len(self.noise.largest)} tables")

    @classmethod
    def of(cls, noise: ResidualNoise, released: ReleasedNumbers | None = None) -> PriorParameters:
        """Return the parameters of a prior that is fitted to the largest tables of a measurement."""
        means = (float(cell_variances(noise, axes).mean()) for axes in noise.largest)
        return cls(noise, tuple(math.ceil(math.ldexp(mean, VARIANCE_BITS)) for mean in means), released)

    @property
    def rho(self) -> Fraction:
        """What measuring costs the data, in zCDP: nothing where a measurement was released before."""
        return Fraction(0) if self.released else Fraction(self.noise.rho())

    def events(self) -> list[ZcdpEvent]:
        """Return what measuring costs the data. It costs the analysts nothing: no workload has a part in it."""
        return [] if self.released else [ZcdpEvent("prior", self.rho)]

    def truncation(self) -> Fraction:
        """Return the total variation of all noise from its exact laws: 0 as long as samplers are exact."""
        if self.released:
            return Fraction(0)
        family = self.noise.family
        parts = [
            math.prod(family.sizes[axis] for axis, _ in residual)
            * DiscreteGaussian(self.noise.variance(residual)).truncation_delta()
            for residual in family.residuals
        ]
        return sum(parts, Fraction(0))

    @property
    def support(self) -> int:
        """The number of records over which the prior keeps its weights."""
        return support_size(self.noise.sizes)

    @property
    def numbers(self) -> int:
        """How many noisy integers are measured, at most."""
        return sum(math.prod(self.noise.sizes[axis] for axis in axes) for axes in self.noise.family.sets)

    def seconds(self) -> float:
        """Predict what measuring and fitting take, on one ordinary core."""
        tables = len(self.noise.largest)
        drawn = 0.0 if self.released else RESIDUAL_SECONDS * len(self.noise.parameters)
        sizes = self.noise.sizes
        sweeps = USUAL_SWEEPS if is_enumerable(sizes, math.prod(sizes)) else DRAWN_SWEEPS
        turns = sweeps * tables * (TURN_SECONDS + SWEEP_SECONDS * self.support)
        return START_SECONDS + drawn + NUMBER_SECONDS * self.numbers + turns

    def memory_bytes(self) -> int:
        """Predict the peak, without the process itself."""
        return FIT_BYTES * self.support + NUMBER_BYTES * self.numbers


def plan_prior(setting: PublicParameters, rho: float | Fraction) -> PriorParameters:
    """Plan the prior of a table from public facts alone: all pairs of attributes, measured within `rho`.

    Ordered attributes are measured by levels, for their categories and their ranges alike.

    Args:
        setting: its attributes and their order, and no share of any analyst.
        rho: the budget, in zCDP, for replacing one record.

    Raises:
        InvalidArgument: the setting does not say the sizes of attributes.
        BudgetExhausted: the budget is too small for any measurement.
    """
    if not setting.attributes:
        raise InvalidArgument("options.prior", "needs the sizes of all attributes; set it to none")
    if rho <= 0:
        raise BudgetExhausted("data_budget: leaves nothing for a prior; raise it, or set prior to none")
    tables = tables_of(setting.attributes)
    if not tables:
        problem = f"needs an attribute of 2 to {MAX_CATEGORIES:,} categories; set it to none"
        raise InvalidArgument("options.prior", problem)
    family = ResidualFamily.closed(setting.attributes, tables, setting.ordered)
    return PriorParameters.of(least_summed(family, rho).noise)


def standing_prior(setting: PublicParameters) -> PriorParameters:
    """Plan a prior that is fitted to whatever the standing measurement in the options tells, at no cost.

    Raises:
        InvalidArgument: the options name no measurement of these attributes.
    """
    named = named_measurement(setting)
    return PriorParameters.of(named.noise, named.numbers)


def tables_of(sizes: tuple[int, ...]) -> list[Axes]:
    """Return the tables of a prior: all pairs of attributes that are not too large, and all these alone."""
    axes = [axis for axis, size in enumerate(sizes) if 1 < size <= MAX_CATEGORIES]
    return [(axis,) for axis in axes] + list(itertools.combinations(axes, 2))
