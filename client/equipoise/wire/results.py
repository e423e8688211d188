"""Results as messages, and back.

A malformed result message, which can only come from a damaged store or a broken connection, raises `DataLoss`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.results import Answers, ResultColumns
from equipoise.v1 import types_pb2
from equipoise.wire.fields import refuse_unknown_fields

VERSION = 2
ANSWERS_IN_CHUNK = 1024
ANSWERS_TO_STATEMENT = 1 << 16  # of a session, in one message


def results_to_chunks(round_id: str, answers: Answers) -> Iterator[bytes]:
    """The messages of one analyst's result stream, columns of one row a query: at least one, the last one marked.

    Made one at a time, as they are asked for. The same bytes for the same arguments, and as many for as many.
    """
    starts = range(0, max(1, len(answers)), ANSWERS_IN_CHUNK)
    for sequence, start in enumerate(starts, start=1):
        part = answers[start : start + ANSWERS_IN_CHUNK]
        yield _to_bytes(ResultColumns(round_id, sequence, start, part, last=sequence == len(starts)))


def chunk_from_bytes(data: bytes) -> ResultColumns:
    """Reads one result message. Raises `DataLoss` for everything that `results_to_chunks` does not write."""
    columns = _from_bytes(data, ANSWERS_IN_CHUNK)
    if not (columns.last or len(columns.answers) == ANSWERS_IN_CHUNK):
        raise DataLoss("a result message is short without being the last")
    if columns.first_query != (columns.sequence - 1) * ANSWERS_IN_CHUNK:
        raise DataLoss("a result message is out of sequence")
    return columns


def answers_to_chunk(session_id: str, sequence: int, first_query: int, answers: Answers) -> bytes:
    """Returns the message of the answers to one statement of a session: the same bytes every time.

    Args:
        session_id: the session.
        sequence: the statement's number among the analyst's, from 1.
        first_query: how many cells the statements before it have together.
        answers: one row a cell.

    Raises:
        ValueError: there is no cell, or there are more than one message holds.
    """
    if not 0 < len(answers) <= ANSWERS_TO_STATEMENT:
        raise ValueError(f"a statement must have from 1 to {ANSWERS_TO_STATEMENT:,} cells, not {len(answers):,}")
    return _to_bytes(ResultColumns(session_id, sequence, first_query, answers, last=False))


def answers_from_chunk(data: bytes) -> ResultColumns:
    """Reads the answers to one statement. Raises `DataLoss` for all that `answers_to_chunk` does not write."""
    columns = _from_bytes(data, ANSWERS_TO_STATEMENT)
    if columns.last or not columns.sequence or not len(columns.answers):
        raise DataLoss("a message of a session does not answer one statement")
    return columns


def _to_bytes(columns: ResultColumns) -> bytes:
    answers = columns.answers
    message = types_pb2.ResultChunk(
        version=VERSION,
        round_id=columns.round_id,
        sequence=columns.sequence,
        first_query=columns.first_query,
        values=answers.values.tolist(),
        methods=answers.methods.astype(np.uint8, casting="safe").tobytes(),
        lows=answers.lows.tolist(),
        highs=answers.highs.tolist(),
        standard_errors=answers.standard_errors.tolist(),
        last=columns.last,
    )
    return message.SerializeToString(deterministic=True)


def _from_bytes(data: bytes, most: int) -> ResultColumns:
    message = types_pb2.ResultChunk()
    try:
        message.ParseFromString(data)
        refuse_unknown_fields(message, "chunk")
    except (DecodeError, InvalidArgument):
        raise DataLoss("a result message cannot be read") from None
    if message.version != VERSION:
        raise DataLoss(f"a result message has version {message.version}, but must have {VERSION}")
    if len(message.values) > most:
        raise DataLoss(f"a result message has {len(message.values):,} rows, but must have at most {most:,}")
    try:
        answers = Answers(
            np.array(message.values, dtype=np.int64),
            np.frombuffer(message.methods, dtype=np.uint8),
            *(
                np.array(column, dtype=np.int64)
                for column in (message.lows, message.highs, message.standard_errors)
            ),
        )
        answers.check()
    except (ValueError, OverflowError) as error:
        raise DataLoss(f"a result message cannot be what was sent: {error}") from None
    return ResultColumns(message.round_id, message.sequence, message.first_query, answers, message.last)
