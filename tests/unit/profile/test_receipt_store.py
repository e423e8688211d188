"""What the client downloads for a bundle, and what it keeps of what the custodian signed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from harness.fake_server import connected
from harness.shown_rounds import PROMISE, shown_round
from harness.small_custodian import DEPLOYMENT, ROUND, SALT, SCHEMA, STATEMENTS, Custodian, Told, signing_key
from harness.verifying import KEY, found, log_of, papers

from equipoise.clients import connection as connection_module
from equipoise.clients.analyst import Client
from equipoise.commands.verification import bundle
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, RoundState
from equipoise.profile.profile import LOG_KEYS, SETTINGS, settings_text
from equipoise.profile.receipt_store import REFUSED_RECEIPTS, ReceiptStore, check_answered
from equipoise.records.bundle import Bundle
from equipoise.records.item_parts import RecordedSession
from equipoise.records.receipts import ReceiptPayload, SessionReceiptPayload
from equipoise.records.record import workload_commitment
from equipoise.v1 import analyst_pb2, types_pb2
from equipoise.wire.workloads import schema_to_message, workload_to_bytes

WORKLOAD = workload_to_bytes(STATEMENTS)
PAYLOAD = ReceiptPayload(DEPLOYMENT, ROUND, "ann", workload_commitment(SALT, WORKLOAD), 3, 10, 1_000, PROMISE)
LOG = Custodian()


def store_of(directory: Path) -> ReceiptStore:
    """The store of a profile of ann's that trusts the custodian's first key."""
    (directory / SETTINGS).write_bytes(settings_text("127.0.0.1:1", "ann"))
    (directory / LOG_KEYS).write_text(LOG.trusted[0].to_text() + "\n")
    return ReceiptStore(directory)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "MAX_PAUSE_SECONDS", 0.001)


def test_the_newest_receipt_is_kept(tmp_path: Path) -> None:
    """A request that is sent again gets its first receipt, which may be in force no longer."""
    kept = ReceiptStore(tmp_path)
    assert kept.receipt(ROUND) is None
    first, second = (LOG.receipt(replace(PAYLOAD, accept_time=time)) for time in (1_000, 2_000))
    for envelope in (first, second, first):
        kept.keep_receipt(ROUND, envelope)
    assert kept.receipt(ROUND) == second
    assert kept.receipt("0" * 32) is None


def test_several_programs_may_keep_in_one_profile(tmp_path: Path) -> None:
    receipts = [LOG.receipt(replace(PAYLOAD, accept_time=time)) for time in range(64)]
    with ThreadPoolExecutor(8) as programs:
        list(programs.map(lambda receipt: ReceiptStore(tmp_path).keep_receipt(ROUND, receipt), receipts))
    assert ReceiptStore(tmp_path).receipt(ROUND) in receipts
    assert [each.name for each in (tmp_path / "receipts").iterdir()] == [ROUND]


def test_a_receipt_that_could_hide_behind_an_older_one_is_refused(tmp_path: Path) -> None:
    """A custodian who dates the second receipt back could show the first workload as the last, with its receipt."""
    kept = ReceiptStore(tmp_path)
    kept.keep_receipt(ROUND, LOG.receipt(PAYLOAD), repeated=False)
    other = workload_commitment(SALT, b"other")
    for time in (999, 1_000):
        envelope = LOG.receipt(replace(PAYLOAD, commitment=other, accept_time=time))
        with pytest.raises(VerificationFailed, match="not newer"):
            kept.keep_receipt(ROUND, envelope, repeated=False)
    with pytest.raises(VerificationFailed, match="not newer"):
        kept.keep_receipt(ROUND, LOG.receipt(replace(PAYLOAD, commitment=other)))
    assert kept.receipt(ROUND) == LOG.receipt(PAYLOAD)


@pytest.mark.parametrize(
    "payload",
    [
        PAYLOAD,
        replace(PAYLOAD, accept_time=2_000),
        replace(PAYLOAD, round_id="1" * 32, commitment=None, statements=0, queries=0),
    ],
)
def test_a_withdrawal_needs_a_receipt_of_it(tmp_path: Path, payload: ReceiptPayload) -> None:
    """Else a custodian could answer with the receipt of before, and go on as if nothing had been taken back."""

    def withdraw(_: Any, __: Any) -> Any:
        return analyst_pb2.WithdrawWorkloadResponse(envelope=LOG.receipt(payload))

    kept = store_of(tmp_path)
    kept.keep_receipt(ROUND, LOG.receipt(PAYLOAD))
    with (
        connected({"WithdrawWorkload": withdraw}) as connection,
        pytest.raises(VerificationFailed, match="withdrawn"),
    ):
        Client(connection, kept).withdraw(ROUND)
    assert kept.receipt(ROUND) == LOG.receipt(PAYLOAD)


def test_the_receipt_of_a_session_s_newest_answer_is_kept(tmp_path: Path) -> None:
    """Stored answers can be read again, with their receipts; two chains for one answer convict the custodian."""
    kept = ReceiptStore(tmp_path)
    assert kept.session_receipt(ROUND) is None
    first = SessionReceiptPayload(DEPLOYMENT, ROUND, "ann", 1, bytes(32), 1_000, PROMISE)
    second = replace(first, sequence=2, chain=bytes([2]) * 32)
    for payload in (first, second, first, replace(second, time=2_000)):
        kept.keep_session_receipt(ROUND, LOG.session_receipt(payload))
    for other in (replace(second, chain=bytes(32)), PAYLOAD):
        envelope = LOG.receipt(other) if isinstance(other, ReceiptPayload) else LOG.session_receipt(other)
        with pytest.raises(VerificationFailed):
            kept.keep_session_receipt(ROUND, envelope)
    assert kept.session_receipt(ROUND) == LOG.session_receipt(second)
    assert kept.receipt(ROUND) is None


def test_a_receipt_is_of_the_answer_that_came() -> None:
    """Else what is signed could be what is released later, and not what was told."""
    payload = SessionReceiptPayload(DEPLOYMENT, ROUND, "ann", 1, bytes(32), 1_000, PROMISE)
    check_answered(LOG.session_receipt(payload), ROUND, "ann", 1, bytes(32))
    changes: list[dict[str, Any]] = [{"session": "cd" * 16}, {"analyst": "bob"}, {"sequence": 2}, {"chain": SALT}]
    for change in changes:
        with pytest.raises(VerificationFailed, match="other statements or answers"):
            check_answered(LOG.session_receipt(replace(payload, **change)), ROUND, "ann", 1, bytes(32))


@pytest.mark.parametrize("round_id", ["", "../ann", "a/b", ".", "0" * 65])
def test_what_is_no_round_names_no_file(tmp_path: Path, round_id: str) -> None:
    with pytest.raises(InvalidArgument, match="round"):
        ReceiptStore(tmp_path).keep_receipt(round_id, LOG.receipt(PAYLOAD))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damaged", [b"", b"[]", b'{"payload":1}', b'{"payload":"AA=="}'])
def test_what_is_no_receipt_is_not_kept(tmp_path: Path, damaged: bytes) -> None:
    kept = ReceiptStore(tmp_path)
    kept.keep_receipt(ROUND, LOG.receipt(PAYLOAD))
    with pytest.raises(VerificationFailed):
        kept.keep_receipt(ROUND, damaged)
    assert kept.receipt(ROUND) == LOG.receipt(PAYLOAD)


def accepting(payload: ReceiptPayload, salt: bytes = SALT, log: Custodian = LOG) -> Any:
    def submit(requests: Any, _: Any) -> Any:
        for _request in requests:
            pass
        digest, envelope = sha256(WORKLOAD).digest(), log.receipt(payload)
        receipt = analyst_pb2.Receipt(
            round_id=ROUND,
            workload_digest=digest,
            statements=3,
            queries=10,
            envelope=envelope,
            commitment_salt=salt,
        )
        return analyst_pb2.SubmitWorkloadResponse(receipt=receipt)

    return submit


def open_round(_: Any, __: Any) -> Any:
    return analyst_pb2.GetAnalystRoundResponse(round=shown_round(ROUND, RoundState.OPEN))


def test_a_receipt_for_what_was_sent_is_kept(tmp_path: Path) -> None:
    with connected({"GetAnalystRound": open_round, "SubmitWorkload": accepting(PAYLOAD)}) as connection:
        Client(connection, store_of(tmp_path)).submit(ROUND, STATEMENTS)
    assert ReceiptStore(tmp_path).receipt(ROUND) == LOG.receipt(PAYLOAD)


@pytest.mark.parametrize(
    ("payload", "salt"),
    [
        (replace(PAYLOAD, commitment=bytes(32)), SALT),
        (replace(PAYLOAD, commitment=None, statements=0, queries=0), SALT),
        (replace(PAYLOAD, round_id="cd" * 16), SALT),
        (PAYLOAD, bytes(32)),
    ],
)
def test_a_receipt_for_anything_else_is_refused(tmp_path: Path, payload: ReceiptPayload, salt: bytes) -> None:
    with (
        connected({"GetAnalystRound": open_round, "SubmitWorkload": accepting(payload, salt)}) as connection,
        pytest.raises(VerificationFailed, match="another workload"),
    ):
        Client(connection, store_of(tmp_path)).submit(ROUND, STATEMENTS)
    assert ReceiptStore(tmp_path).receipt(ROUND) is None


def refused_receipts(profile: Path) -> list[bytes]:
    return [path.read_bytes() for path in (profile / REFUSED_RECEIPTS).iterdir()]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"beta": 0.5}, "promises the beta 0.5, but 0.05 was shown to you"),
        ({"mechanism": "laplace"}, "promises the mechanism laplace, but gaussian was shown to you"),
        (
            {"analyst_budget": Budget(9.0, 1e-6)},
            "analyst budget epsilon 9.0, delta 1e-06, but epsilon 1.0, delta 1e-06 was shown to you",
        ),
        ({"seed_commitment": bytes([1]) * 32}, "was shown to you: the custodian has made two different promises"),
        ({"close_time": 1}, "promises the close time 1, but none was shown to you"),
        ({"release_grid_seconds": 3600}, "promises the release grid seconds 3600, but 0 was shown to you"),
        (
            {"session": RecordedSession(Ending.STOP, 100, 2, 0)},
            "the session's length 100, but none was shown to you",
        ),
    ],
)
def test_a_receipt_that_promises_other_terms_than_were_shown_is_refused(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    """Else a custodian could show one promise, and put another on record."""
    payload = replace(PAYLOAD, promise=replace(PROMISE, **other))
    answers = {"GetAnalystRound": open_round, "SubmitWorkload": accepting(payload)}
    with connected(answers) as connection, pytest.raises(VerificationFailed, match=words):
        Client(connection, store_of(tmp_path)).submit(ROUND, STATEMENTS)
    assert ReceiptStore(tmp_path).receipt(ROUND) is None
    assert refused_receipts(tmp_path) == [LOG.receipt(payload)]


@pytest.mark.parametrize("call", ["SubmitWorkload", "WithdrawWorkload"])
def test_a_receipt_by_another_key_is_refused_at_once_and_kept_as_evidence(tmp_path: Path, call: str) -> None:
    """Found out only when the round has ended, it would be too late to ask again."""
    stranger = Custodian([signing_key(2)])
    withdrawn = replace(PAYLOAD, commitment=None, statements=0, queries=0)

    def withdraw(_: Any, __: Any) -> Any:
        return analyst_pb2.WithdrawWorkloadResponse(envelope=stranger.receipt(withdrawn))

    answers = {
        "GetAnalystRound": open_round,
        "SubmitWorkload": accepting(PAYLOAD, log=stranger),
        "WithdrawWorkload": withdraw,
    }
    with connected(answers) as connection:
        client = Client(connection, store_of(tmp_path))
        ask: dict[str, Callable[[], object]] = {
            "SubmitWorkload": lambda: client.submit(ROUND, STATEMENTS),
            "WithdrawWorkload": lambda: client.withdraw(ROUND),
        }
        with pytest.raises(VerificationFailed, match=r"not signed by the custodian's key in log\.vkey") as refused:
            ask[call]()
    assert ReceiptStore(tmp_path).receipt(ROUND) is None
    assert refused_receipts(tmp_path) == [stranger.receipt(PAYLOAD if call == "SubmitWorkload" else withdrawn)]
    assert str(tmp_path / REFUSED_RECEIPTS / ROUND) in refused.value.message


@pytest.mark.parametrize("call", ["SubmitWorkload", "WithdrawWorkload"])
@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"analyst": "bob"}, "the receipt is for 'bob', not for you, 'ann'"),
        ({"deployment": "elsewhere"}, "the receipt is of the deployment 'elsewhere', which is not that of"),
    ],
)
def test_a_receipt_in_another_name_is_refused_at_once_and_kept_as_evidence(
    tmp_path: Path, call: str, told: dict[str, Any], words: str
) -> None:
    """Signed by the right key, for the right workload: and yet worthless to whom it is given."""
    payload = replace(PAYLOAD, **told)
    withdrawn = replace(payload, commitment=None, statements=0, queries=0)

    def withdraw(_: Any, __: Any) -> Any:
        return analyst_pb2.WithdrawWorkloadResponse(envelope=LOG.receipt(withdrawn))

    answers = {"GetAnalystRound": open_round, "SubmitWorkload": accepting(payload), "WithdrawWorkload": withdraw}
    with connected(answers) as connection:
        client = Client(connection, store_of(tmp_path))
        with pytest.raises(VerificationFailed, match=words):
            client.submit(ROUND, STATEMENTS) if call == "SubmitWorkload" else client.withdraw(ROUND)
    assert ReceiptStore(tmp_path).receipt(ROUND) is None
    assert refused_receipts(tmp_path) == [LOG.receipt(payload if call == "SubmitWorkload" else withdrawn)]


def test_a_receipt_by_a_known_and_a_coming_key_is_taken(tmp_path: Path) -> None:
    both = Custodian([signing_key(2), *LOG.keys])
    with connected({"GetAnalystRound": open_round, "SubmitWorkload": accepting(PAYLOAD, log=both)}) as connection:
        Client(connection, store_of(tmp_path)).submit(ROUND, STATEMENTS)
    assert ReceiptStore(tmp_path).receipt(ROUND) == both.receipt(PAYLOAD)


def test_nothing_is_sent_from_a_profile_without_the_custodian_s_keys(tmp_path: Path) -> None:
    with connected({}) as connection:
        client = Client(connection, ReceiptStore(tmp_path))
        with pytest.raises(InvalidArgument, match=LOG_KEYS):
            client.submit(ROUND, STATEMENTS)
        with pytest.raises(InvalidArgument, match=LOG_KEYS):
            client.withdraw(ROUND)


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
        cells = np.frombuffer(told.synopsis or b"", dtype="<u4")
        numbers = np.stack(np.unravel_index(cells, SCHEMA.sizes), axis=1)
        yield analyst_pb2.DownloadSynopsisResponse(cells=numbers.ravel().tolist(), records=len(cells))

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
