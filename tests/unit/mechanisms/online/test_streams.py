"""Streams of a session are bound to their statement and to what was learnt before, in every session mechanism."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import Share
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.wire.statements import statement_to_bytes
from equipoise_server.computation.session import Question, answer
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.online.streams import SessionStreams
from equipoise_server.mechanisms.registry import session_mechanism
from equipoise_server.randomness.stream import KeyedStream

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
COUNTS = np.array([900, 100, 50, 25, 10, 5, 5, 5])
AFRESH = {AnswerMethod.GAUSSIAN, AnswerMethod.LAPLACE}
RED, SMALL, LARGE = attribute("colour") == "red", attribute("size") == "s", attribute("size").isin(["l", "xl"])
OPTIONS: dict[str, dict[str, Any]] = {
    "online": {"updates": 5, "threshold": 0.001, "prior": "none"},
    "online_private": {"prior": "none"},
    "low_sensitivity": {
        "sensitivity": "1/1100",
        "candidates": [{"cells": [0, 7], "counts": [3, 1]}],
        "prior": "none",
    },
}


def derived(name: str, statements: tuple[Predicate, ...]) -> tuple[list[tuple[str, ...]], list[bool]]:
    """The labels of all streams of a session, asked in every other slot; and which statements are learnt."""
    found: list[tuple[str, ...]] = []
    derive = KeyedStream.derive

    def noted(seed: bytes, *labels: str) -> KeyedStream:
        found.append(labels)
        return derive(seed, *labels)

    setting = PublicParameters(
        records=int(COUNTS.sum()),
        universe_size=SCHEMA.universe_size,
        shares=(Share("ann", 8, 8),),
        unit="query",
        data_budget=Budget(8.0, 1e-4),
        analyst_budget=Budget(float("inf") if name == "online" else 8.0, 0.0 if name == "online" else 1e-4),
        beta=0.05,
        options={"length": 8} | OPTIONS[name],
        attributes=SCHEMA.sizes,
    )
    mechanism = session_mechanism(name)
    with patch.object(KeyedStream, "derive", noted):
        session = mechanism.start(setting, mechanism.plan(setting), DenseCounts(COUNTS), bytes(32))
        questions = [Question(2 * place, statement_to_bytes(each)) for place, each in enumerate(statements)]
        answers = list(answer(session, SCHEMA, questions, False))
        session.finish()
    assert len(set(found)) == len(found), "a stream is derived once"
    return found, [int(each.methods[0]) in AFRESH for each in answers]


def noise_of_tests(labels: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The streams of the tests, in their order."""
    return [each for each in labels if "tests" in each or "epochs/test" in each]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_statement_shares_no_noise_with_another_nor_with_itself_after_another_history(name: str) -> None:
    (one, learnt), (other, other_learnt) = derived(name, (RED, SMALL, RED)), derived(name, (RED, LARGE, RED))
    assert derived(name, (RED, SMALL, RED)) == (one, learnt)
    shared = set(one) & set(other)
    differ = learnt[1] or other_learnt[1]  # whether anything was learnt that the other history lacks
    assert [each in shared for each in noise_of_tests(one)] == [True, False, not differ]
    answered = [each for each in one if "answers" in each or "epochs/answer" in each]
    assert len(answered) == sum(learnt)
    assert not any(each in shared for each in answered if each[-3] == "2")


def test_of_each_mechanism_something_is_learnt_that_parts_two_histories() -> None:
    """Else the test above would show nothing of what comes after it."""
    assert all(derived(name, (RED, SMALL, RED))[1][1] or derived(name, (RED, LARGE, RED))[1][1] for name in OPTIONS)


def test_streams_are_bound_to_what_was_learnt_in_its_order_and_to_the_statement() -> None:
    def words(*learnt: tuple[int, bytes], asked: tuple[int, bytes] = (9, b"now")) -> tuple[bytes, bytes]:
        streams = SessionStreams(bytes(32))
        for slot, statement in learnt:
            streams.ask(slot, b"one that is served")
            streams.ask(slot, statement)
            streams.learn()
        streams.ask(*asked)
        plain, asked_for = streams.derive("purpose", "1"), streams.derive_asked("purpose", "1")
        return plain.words(4).tobytes(), asked_for.words(4).tobytes()

    histories = [
        (),
        ((0, b"a"),),
        ((1, b"a"),),
        ((0, b"b"),),
        ((0, b"a"), (1, b"b")),
        ((0, b"b"), (1, b"a")),
        ((0, b"ab"),),
    ]
    assert len({word for history in histories for word in words(*history)}) == 2 * len(histories)
    for asked in ((9, b"then"), (8, b"now")):
        assert words((0, b"a"), asked=asked)[0] == words((0, b"a"))[0]
        assert words((0, b"a"), asked=asked)[1] != words((0, b"a"))[1]
