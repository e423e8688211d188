"""Intervals of a standing measurement: they hold for whatever is asked of it, also by whoever has seen answers.

Each test plays `PLAYED` measurements. Rounds in which a truth lies outside an interval have probability `beta` at
most, so a test raises a false alarm with probability `ALARM` at most, by the exact binomial law. Mutants fail.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from statistical.tempting_statements import (
    ALARM,
    BUDGET,
    PLAYED,
    RECORDS,
    SCHEMA,
    counts,
    measured,
    noise,
    tempting,
)

from equipoise.accounting import ZcdpEvent
from equipoise.model.accounts import Budget
from equipoise.model.results import Answers
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise.residuals.reach import log_chance, reaches
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.residuals.estimates import Estimates, estimates_of
from equipoise_server.mechanisms.residuals.measurement import Measured
from equipoise_server.mechanisms.standing import answering
from equipoise_server.mechanisms.standing.answering import answers_of
from equipoise_server.mechanisms.standing.measurement import Measurement, as_options

CELLS: list[Statement] = [Marginal(("a", "b")), Marginal(("c", "a")), Marginal(("b",))]


def told(number: int, statements: list[Statement], beta: float) -> tuple[Answers, NDArray[np.float64]]:
    """Answers from one measurement, and the truths."""
    workload = compile_workload(statements, SCHEMA)
    return answers_of(workload, measured(number), log_chance(beta)), workload.counts(counts()) / RECORDS


def tempted(number: int, beta: float) -> tuple[Answers, NDArray[np.float64]]:
    """What she is told."""
    return told(number, tempting(number), beta)


def failures(beta: float, play: object = None) -> int:
    """In how many of the played measurements a truth lies outside an interval."""
    found = 0
    for number in range(PLAYED):
        answers, truths = told(number, CELLS, beta) if play is None else tempted(number, beta)
        found += bool(answers.misses(truths).any())
    return found


def too_many(beta: float) -> int:
    """The least number of failures that alarms."""
    return int(binom.isf(ALARM, PLAYED, beta)) + 1


@pytest.mark.thin(2)
@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_cells_lie_in_their_intervals(beta: float) -> None:
    assert failures(beta) < too_many(beta)


def shorter(patches: pytest.MonkeyPatch, part: float) -> None:
    patches.setattr(answering, "reaches", lambda log, bits: reaches(log, bits) * part)


@pytest.mark.thin(2)
@pytest.mark.parametrize("beta", [0.05, 0.2])
def test_intervals_of_cells_that_are_a_third_shorter_are_caught(
    beta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter(monkeypatch, 2 / 3)
    assert failures(beta) >= too_many(beta)


@pytest.mark.full
def test_who_asks_for_what_she_has_seen_to_be_high_gets_intervals_that_hold() -> None:
    assert failures(0.2, tempted) < too_many(0.2)


@pytest.mark.full
def test_intervals_for_statements_that_were_fixed_before_are_caught_by_who_chooses_by_what_she_has_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A union bound over the declared queries, as where noise is drawn after the statements are known."""

    def declared(_: object, bits: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(bits), math.sqrt(2 * math.log(2 * len(bits) / 0.2)))

    monkeypatch.setattr(answering, "reaches", declared)
    assert failures(0.2, tempted) >= too_many(0.2)


def test_an_interval_around_a_number_that_is_centred_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def centred_on_another_total(workload: CompiledWorkload, own: Measured) -> Estimates:
        return estimates_of(workload, replace(own, records=own.records + 2_000))

    monkeypatch.setattr(answering, "estimates_of", centred_on_another_total)
    assert failures(0.2) >= too_many(0.2)


def test_the_charge_is_that_of_the_noise_and_a_measurement_that_is_not_charged_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert charged_enough()
    monkeypatch.setattr(ZcdpEvent, "amounts", lambda event: (0 * event.rho, 0 * event.rho, 0 * event.rho))
    assert not charged_enough()


def charged_enough() -> bool:
    """Whether the plan charges at least what the worst pair of records costs (`test_residuals` enumerates that)."""
    options = as_options(noise())
    setting = PublicParameters(
        RECORDS, 960, (), "query", BUDGET, Budget(math.inf, 0.0), 0.05, options, SCHEMA.sizes
    )
    return Measurement().plan(setting).data_cost.rho >= noise().rho() * 10**12
