"""Half-widths of `histogram`: answers are rounded to whole records, away from the truth at worst."""

from __future__ import annotations

import numpy as np

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.calibration import noise_distribution
from equipoise_server.mechanisms.histogram.mechanism import Histogram
from equipoise_server.mechanisms.histogram.plan import HistogramParameters, half_widths_of
from equipoise_server.mechanisms.interface import GRID_BITS, PublicParameters
from equipoise_server.mechanisms.noise_calibration import MAX_MOVED
from equipoise_server.mechanisms.weighted_noise_tail import sum_reach

CELLS, RECORDS = 16, 1000


def test_an_answer_that_is_rounded_away_from_the_truth_is_within_its_half_width() -> None:
    """For every number of cells, the worst that noise within its reach can do: a whole number of 16ths."""
    share = Share("ana", 1, 1)
    setting = PublicParameters(
        RECORDS, CELLS, (share,), "query", Budget(1.0, 1e-6), Budget(1.0, 1e-6), 0.05, {}, (CELLS,)
    )
    parameters = HistogramParameters.from_json(Histogram().plan(setting).parameters)
    covered = np.arange(1, CELLS)
    law = noise_distribution(parameters.noise, MAX_MOVED)
    reach = sum_reach(law, covered * (CELLS - covered) / CELLS, parameters.chance)
    rounded = np.floor(np.floor(reach * CELLS) / CELLS + 0.5)
    assert (rounded > reach).any()
    assert (rounded <= half_widths_of(parameters, covered, setting) * (RECORDS / 2.0**GRID_BITS)).all()
