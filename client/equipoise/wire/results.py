"""Results as messages, and back.

A malformed result message, which can only come from a damaged store or a broken connection, raises `DataLoss`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.results import NO_BOUND, AnswerMethod, ResultColumns
from equipoise.v1 import types_pb2
from equipoise.wire.fields import refuse_unknown_fields
from equipoise.wire.outline import VERSION

ANSWERS_IN_CHUNK = 1024
ANSWERS_TO_STATEMENT = 1 << 16  # of a session, in one message


def results_to_chunks(
    round_id: str, values: NDArray[np.int64], methods: NDArray[np.uint8], bounds: NDArray[np.int64]
) -> Iterator[bytes]:
    """The messages of one analyst's result stream, columns of one row a query: at least one, the last one marked.

    Made one at a time, as they are asked for. The same bytes for the same arguments.
    """
    if not len(values) == len(methods) == len(bounds):
        raise ValueError("values, methods and bounds must be equally long")
    starts = range(0, max(1, len(values)), ANSWERS_IN_CHUNK)
    for sequence, start in enumerate(starts, start=1):
        part = slice(start, start + ANSWERS_IN_CHUNK)
        message = types_pb2.ResultChunk(
            version=VERSION,
            round_id=round_id,
            sequence=sequence,
            first_query=start,
            values=values[part].tolist(),
            methods=methods[part].astype(np.uint8, casting="safe").tobytes(),
            bounds=bounds[part].tolist(),
            last=sequence == len(starts),
        )
        yield message.SerializeToString(deterministic=True)


def chunk_from_bytes(data: bytes) -> ResultColumns:
    """Reads one result message. Raises `DataLoss` for everything that `results_to_chunks` does not write."""
    columns = _columns_from_bytes(data, ANSWERS_IN_CHUNK)
    if not (columns.last or len(columns.values) == ANSWERS_IN_CHUNK):
        raise DataLoss("a result message is short without being the last")
    if columns.first_query != (columns.sequence - 1) * ANSWERS_IN_CHUNK:
        raise DataLoss("a result message is out of sequence")
    return columns


def answers_to_chunk(
    session_id: str,
    sequence: int,
    first_query: int,
    values: NDArray[np.int64],
    methods: NDArray[np.uint8],
    bounds: NDArray[np.int64],
) -> bytes:
    """The message of the answers to one statement of a session, columns of one row a cell: the same bytes always.

    `sequence`: of the analyst's statements, from 1; `first_query`: how many cells those before it have together.
    """
    if not 0 < len(values) == len(methods) == len(bounds) <= ANSWERS_TO_STATEMENT:
        raise ValueError("values, methods and bounds must be equally long, from 1 to 65,536 cells")
    message = types_pb2.ResultChunk(
        version=VERSION,
        round_id=session_id,
        sequence=sequence,
        first_query=first_query,
        values=values.tolist(),
        methods=methods.astype(np.uint8, casting="safe").tobytes(),
        bounds=bounds.tolist(),
    )
    return message.SerializeToString(deterministic=True)


def answers_from_chunk(data: bytes) -> ResultColumns:
    """Reads the answers to one statement. Raises `DataLoss` for all that `answers_to_chunk` does not write."""
    columns = _columns_from_bytes(data, ANSWERS_TO_STATEMENT)
    if columns.last or not columns.sequence or not len(columns.values):
        raise DataLoss("a message of a session does not answer one statement")
    return columns


def _columns_from_bytes(data: bytes, most: int) -> ResultColumns:
    message = types_pb2.ResultChunk()
    try:
        message.ParseFromString(data)
        refuse_unknown_fields(message, "chunk")
    except (DecodeError, InvalidArgument):
        raise DataLoss("a result message cannot be read") from None
    if message.version != VERSION:
        raise DataLoss(f"a result message has version {message.version}, but must have {VERSION}")
    count = len(message.values)
    if not len(message.methods) == len(message.bounds) == count <= most:
        raise DataLoss("a result message has columns of unequal or too great length")
    methods = np.frombuffer(message.methods, dtype=np.uint8)
    if count and not 1 <= int(methods.min()) <= int(methods.max()) <= max(AnswerMethod):
        raise DataLoss("a result message holds an unknown way of answering")
    if max(message.bounds, default=0) > NO_BOUND:
        raise DataLoss("a result message holds an impossible bound")
    return ResultColumns(
        round_id=message.round_id,
        sequence=message.sequence,
        first_query=message.first_query,
        values=np.array(message.values, dtype=np.int64),
        methods=methods,
        bounds=np.array(message.bounds, dtype=np.int64),
        last=message.last,
    )
