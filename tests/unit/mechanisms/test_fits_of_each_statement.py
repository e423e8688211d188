"""How far a fit moves the answers of one statement, whatever else is asked."""

from __future__ import annotations

import numpy as np

from equipoise.model.results import AnswerMethod
from equipoise_server.mechanisms.answers import answers_within
from equipoise_server.mechanisms.fitted_records import moved_near


def test_a_fit_moves_a_statement_s_answers_as_if_it_were_asked_alone() -> None:
    """In whatever order statements are that a fit meets well, badly and hardly at all."""
    choose, deviation = np.random.default_rng(8), 1000
    for errors in ([30, 0, 2], [2, 30, 0], [0, 2, 30]):
        offsets = np.array([0, 7, 12, 23])
        told = answers_within(10**8 + np.arange(23), AnswerMethod.GAUSSIAN, 10**6, deviation)
        moved = np.repeat(errors, np.diff(offsets)) * choose.normal(0, deviation, 23)
        fitted = told.values + np.rint(moved).astype(np.int64)
        together = moved_near(told, fitted, offsets, AnswerMethod.MEASURED).values
        for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            own = slice(start, end)
            alone = moved_near(told[own], fitted[own], np.array([0, end - start]), AnswerMethod.MEASURED)
            assert (alone.values == together[own]).all()
