"""The client against a server that misbehaves on purpose: broken streams, lost answers, refusals."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow.parquet as pq
import pytest
from harness.answers import some_answers
from harness.fake_server import connected
from harness.shown_rounds import PROMISE, shown_round
from harness.small_custodian import DEPLOYMENT, Custodian

from equipoise.clients import connection as connection_module
from equipoise.clients.analyst import Client
from equipoise.clients.conversation import ATTEMPTS
from equipoise.clients.explaining import PIECE_BYTES
from equipoise.errors import (
    DataLoss,
    InvalidArgument,
    Unavailable,
)
from equipoise.model.rounds import RoundState
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.records.receipts import ReceiptPayload
from equipoise.records.record import workload_commitment
from equipoise.synopsis import write_synopsis
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.results import results_to_chunks
from equipoise.wire.workloads import schema_to_message

ROUND = "r1"
VALUES = np.arange(5000, dtype=np.int64)
CHUNKS = list(results_to_chunks(ROUND, some_answers(VALUES, 1, 7)))


def test_a_broken_stream_is_resumed_where_it_broke() -> None:
    asked = []

    def stream(request: Any, context: Any) -> Iterator[Any]:
        asked.append(request.after_sequence)
        for chunk in CHUNKS[request.after_sequence :][:2]:
            yield analyst_pb2.StreamResultsResponse(chunk=chunk)
        if request.after_sequence + 2 < len(CHUNKS):
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    with connected({"StreamResults": stream}) as connection:
        results = Client(connection).results(ROUND)
    assert asked == [0, 2, 4]
    assert results.answers.values.tolist() == VALUES.tolist()


def test_resuming_by_hand_gives_the_rest() -> None:
    def stream(request: Any, _: Any) -> Iterator[Any]:
        for chunk in CHUNKS[request.after_sequence :]:
            yield analyst_pb2.StreamResultsResponse(chunk=chunk)

    with connected({"StreamResults": stream}) as connection:
        rest = list(Client(connection).stream(ROUND, after=3))
    assert [part.sequence for part in rest] == [4, 5]


def test_a_stream_that_brings_nothing_is_given_up() -> None:
    calls = []

    def stream(request: Any, context: Any) -> Iterator[Any]:
        calls.append(request)
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        yield

    with connected({"StreamResults": stream}) as connection, pytest.raises(Unavailable):
        list(Client(connection).stream(ROUND))
    assert len(calls) == ATTEMPTS


def test_a_server_may_take_long_to_be_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(connection_module, "MAX_PAUSE_SECONDS", 1.0)
    monkeypatch.setattr("equipoise.clients.connection.time.sleep", pauses.append)

    def show(_: Any, context: Any) -> Any:
        context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    with connected({"GetAnalystRound": show}) as connection, pytest.raises(Unavailable):
        Client(connection).round(ROUND)
    assert 14 < sum(pauses) < 16
    assert pauses == sorted(pauses)
    assert max(pauses) == 1


@pytest.mark.parametrize("order", [[1], [0, 0], [0, 2]])
def test_a_message_that_is_not_the_next_one_is_refused(order: list[int]) -> None:
    def stream(_: Any, __: Any) -> Iterator[Any]:
        for number in order:
            yield analyst_pb2.StreamResultsResponse(chunk=CHUNKS[number])

    with connected({"StreamResults": stream}) as connection, pytest.raises(DataLoss):
        list(Client(connection).stream(ROUND))


def test_a_lost_answer_is_asked_for_again_under_the_same_request_id() -> None:
    seen = []

    def submit(requests: Any, context: Any) -> Any:
        parts = list(requests)
        header, workload = parts[0].header, b"".join(part.piece for part in parts[1:])
        seen.append((header.request_id, workload))
        if len(seen) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        commitment = workload_commitment(header.commitment_salt, workload)
        envelope = Custodian().receipt(
            ReceiptPayload(DEPLOYMENT, ROUND, "ann", commitment, 1, 1, 1_000, PROMISE, None)
        )
        return analyst_pb2.SubmitWorkloadResponse(
            receipt=analyst_pb2.Receipt(
                round_id=ROUND,
                workload_digest=hashlib.sha256(workload).digest(),
                envelope=envelope,
                commitment_salt=header.commitment_salt,
            )
        )

    def show(_: Any, __: Any) -> Any:
        return analyst_pb2.GetAnalystRoundResponse(round=shown_round(ROUND, RoundState.OPEN))

    with connected({"GetAnalystRound": show, "SubmitWorkload": submit}) as connection:
        receipt = Client(connection).submit(ROUND, [Among("a", ("x",))])
    assert len(seen) == 2
    assert seen[0] == seen[1]
    assert receipt.workload_digest == hashlib.sha256(seen[0][1]).digest()


def test_a_large_workload_is_sent_in_pieces() -> None:
    sizes: list[int] = []

    def dry_run(requests: Any, _: Any) -> Any:
        sizes.extend(len(part.piece) for part in requests if part.WhichOneof("part") == "piece")
        sizes_told = {"statements": 1, "queries": 1, "sensitivity": 7, "support": 9}
        return analyst_pb2.DryRunWorkloadResponse(max_half_width=0.5, **sizes_told)

    with connected({"DryRunWorkload": dry_run}) as connection:
        found = Client(connection).dry_run(ROUND, [Among("a", ("x" * 1000,))] * 3000)
    assert (found.max_half_width, found.sensitivity, found.support) == (0.5, 7, 9)
    assert len(sizes) > 2
    assert max(sizes) == PIECE_BYTES


SCHEMA = Schema((Attribute("colour", ("red", "green, pale")), Attribute("size", ("s", "m", "l"))))
RECORDS = np.stack(np.unravel_index(np.arange(10) * 7 % 6, (2, 3)), axis=1)


def synopsis_server(pages: Callable[[Any, Any], Iterator[Any]]) -> dict[str, Callable[[Any, Any], Any]]:
    shown = shown_round(ROUND, RoundState.RELEASED)
    dataset = types_pb2.Dataset(name="t", schema=schema_to_message(SCHEMA))
    return {
        "GetAnalystRound": lambda *_: analyst_pb2.GetAnalystRoundResponse(round=shown),
        "GetDataset": lambda *_: analyst_pb2.GetDatasetResponse(dataset=dataset),
        "DownloadSynopsis": pages,
    }


def test_a_broken_synopsis_is_resumed_where_it_broke(tmp_path: Path) -> None:
    asked = []

    def pages(request: Any, context: Any) -> Iterator[Any]:
        asked.append(request.after_records)
        for start in range(request.after_records, min(request.after_records + 4, 10), 2):
            cells = RECORDS[start : start + 2].ravel().tolist()
            yield analyst_pb2.DownloadSynopsisResponse(cells=cells, records=10)
        if request.after_records + 4 < 10:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    told: list[tuple[int, int]] = []
    with connected(synopsis_server(pages)) as connection:
        client = Client(connection)
        assert client.synopsis(ROUND).categories.tolist() == RECORDS.tolist()
        parts = client.stream_synopsis(ROUND)
        written = write_synopsis(parts, SCHEMA, tmp_path / "t.csv", lambda *how_far: told.append(how_far))
    assert asked == [0, 4, 8] * 2
    assert (written, told) == (10, [(done, 10) for done in (2, 4, 6, 8, 10)])
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["colour", "size"]
    assert rows[1:] == [[SCHEMA.attributes[i].categories[n] for i, n in enumerate(row)] for row in RECORDS.tolist()]
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("cells", [[], [1], [1, 2]])
def test_a_synopsis_that_ends_early_is_refused_and_leaves_no_file(tmp_path: Path, cells: list[int]) -> None:
    def pages(*_: Any) -> Iterator[Any]:
        if cells:
            yield analyst_pb2.DownloadSynopsisResponse(cells=cells, records=2)

    with connected(synopsis_server(pages)) as connection:
        client = Client(connection)
        with pytest.raises(DataLoss):
            write_synopsis(client.stream_synopsis(ROUND), SCHEMA, tmp_path / "t.csv", lambda *_: None)
        with pytest.raises(InvalidArgument, match="cannot be written"):
            write_synopsis(client.stream_synopsis(ROUND), SCHEMA, tmp_path / "no" / "t.csv", lambda *_: None)
    assert not list(tmp_path.iterdir())


def test_a_synopsis_is_written_as_parquet(tmp_path: Path) -> None:
    def pages(request: Any, _: Any) -> Iterator[Any]:
        for start in range(request.after_records, 10, 4):
            yield analyst_pb2.DownloadSynopsisResponse(
                cells=RECORDS[start : start + 4].ravel().tolist(), records=10
            )

    path = tmp_path / "t.parquet"
    with connected(synopsis_server(pages)) as connection:
        assert write_synopsis(Client(connection).stream_synopsis(ROUND), SCHEMA, path, lambda *_: None) == 10
    told = pq.read_table(path).to_pydict()
    assert told == {
        each.name: [each.categories[code] for code in RECORDS[:, axis].tolist()]
        for axis, each in enumerate(SCHEMA.attributes)
    }
    assert [own.name for own in tmp_path.iterdir()] == ["t.parquet"]
    with connected(synopsis_server(pages)) as connection, pytest.raises(InvalidArgument, match="cannot be written"):
        write_synopsis(
            Client(connection).stream_synopsis(ROUND), SCHEMA, tmp_path / "no" / "t.parquet", lambda *_: None
        )


def test_all_pages_are_listed() -> None:
    def page(request: Any, _: Any) -> Any:
        number = int(request.page_token or 0)
        shown = shown_round(str(number), RoundState.OPEN)
        following = str(number + 1) if number < 2 else ""
        return analyst_pb2.ListAnalystRoundsResponse(rounds=[shown], next_page_token=following)

    with connected({"ListAnalystRounds": page}) as connection:
        assert [each.id for each in Client(connection).rounds()] == ["0", "1", "2"]


def test_waiting_outlives_a_broken_watch() -> None:
    states = [RoundState.OPEN, RoundState.SEALED, RoundState.RELEASED]

    def watch(_: Any, context: Any) -> Iterator[Any]:
        shown = shown_round(ROUND, states.pop(0))
        yield analyst_pb2.WatchAnalystRoundResponse(round=shown)
        if states:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the server is stopping")

    seen = []
    with connected({"WatchAnalystRound": watch}) as connection:
        ended = Client(connection).wait(ROUND, lambda shown: seen.append(shown.state))
    assert seen == [RoundState.OPEN, RoundState.SEALED, RoundState.RELEASED]
    assert ended.state is RoundState.RELEASED
