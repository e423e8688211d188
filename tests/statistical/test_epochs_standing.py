"""`online_private` from a standing measurement: exact laws on both neighbour relations, and mutants.

What the measurement told was published before the session, so it is given: every law here is of a session after the
same numbers. The shipped session starts from them; its draws are then enumerated.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from harness.exact_game import Law, hockey_stick
from statistical.epochs_cases import SETTING, one_epoch
from statistical.epochs_from_prior import BOTH, DATA, ENDS, FIRST, MEASURED, SCHEMA, VARIANCE, starting_from
from statistical.exact_epochs import session_law
from statistical.measured_attribute import ORDERS, WIDE, divergence, prior_of

from equipoise.accounting import Cost, PrivacyEvent
from equipoise.model.rounds import MechanismPlan
from equipoise.queries.predicates import Predicate
from equipoise.queries.workload_compiler import compile_single
from equipoise.residuals.released import ReleasedNumbers
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.epochs.cost import Session
from equipoise_server.mechanisms.epochs.epochs import EpochParameters
from equipoise_server.mechanisms.epochs.prior_plan import PriorEpochParameters, data_events
from equipoise_server.mechanisms.epochs.question import LinearQuestion, Question, Scale
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online_private.mechanism import LinearSession, OnlinePrivate
from equipoise_server.mechanisms.prior import known_answers
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.residuals.measurement import Measured

TOLD = ((3, -3), (0, 1), (-5, 2))  # what a standing measurement may have told
NOISE = prior_of(SCHEMA.sizes, VARIANCE).noise
TABLES = ((2, 0, 1, 0), (1, 0, 2, 0))


def told_setting(told: tuple[int, int], records: int) -> PublicParameters:
    """Of a session that knows of a measurement that told these numbers."""
    numbers = Measured(NOISE, records, {(0,): np.array(told)}).to_bytes()
    options: dict[str, object] = {"length": 4}
    return replace(SETTING, records=records, attributes=SCHEMA.sizes, options=options, measured=numbers)


def parameters_of(epochs: EpochParameters, setting: PublicParameters) -> PriorEpochParameters:
    released = ReleasedNumbers("a" * 32, sha256(setting.measured).digest())
    return PriorEpochParameters(PriorParameters.of(NOISE, released), Fraction(1, 10), WIDE, epochs)


def begun(epochs: EpochParameters, histogram: tuple[int, ...], told: tuple[int, int]) -> LinearSession:
    """Start the shipped session after a measurement that told these numbers."""
    data = DenseCounts(np.array(histogram, dtype=np.int64), SCHEMA.sizes)
    setting = told_setting(told, data.records)
    parameters = parameters_of(epochs, setting).to_json()
    plan = MechanismPlan("online_private", parameters, Cost(), Cost(), 1.0, 0, 0.0, 0, 0.0)
    return OnlinePrivate().start(setting, plan, data, bytes(32))


def law(
    epochs: EpochParameters,
    histogram: tuple[int, ...],
    asked: tuple[Predicate | None, ...],
    told: tuple[int, int],
    hidden: int | None = None,
) -> Law:
    """Of all that is seen after the measurement, but for the answer in the hidden slot."""
    session = begun(epochs, histogram, told)
    questions: list[Question | None] = [
        None
        if each is None
        else LinearQuestion(compile_single(each, SCHEMA), session.data, session.records, session.known)
        for each in asked
    ]
    kind = starting_from(session.epochs._multiset >> 12)
    return session_law(epochs, 4, questions, hidden=hidden, kind=kind)


def charges() -> list[PrivacyEvent]:
    setting = told_setting(TOLD[0], sum(TABLES[0]))
    return data_events(setting, Session(4, Scale(3, 1), 2, 2, 2, 2), parameters_of(one_epoch(), setting))


def tables_show(order: float) -> float:
    """The largest divergence of neighbouring tables after whatever was told, as a part of what is charged."""
    charged = sum(float(part.divergence(Fraction(order))[0]) for part in charges())
    worst = 0.0
    for told in TOLD:
        one, other = (law(one_epoch(), each, (BOTH, MEASURED), told) for each in TABLES)
        worst = max(worst, divergence(one, other, order), divergence(other, one, order))
    return worst / charged


def test_a_moved_record_shows_no_more_than_tests_and_answers_are_charged() -> None:
    assert "prior" not in {part.name for part in charges()}
    assert all(0.1 < tables_show(order) <= 1 for order in ORDERS)


def test_a_standing_measurement_that_is_quietly_made_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def again(prior: PriorParameters, setting: PublicParameters, data: Counts, seed: bytes) -> Measured:  # noqa: ARG001
        ((_, table),) = data.marginals([(0,)])
        return Measured(prior.noise, data.records, {(0,): 2 * table - data.records})

    monkeypatch.setattr(known_answers, "measured_for", again)
    assert all(tables_show(order) > 1 for order in ORDERS)


def seen_by_others(first: Predicate | None, told: tuple[int, int] = (6, -6)) -> Law:
    return law(ENDS, tuple(DATA.tolist()), (first, BOTH, MEASURED, BOTH), told, hidden=0)


def test_a_statement_shows_no_more_than_the_end_of_the_epoch() -> None:
    laws = [seen_by_others(first) for first in FIRST]
    lost = max(hockey_stick(one, other, 1.0) for one, other in itertools.permutations(laws, 2))
    assert lost <= 1e-7
    assert max(hockey_stick(one, other, 0.5) for one, other in itertools.permutations(laws, 2)) > 0.01
    # Whether the measurement tells a statement is not seen: it is like one that is never positive.
    assert hockey_stick(laws[0], laws[3], 0.0) <= 1e-12


def test_numbers_that_depend_on_a_statement_are_caught() -> None:
    one, other = seen_by_others(MEASURED), seen_by_others(BOTH, (0, 0))
    assert max(hockey_stick(one, other, 5.0), hockey_stick(other, one, 5.0)) > 0.5
