"""What the server tells about a long request is passed on, and never changes what becomes of the request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from harness.fake_server import connected, refuse
from harness.rounds_bench import SCHEMA
from harness.waiting import PATIENCE

from equipoise.clients.operator import Operator
from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Progress
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.workloads import schema_to_message

SERVICE = operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]
DATASET = types_pb2.Dataset(name="shop", account="shop", version=1, records=3, schema=schema_to_message(SCHEMA))


def test_what_is_told_arrives_before_the_answer() -> None:
    told, seen, asked = threading.Event(), list[Progress](), list[str]()

    def register(request: Any, context: Any) -> Any:
        asked.append(request.request_id)
        assert told.wait(PATIENCE)
        refuse(context, InvalidArgument("table", "is odd"))

    def watch(request: Any, _: Any) -> Iterator[Any]:
        asked.append(request.request_id)
        yield operator_pb2.WatchRequestResponse(progress=types_pb2.Progress(phase="reading", done=7, total=100))

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        told.set()

    answers = {"RegisterDataset": register, "WatchRequest": watch}
    with connected(answers, SERVICE) as connection, pytest.raises(InvalidArgument, match="is odd"):
        Operator(connection).register_dataset("shop", "shop.csv", SCHEMA, on_progress=on_progress)
    assert [(each.phase, each.done, each.total) for each in seen] == [("reading", 7, 100)]
    assert len(set(asked)) == 1
    assert not any(thread.name == "following" for thread in threading.enumerate())


@pytest.mark.parametrize("ends", ["refused", "waits"])
def test_a_watch_that_fails_or_does_not_end_changes_nothing(ends: str) -> None:
    def watch(_: Any, context: Any) -> Iterator[Any]:
        if ends == "refused":
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no such method")
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(PATIENCE)
        yield from ()

    def update(*_: Any) -> Any:
        return operator_pb2.UpdateDatasetResponse(dataset=DATASET)

    answers = {"UpdateDataset": update, "WatchRequest": watch}
    with connected(answers, SERVICE) as connection:
        updated = Operator(connection).update_dataset("shop", "new.csv", on_progress=lambda _: None)
    assert updated.name == "shop"
