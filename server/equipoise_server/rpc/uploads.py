"""Workloads arrive as a header and then pieces of bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator

from equipoise.errors import InvalidArgument, TooLarge
from equipoise.v1 import analyst_pb2

UploadRequest = analyst_pb2.SubmitWorkloadRequest | analyst_pb2.DryRunWorkloadRequest


async def collect(
    requests: AsyncIterator[UploadRequest], limit_bytes: int
) -> tuple[analyst_pb2.SubmitHeader, bytes]:
    """The header and the joined pieces. Raises `InvalidArgument` for a wrong order, `TooLarge` beyond the limit."""
    header: analyst_pb2.SubmitHeader | None = None
    pieces = bytearray()
    async for request in requests:
        part = request.WhichOneof("part")
        if part is None:
            raise InvalidArgument("part", "must be a header or a piece")
        if (part == "header") is (header is not None):
            raise InvalidArgument("header", "must be sent first, and once")
        if part == "header":
            header = request.header
        else:
            if len(pieces) + len(request.piece) > limit_bytes:
                raise TooLarge(f"the workload is larger than {limit_bytes:,} bytes")
            pieces += request.piece
    if header is None:
        raise InvalidArgument("header", "must be sent first, and once")
    return header, bytes(pieces)
