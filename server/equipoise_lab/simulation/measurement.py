"""The standing measurement that simulated rounds and sessions answer or start from: made once, before all runs."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from equipoise.model.rounds import STANDING_OPTION
from equipoise.queries.schema import Schema
from equipoise.residuals.released import ReleasedMeasurement
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.persons import record_budget
from equipoise_server.mechanisms.residuals.measurement import measure
from equipoise_server.mechanisms.standing.family import planned_noise

ROUND = "simulated"  # the name of the round that would have measured


def with_measurement(setting: PublicParameters, schema: Schema, data: Counts, seed: bytes) -> PublicParameters:
    """Return the setting of a dataset of which all pairs of attributes have been measured.

    The measurement has a budget of its own, as large as the setting's. It costs a person with all of its records no
    more than that, and no run is charged for it.

    Args:
        setting: of the round or session.
        schema: of the table.
        data: the table.
        seed: 32 bytes; the measurement's noise is drawn from it.

    Raises:
        InvalidArgument: the table has no attribute of two categories, or too many.
        BudgetExhausted: the budget is too small to measure anything.
    """
    noise = planned_noise({}, schema, record_budget(setting.data_budget, setting.person_records))
    numbers = measure(data, noise, seed, "measurement").to_bytes()
    named = ReleasedMeasurement(ROUND, sha256(numbers).digest(), noise)
    return replace(setting, options={**setting.options, STANDING_OPTION: named.as_option()}, measured=numbers)
