"""Follows a call that takes long: what the server streams about it meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import grpc

from equipoise.model.rounds import Progress
from equipoise.v1 import operator_pb2, operator_pb2_grpc
from equipoise.wire.rounds import PROGRESS

LONG_SECONDS = 6 * 3600.0  # that a call may take which reads a table or plans; a dead connection is noticed sooner

OnProgress = Callable[[Progress], None]


@contextmanager
def followed(
    service: operator_pb2_grpc.OperatorServiceStub, request_id: str, on_progress: OnProgress | None
) -> Iterator[None]:
    """Tell how far a request is while the block waits for its answer.

    Nothing is told where the server cannot tell it, and no failure of that is one of the request.

    Args:
        service: the operators' methods, on a connection.
        request_id: the request's.
        on_progress: called from a thread that has ended when the block is left; None: nobody wants to know.
    """
    if on_progress is None:
        yield
        return
    told = service.WatchRequest(operator_pb2.WatchRequestRequest(request_id=request_id))

    def follow() -> None:
        with suppress(grpc.RpcError):
            for response in told:
                on_progress(PROGRESS.read(response.progress, "progress"))

    following = threading.Thread(target=follow, name="following", daemon=True)
    following.start()
    try:
        yield
    finally:
        told.cancel()
        following.join()
