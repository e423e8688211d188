"""Results in chunks: what is written is read again, and what is damaged is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from harness.answers import flat, some_answers

from equipoise.errors import DataLoss
from equipoise.model.results import AnswerMethod, Answers
from equipoise.v1 import types_pb2
from equipoise.wire.results import ANSWERS_IN_CHUNK, chunk_from_bytes, results_to_chunks


def columns(count: int) -> Answers:
    values = np.arange(count, dtype=np.int64) * 1_000_003 - 500
    return some_answers(values, values % 10 + 1, 170)


@pytest.mark.parametrize("count", [0, 1, ANSWERS_IN_CHUNK, ANSWERS_IN_CHUNK + 1, 3 * ANSWERS_IN_CHUNK])
def test_results_come_back_in_order(count: int) -> None:
    answers = columns(count)
    chunks = list(results_to_chunks("r-1", answers))
    assert chunks == list(results_to_chunks("r-1", answers))
    read = [chunk_from_bytes(chunk) for chunk in chunks]
    assert [each.sequence for each in read] == list(range(1, len(chunks) + 1))
    assert [each.first_query for each in read] == list(range(0, max(count, 1), ANSWERS_IN_CHUNK))
    assert [each.last for each in read] == [False] * (len(chunks) - 1) + [True]
    assert {each.round_id for each in read} == {"r-1"}
    assert flat(Answers.join(each.answers for each in read)) == flat(answers)


def test_the_length_of_a_message_does_not_depend_on_the_answers() -> None:
    zeros = np.zeros(100, dtype=np.int64)
    (one,) = results_to_chunks("r", some_answers(zeros, AnswerMethod.GAUSSIAN, 1 << 38))
    for method in AnswerMethod:
        (other,) = results_to_chunks("r", some_answers(zeros - 1, method))
        assert len(one) == len(other)


def test_unequal_columns_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="equally long"):
        replace(columns(2), lows=np.zeros(1, np.int64))
    for name in ("values", "methods"):
        changed: Any = {name: np.zeros(2, np.int32)}
        with pytest.raises(ValueError, match="must be"):
            replace(columns(2), **changed)


def damaged(damage: Callable[[types_pb2.ResultChunk], object]) -> bytes:
    chunks = list(results_to_chunks("r", columns(ANSWERS_IN_CHUNK + 5)))
    message = types_pb2.ResultChunk.FromString(chunks[0])
    damage(message)
    return message.SerializeToString()


# Where in the first message these methods are: values ascend by 3 modulo 10.
HYPOTHESIS, UNCERTIFIED, GAUSSIAN = 6, 8, 4


def chunk_of_one(**fields: Any) -> types_pb2.ResultChunk:
    return types_pb2.ResultChunk(values=[1], lows=[0], highs=[1], standard_errors=[0], **fields)


def test_the_damaged_message_has_these_methods() -> None:
    methods = columns(10).methods[[HYPOTHESIS, UNCERTIFIED, GAUSSIAN]].tolist()
    assert methods == [AnswerMethod.HYPOTHESIS, AnswerMethod.UNCERTIFIED, AnswerMethod.GAUSSIAN]


@pytest.mark.parametrize(
    "damage",
    [
        lambda m: m.Clear(),
        lambda m: setattr(m, "version", 1),
        lambda m: setattr(m, "sequence", 0),
        lambda m: setattr(m, "sequence", 2),
        lambda m: setattr(m, "first_query", 1),
        lambda m: setattr(m, "methods", m.methods[:-1]),
        lambda m: setattr(m, "methods", b"\0" * ANSWERS_IN_CHUNK),
        lambda m: setattr(m, "methods", bytes([len(AnswerMethod) + 1]) * ANSWERS_IN_CHUNK),
        lambda m: m.values.pop(),
        lambda m: m.lows.append(1),
        lambda m: m.standard_errors.pop(),
        lambda m: m.highs.__setitem__(HYPOTHESIS, (1 << 40) + 1),
        lambda m: m.highs.__setitem__(HYPOTHESIS, 2**64 - 1),
        lambda m: m.lows.__setitem__(HYPOTHESIS, m.highs[HYPOTHESIS] + 1),
        lambda m: m.highs.__setitem__(UNCERTIFIED, 1),
        lambda m: m.standard_errors.__setitem__(UNCERTIFIED, 1),
        lambda m: m.standard_errors.__setitem__(HYPOTHESIS, 1),
        lambda m: m.standard_errors.__setitem__(GAUSSIAN, 2**63),
        lambda m: m.MergeFrom(chunk_of_one(version=2, methods=m.methods + b"\1")),
        lambda m: m.CopyFrom(chunk_of_one(version=2, sequence=1, methods=b"\1")),
        lambda m: m.MergeFromString(b"\x78\x01"),
    ],
)
def test_damaged_results_are_data_loss(damage: Callable[[types_pb2.ResultChunk], object]) -> None:
    with pytest.raises(DataLoss):
        chunk_from_bytes(damaged(damage))
