"""What the client downloads for a bundle, and the checkpoint that is compared the next time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from harness.fake_server import connected
from harness.shown_rounds import shown_round
from harness.small_custodian import ROUND, SCHEMA, STATEMENTS, Custodian, Told, signing_key
from harness.verifying import KEY, found, log_of, papers

from equipoise.clients.analyst import Client
from equipoise.commands.verification import bundle
from equipoise.model.rounds import RoundState
from equipoise.model.synopsis import Synopsis, SynopsisPart
from equipoise.profile.receipt_store import ReceiptStore
from equipoise.records.bundle import Bundle
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.synopsis import synopsis_part_to_message
from equipoise.wire.workloads import schema_to_message


def test_a_bundle_is_downloaded_whole_over_broken_streams() -> None:
    """Evidence that was cut off is read from its beginning again."""
    told = Told().bundle(log_of(), earlier=3)
    evidence, asked = told.evidence.to_bytes(), []

    def download(request: Any, context: Any) -> Iterator[Any]:
        asked.append(request.since_size)
        yield analyst_pb2.DownloadEvidenceResponse(evidence=evidence[:1000])
        if len(asked) == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        yield analyst_pb2.DownloadEvidenceResponse(evidence=evidence[1000:])
        for byte in told.workload or b"":
            yield analyst_pb2.DownloadEvidenceResponse(workload=bytes([byte]))

    def stream(request: Any, _: Any) -> Iterator[Any]:
        for chunk in told.stream[request.after_sequence :]:
            yield analyst_pb2.StreamResultsResponse(chunk=chunk)

    def synopsis(_: Any, __: Any) -> Iterator[Any]:
        synopsis = Synopsis.from_bytes(told.synopsis or b"", SCHEMA.sizes)
        yield synopsis_part_to_message(SynopsisPart(synopsis, len(synopsis)))

    def shown(_: Any, __: Any) -> Any:
        return analyst_pb2.GetAnalystRoundResponse(round=shown_round(ROUND, RoundState.RELEASED))

    def dataset(_: Any, __: Any) -> Any:
        return analyst_pb2.GetDatasetResponse(
            dataset=types_pb2.Dataset(name="shop", schema=schema_to_message(SCHEMA), records=400)
        )

    answers = {
        "DownloadEvidence": download,
        "StreamResults": stream,
        "DownloadSynopsis": synopsis,
        "GetAnalystRound": shown,
        "GetDataset": dataset,
    }
    with connected(answers) as connection:
        bundle = Client(connection).bundle(ROUND, since_size=3)
    assert asked == [3, 3]
    assert bundle == told
    assert found(bundle, papers(statements=STATEMENTS)) is None


def test_a_checkpoint_kept_while_keys_are_exchanged_is_compared_the_next_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is signed with a key that the profile does not have, and that the next bundle names."""
    log = Custodian([signing_key(1), signing_key(2)])
    log.grow(5)
    (tmp_path / "log.vkey").write_text(KEY.to_text() + "\n")
    kept = ReceiptStore(tmp_path)
    kept.keep_checkpoint(log.checkpoint())
    asked: list[int] = []

    class Server(Client):
        def bundle(self, round_id: str, since_size: int = 0) -> Bundle:
            assert round_id == ROUND
            asked.append(since_size)
            return Told().bundle(log, earlier=since_size)

    with connected({}) as connection:
        monkeypatch.setattr(Client, "from_profile", lambda _: Server(connection))
        bundle(ROUND, tmp_path / "round.bundle", tmp_path)
    assert asked == [5]
    assert "5 leaves, held by you" in capsys.readouterr().out
    assert kept.checkpoint() == log.checkpoint()
