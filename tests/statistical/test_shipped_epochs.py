"""Sessions in epochs as they are shipped: their draws, their streams, and what their runs certify."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from unittest.mock import patch

import pytest
from harness.audit_size import AuditSize
from statistical.epochs_cases import ANSWERS, BOTH, NAT, SURE, WHOLE, analyst_questions
from statistical.exact_epochs import Remembered, session_law

from equipoise_lab.audit.clopper_pearson import Sampler, certify
from equipoise_server.conversion import epsilon_of_rho
from equipoise_server.mechanisms.epochs.epochs import EpochParameters, Epochs
from equipoise_server.mechanisms.epochs.question import Question
from equipoise_server.mechanisms.noise_calibration import GaussianNoise
from equipoise_server.randomness.stream import KeyedStream


def shipped_view(
    played: EpochParameters, universe: int, questions: list[Question | None], seed: bytes, hidden: int | None = None
) -> tuple[int, ...]:
    """What `session_law` is the law of, from the shipped session."""
    session = Epochs(played, universe, len(questions), seed)
    shown: list[int] = []
    for slot, question in enumerate(questions):
        if question is None:
            session.pass_to(slot + 1)
        else:
            answers = session.answer(slot, question)
            if slot != hidden:
                shown += [*answers.values.tolist(), int(answers.methods[0])]
        shown += [session._epoch, *session._multiset.tolist()]
    return tuple(shown)


def remembered(questions: list[Question | None]) -> list[Question | None]:
    """The same, each worked out once."""
    return [None if question is None else Remembered(question) for question in questions]


def seeds(label: str) -> Callable[[int], bytes]:
    """Seeds of a number of runs."""
    return lambda run: KeyedStream.derive(b"\x05" * 32, label, str(run)).words(4).tobytes()


@pytest.mark.full
@pytest.mark.parametrize("relation", ["data", "analysts"])
def test_the_shipped_draws_have_the_enumerated_law(relation: str) -> None:
    """False alarms: at most 1e-6 (Hoeffding, divided over both and their outcomes)."""
    runs, seed = 500, seeds(relation)
    if relation == "data":
        played, universe, questions, hidden = WHOLE.parameters, 2, remembered(WHOLE.questions((2, 1))), None
    else:
        played, universe, questions, hidden = BOTH.parameters, 4, remembered(analyst_questions(0, 2, 1)), 0
    law = session_law(played, universe, questions, hidden)
    seen = Counter(shipped_view(played, universe, questions, seed(run), hidden) for run in range(runs))
    allowed = math.sqrt(math.log(2 * 2 * len(law) / 1e-6) / (2 * runs))
    assert max(abs(seen[key] / runs - law.get(key, 0.0)) for key in {*law, *seen}) <= allowed
    # The comparison has power: without noise the law lies outside of it.
    sharper = replace(played, test_epsilon=SURE, ending_epsilon=SURE, step=9 * played.step)
    wrong = session_law(sharper, universe, questions, hidden)
    assert max(abs(wrong.get(key, 0.0) - law.get(key, 0.0)) for key in {*law, *wrong}) > 2 * allowed


def every_stream_is_derived_once() -> bool:
    """No two draws of a session read one stream."""
    derived: list[tuple[str, ...]] = []
    derive = KeyedStream.derive.__func__  # type: ignore[attr-defined]

    def spy(kind: type[KeyedStream], seed: bytes, *labels: str) -> KeyedStream:
        derived.append(labels)
        made: KeyedStream = derive(kind, seed, *labels)
        return made

    with patch.object(KeyedStream, "derive", classmethod(spy)):
        shipped_view(WHOLE.parameters, 2, WHOLE.questions((2, 1)), bytes(32))
    return len(derived) == len(set(derived)) > 6


def test_a_stream_used_again_is_caught() -> None:
    assert every_stream_is_derived_once()
    same = lambda session, purpose, number: session._streams.derive("epochs", str(number))  # noqa: E731
    with patch.object(Epochs, "_stream", same):
        assert not every_stream_is_derived_once()


def certified(
    parameters: EpochParameters, universe: int, sides: list[list[Question | None]], hidden: int | None, runs: int
) -> float:
    """The epsilon at delta 0.01 that runs of the shipped session prove; too large with a chance of 2.5e-7."""

    def sampler(side: int) -> Sampler:
        questions, seed = remembered(sides[side]), seeds(f"audit {side} {hidden}")
        return lambda run: shipped_view(parameters, universe, questions, seed(run), hidden)

    return certify(sampler(0), sampler(1), runs, 0.01, 1e-6 / 4).epsilon


@pytest.mark.full
def test_runs_certify_no_more_of_the_data_than_the_claim(audit_size: AuditSize) -> None:
    sides = [ANSWERS.questions((first, 6 - first)) for first in (2, 3)]
    rho = sum(float(part.amounts()[0]) for part in ANSWERS.parts())
    claim = epsilon_of_rho(rho, 0.01)
    assert certified(ANSWERS.parameters, 2, sides, None, audit_size.runs // 4) <= claim
    sharp = replace(ANSWERS.parameters, noise=GaussianNoise(Fraction(1, 100)))
    assert certified(sharp, 2, sides, None, 60) > 0.5


@pytest.mark.nightly
def test_runs_certify_no_more_of_a_statement_than_the_claim(audit_size: AuditSize) -> None:
    sides = [analyst_questions(first, 2, 1) for first in (0, 1)]
    assert BOTH.charged(7.0) <= 0.01
    assert certified(BOTH.parameters, 4, sides, 0, audit_size.runs // 4) <= 7.0
    sharp = replace(BOTH.parameters, step=12 * NAT)
    assert certified(sharp, 4, sides, 0, 60) > 0.3
