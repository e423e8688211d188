"""Streams of a session are bound to all that was asked before them, in every session mechanism."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from equipoise.model.accounts import Budget
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
RED, SMALL, LARGE = attribute("colour") == "red", attribute("size") == "s", attribute("size").isin(["l", "xl"])
OPTIONS: dict[str, dict[str, Any]] = {
    "online": {"updates": 5, "threshold": 0.001},
    "online_private": {},
    "low_sensitivity": {"sensitivity": "1/1100", "candidates": [{"cells": [0, 7], "counts": [3, 1]}]},
}


def derived(name: str, statements: tuple[Predicate, ...]) -> list[tuple[str, ...]]:
    """The labels of all streams of a session in which statements are asked in every other slot."""
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
        assert len(list(answer(session, SCHEMA, questions, False))) == len(statements)
        session.finish()
    assert len(set(found)) == len(found), "a stream is derived once"
    return found


@pytest.mark.parametrize("name", OPTIONS)
def test_histories_share_streams_up_to_the_first_statement_that_differs(name: str) -> None:
    one, other = derived(name, (RED, SMALL, RED)), derived(name, (RED, LARGE, RED))
    assert derived(name, (RED, SMALL, RED)) == one
    shared = set(one) & set(other)
    alone = set(derived(name, (RED,)))
    # What both have is what came before the statement that differs, in a history that ends there, too.
    assert shared <= alone
    assert set(one) - shared
    assert set(other) - shared
    # Also the same statement after it, in the same slot, is tested with other noise.
    tests = [labels for labels in one if "tests" in labels or "epochs/test" in labels]
    assert len(tests) == 3
    assert [labels in shared for labels in tests] == [True, False, False]


def test_streams_are_bound_to_statements_and_slots_in_their_order() -> None:
    def words(*taken: tuple[int, bytes]) -> bytes:
        streams = SessionStreams(bytes(32))
        for slot, statement in taken:
            streams.take(slot, statement)
        return streams.derive("purpose", "1").words(4).tobytes()

    histories = [
        (),
        ((0, b"a"),),
        ((1, b"a"),),
        ((0, b"b"),),
        ((0, b"a"), (1, b"b")),
        ((0, b"b"), (1, b"a")),
        ((0, b"a"), (1, b"b"), (2, b"")),
        ((0, b"ab"),),
    ]
    assert len({words(*history) for history in histories}) == len(histories)
    assert words(*histories[4]) == words(*histories[4])
