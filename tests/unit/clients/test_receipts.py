"""What the client asks of a receipt before it keeps it, and what becomes of one that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from harness.fake_server import connected
from harness.kept_receipts import LOG, PAYLOAD, WORKLOAD, store_of
from harness.shown_rounds import PROMISE, shown_round
from harness.small_custodian import ROUND, SALT, SCHEMA, STATEMENTS, Custodian, signing_key

from equipoise.clients.analyst import Client
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, RoundState
from equipoise.model.submissions import DryRun
from equipoise.profile.kept_dry_runs import DRY_RUNS, keep_dry_run, kept_dry_run
from equipoise.profile.profile import LOG_KEYS
from equipoise.profile.receipt_store import REFUSED_RECEIPTS, ReceiptStore
from equipoise.questions.aggregates import count
from equipoise.questions.builder import Table
from equipoise.questions.questions import Questions
from equipoise.records.item_parts import RecordedSession
from equipoise.records.receipts import ReceiptPayload
from equipoise.records.record import questions_commitment, workload_commitment
from equipoise.v1 import analyst_pb2
from equipoise.wire.workloads import workload_to_bytes


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


ASKED = Questions.of(Table(SCHEMA, "shop").agg(n=count()), Table(SCHEMA, "shop").group_by("size").agg(n=count()))


@pytest.mark.parametrize(
    "signed",
    [
        None,
        questions_commitment(SALT, b""),
        questions_commitment(bytes(32), ASKED.as_comments.encode()),
        workload_commitment(SALT, ASKED.as_comments.encode()),
    ],
)
def test_a_receipt_that_commits_to_other_questions_is_refused(tmp_path: Path, signed: bytes | None) -> None:
    own = questions_commitment(SALT, ASKED.as_comments.encode())
    workload = workload_commitment(SALT, workload_to_bytes(ASKED.statements))
    honest = replace(PAYLOAD, commitment=workload, questions=own)
    with connected({"GetAnalystRound": open_round, "SubmitWorkload": accepting(honest)}) as connection:
        Client(connection, store_of(tmp_path)).submit(ROUND, ASKED)
    lie = replace(honest, questions=signed, accept_time=2_000)
    with (
        connected({"GetAnalystRound": open_round, "SubmitWorkload": accepting(lie)}) as connection,
        pytest.raises(VerificationFailed, match="does not commit to the questions"),
    ):
        Client(connection, store_of(tmp_path)).submit(ROUND, ASKED)
    assert ReceiptStore(tmp_path).receipt(ROUND) == LOG.receipt(honest)


def test_questions_are_committed_to_and_never_sent() -> None:
    headers = []

    def submit(requests: Any, _: Any) -> Any:
        headers.append(next(iter(requests)).header)
        return accepting(PAYLOAD)(requests, _)

    for asked in (ASKED, ASKED, ASKED.statements):
        with (
            connected({"GetAnalystRound": open_round, "SubmitWorkload": submit}) as connection,
            pytest.raises(VerificationFailed),
        ):
            Client(connection).submit(ROUND, asked)
    first, again, statements = headers
    for header in (first, again):
        own = questions_commitment(header.commitment_salt, ASKED.as_comments.encode())
        assert header.questions_commitment == own
        assert b"SELECT" not in header.SerializeToString()
    assert first.questions_commitment != again.questions_commitment  # each under a salt of its own
    assert statements.questions_commitment == b""


def refused_receipts(profile: Path) -> list[bytes]:
    return [path.read_bytes() for path in (profile / REFUSED_RECEIPTS).glob("*")]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"records": 900}, "promises the records 900, but 1000 was shown to you"),
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


@pytest.mark.parametrize(
    ("half_width", "uncertified", "words"),
    [
        (0.1, 0, None),
        (0.05, 0, "promises the max half width 0.1, but 0.05 was told by the dry run"),
        (0.1, 3, "promises the max uncertified 0, but 3 was told by the dry run"),
    ],
)
def test_a_receipt_that_promises_other_errors_than_the_dry_run_told_is_refused(
    tmp_path: Path, half_width: float, uncertified: int, words: str | None
) -> None:
    """Else a custodian could draw analysts with small errors, and sign larger ones."""

    def dry_run(requests: Any, _: Any) -> Any:
        for _request in requests:
            pass
        return analyst_pb2.DryRunWorkloadResponse(max_half_width=half_width, max_uncertified=uncertified)

    answers = {"GetAnalystRound": open_round, "SubmitWorkload": accepting(PAYLOAD), "DryRunWorkload": dry_run}
    with connected(answers) as connection:
        client = Client(connection, store_of(tmp_path))
        client.dry_run(ROUND, STATEMENTS)
        with nullcontext() if words is None else pytest.raises(VerificationFailed, match=words):
            client.submit(ROUND, STATEMENTS)
    assert refused_receipts(tmp_path) == ([] if words is None else [LOG.receipt(PAYLOAD)])


def test_nothing_is_sent_where_the_kept_dry_run_is_damaged(tmp_path: Path) -> None:
    """Else an honest custodian's receipt would be refused for it, after the workload was accepted."""
    store = store_of(tmp_path)
    keep_dry_run(store, ROUND, DryRun(1, 1, 0.1, 0, 1, 1, 0.01))
    path = tmp_path / DRY_RUNS / ROUND
    path.write_bytes(path.read_bytes()[:-1])
    with connected({"GetAnalystRound": open_round}) as connection:
        with pytest.raises(InvalidArgument, match="is damaged; remove it, or make a dry run again") as refused:
            Client(connection, store).submit(ROUND, STATEMENTS)
        assert refused.value.field == str(path)
        # A file that is removed is compared with nothing.
        path.unlink()
        assert kept_dry_run(store, ROUND) is None


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
