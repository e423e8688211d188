"""What sessions of `low_sensitivity` are planned with: sensitivity, scale and size, and the recorded parameters."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

from equipoise.errors import InvalidArgument
from equipoise.model.rounds import MechanismPlan
from equipoise.records.codec import COUNT, FRACTION, canonical_object, codec_of, key
from equipoise_server.mechanisms.checking import check_enumerable
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.prior_plan import PriorEpochParameters
from equipoise_server.mechanisms.epochs.session_plan import statements_asked
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.low_sensitivity.database_question import rounding, scale_for
from equipoise_server.mechanisms.online.interface import session_length
from equipoise_server.mechanisms.parameters import Parameters, read_either
from equipoise_server.mechanisms.prior.forecast import expected_of_session

# The mean of a standard Gaussian number's size where that is above 3, and 0 elsewhere: 2 phi(3).
EXCESS = 0.008864
_FRACTION = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30}|/[1-9][0-9]{0,14})?")


@canonical_object
class LowSensitivityParameters(Parameters):
    """Public. `sensitivity`: the largest Delta that statements may have, on a table of `table_records`."""

    sensitivity: Fraction = key("sensitivity", FRACTION)
    table_records: int = key("table_records", COUNT)
    epochs: EpochParameters = key("epochs", codec_of(EpochParameters))


@canonical_object
class PriorStatisticsParameters(Parameters):
    """Public parameters of a session from a prior: as without one, and what is measured before its one epoch."""

    sensitivity: Fraction = key("sensitivity", FRACTION)
    table_records: int = key("table_records", COUNT)
    start: PriorEpochParameters = key("start", codec_of(PriorEpochParameters))


def parameters_of(plan: MechanismPlan) -> LowSensitivityParameters | PriorStatisticsParameters:
    """Read the parameters of a plan, from a prior or from candidates."""
    return read_either(plan.parameters, LowSensitivityParameters, PriorStatisticsParameters)


def sizes(setting: PublicParameters, universe: int) -> Session:
    """Return the public size of a session over so many candidates, or over the records of a prior's universe."""
    check_enumerable("low_sensitivity", setting)
    slots = session_length(setting, slotted=True) * len(setting.shares)
    scale, asked = scale_for(declared_sensitivity(setting)), statements_asked(setting, slots)
    return Session(universe, scale, 1, slots, asked, asked)


def with_rounding(epochs: EpochParameters) -> EpochParameters:
    """Return the parameters with half-widths that cover what rounding to the scale takes away, too."""
    off = rounding(epochs.scale)
    return replace(
        epochs,
        certified_half_width=min(1 << GRID_BITS, epochs.certified_half_width + off),
        noise_half_widths=tuple(min(1 << GRID_BITS, each + off) for each in epochs.noise_half_widths),
    )


def expected_error(setting: PublicParameters, session: Session, parameters: PriorEpochParameters) -> float:
    """Return the mean error that is expected of a session from a prior, on the scale of the answers.

    Statistics are expected to err as predicates do. One record in a window moves a quantile by far more than a
    fraction, so a fresh answer has the noise of the largest Delta. Of a false alarm that noise is told only where
    it is so large that it refutes the prior (`epochs.unless_refuted`).
    """
    prior_error, epochs = expected_of_session(parameters.prior, setting), parameters.epochs
    alarms = epochs.test_noise.tail(epochs.threshold) / 2 if epochs.threshold > 0 else 1.0
    part = min(alarms, epochs.cap / session.statements)
    deviation = math.sqrt(float(epochs.answer_noise(1).variance)) / epochs.scale.units
    return prior_error + part * deviation * EXCESS


def declared_sensitivity(setting: PublicParameters) -> Fraction:
    """Return the option `sensitivity`, such as "1/500" or 0.002. Raises `InvalidArgument`."""
    option, declared = setting.options.get("sensitivity"), Fraction(0)
    if isinstance(option, int | float) and not isinstance(option, bool) and 0 < option <= 1:
        declared = Fraction(repr(option))
    elif isinstance(option, str) and _FRACTION.fullmatch(option):
        declared = Fraction(option)
    if not 0 < declared <= 1:
        problem = 'must be the largest Delta of any statement, above 0 and at most 1, such as "1/500" or 0.002'
        raise InvalidArgument("options.sensitivity", problem)
    return declared
