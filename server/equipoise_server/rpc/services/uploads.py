"""Receives workloads, each as a header and then pieces, and holds them in memory until they have been checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from equipoise.errors import InvalidArgument, TooFast, TooLarge
from equipoise.v1 import analyst_pb2
from equipoise_server.rpc.threads import SharedThreads

UploadRequest = analyst_pb2.SubmitWorkloadRequest | analyst_pb2.DryRunWorkloadRequest

TOO_LARGE_A_PART = "the workload is larger than your part of what the server can receive at once"
TOO_MUCH = "too much of yours is being received at once"


class Uploads:
    """The workloads that are being received or checked. Together they take at most `total_bytes` of memory.

    Every registered identity has an equal part of the total, used or not. So other callers cannot cause a refusal,
    and all uploads fit together.

    Args:
        workload_bytes: the largest size of one workload.
        total_bytes: the largest size of all workloads together.
        identities: returns the number of registered identities; called in the caller's turns of `threads`.
        threads: the threads that count identities.
    """

    def __init__(
        self, workload_bytes: int, total_bytes: int, identities: Callable[[], int], threads: SharedThreads
    ) -> None:
        self._workload_bytes = workload_bytes
        self._total_bytes = total_bytes
        self._identities = identities
        self._threads = threads
        self._held: Counter[str] = Counter()

    @asynccontextmanager
    async def collected(
        self, caller: str, requests: AsyncIterator[UploadRequest]
    ) -> AsyncIterator[tuple[analyst_pb2.SubmitHeader, bytes]]:
        """Receive an upload, and yield its header and the joined pieces. The bytes count until the context ends.

        The header tells the size because gRPC's server cannot tell a complete upload from one that was cut off.

        Raises:
            InvalidArgument: the parts come in a wrong order, or are not as long together as the header says.
            TooLarge: the workload exceeds the limit or the caller's part.
            TooFast: the workload exceeds the caller's part together with the caller's other uploads.
        """
        part = self._total_bytes // max(1, await self._threads.run(caller, self._identities))
        received = 0
        header: analyst_pb2.SubmitHeader | None = None
        pieces = bytearray()
        try:
            async for request in requests:
                which = request.WhichOneof("part")
                if which is None:
                    raise InvalidArgument("part", "must be a header or a piece")
                if (which == "header") is (header is not None):
                    raise InvalidArgument("header", "must be sent once, before any piece of the workload")
                if which == "header":
                    header = request.header
                    continue
                if received + len(request.piece) > self._workload_bytes:
                    raise TooLarge(f"the workload is larger than {self._workload_bytes:,} bytes")
                if received + len(request.piece) > part:
                    raise TooLarge(TOO_LARGE_A_PART)
                if self._held[caller] + len(request.piece) > part:
                    raise TooFast(TOO_MUCH)
                received += len(request.piece)
                self._held[caller] += len(request.piece)
                pieces += request.piece
            if header is None:
                raise InvalidArgument("header", "must be sent once, before any piece of the workload")
            if received != header.workload_bytes:
                raise InvalidArgument(
                    "header.workload_bytes", f"is {header.workload_bytes:,}, but {received:,} came"
                )
            workload = bytes(pieces)
            pieces.clear()
            yield header, workload
        finally:
            self._held[caller] -= received
