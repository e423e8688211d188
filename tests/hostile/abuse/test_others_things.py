"""What is another's answers like what does not exist: rounds, receipts, results, datasets, page tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from google.protobuf.message import Message
from harness.abuse.place import ANALYST, ASKED, OPERATOR, Place, attempt, outcome, played, refusal, upload
from harness.rounds_bench import SALT
from harness.server_process import Refusal

from equipoise.records.canonical import from_base64
from equipoise.records.receipts import ReceiptPayload
from equipoise.v1 import analyst_pb2, operator_pb2
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes

NO_ROUND = Refusal("NOT_FOUND", "NOT_FOUND", "there is no such round")
NO_DATASET = Refusal("NOT_FOUND", "NOT_FOUND", "there is no such dataset")
NO_TOKEN = Refusal("INVALID_ARGUMENT", "INVALID", "page_token: is not a page token issued by this server")
WORKLOAD = workload_to_bytes(ASKED)
MAX_UINT64 = 2**64 - 1


def one(make: Callable[[str], Message]) -> Callable[[str], Sequence[bytes]]:
    """The messages of a call with one request."""
    return lambda round_id: [make(round_id).SerializeToString()]


def attach(session_id: str, after: int = 0, salt: bytes = SALT) -> bytes:
    """The first message of a session's stream."""
    message = analyst_pb2.AttachSession(
        session_id=session_id, after_sequence=after, commitment_salt=salt, accept_unprotected=True
    )
    return analyst_pb2.AskQueriesRequest(attach=message).SerializeToString()


ABOUT_A_ROUND: dict[str, tuple[str, Callable[[str], Sequence[bytes]]]] = {
    "see": ("GetAnalystRound", one(lambda at: analyst_pb2.GetAnalystRoundRequest(round_id=at))),
    "watch": ("WatchAnalystRound", one(lambda at: analyst_pb2.WatchAnalystRoundRequest(round_id=at))),
    "results": ("StreamResults", one(lambda at: analyst_pb2.StreamResultsRequest(round_id=at))),
    "later results": (
        "StreamResults",
        one(lambda at: analyst_pb2.StreamResultsRequest(round_id=at, after_sequence=MAX_UINT64)),
    ),
    "synopsis": ("DownloadSynopsis", one(lambda at: analyst_pb2.DownloadSynopsisRequest(round_id=at))),
    "later synopsis": (
        "DownloadSynopsis",
        one(lambda at: analyst_pb2.DownloadSynopsisRequest(round_id=at, after_records=MAX_UINT64)),
    ),
    "evidence": ("DownloadEvidence", one(lambda at: analyst_pb2.DownloadEvidenceRequest(round_id=at))),
    "later evidence": (
        "DownloadEvidence",
        one(lambda at: analyst_pb2.DownloadEvidenceRequest(round_id=at, since_size=MAX_UINT64)),
    ),
    "withdraw": (
        "WithdrawWorkload",
        one(lambda at: analyst_pb2.WithdrawWorkloadRequest(round_id=at, request_id="guessed")),
    ),
    "submit": ("SubmitWorkload", lambda at: upload(at, WORKLOAD, "guessed")),
    "submit garbage": ("SubmitWorkload", lambda at: upload(at, b"\xff", "guessed")),
    "dry run": ("DryRunWorkload", lambda at: upload(at, WORKLOAD)),
    "ask": ("AskQueries", lambda at: [attach(at)]),
    "ask garbage": ("AskQueries", lambda at: [attach(at, MAX_UINT64, b""), b"\xff"]),
    "dry run garbage": ("DryRunWorkload", lambda at: upload(at, b"\xff")),
}
GUESSES = (
    "",
    "0" * 32,
    "x",
    "ann",
    "' OR '1'='1",
    "x'; DROP TABLE rounds; --",
    "%",
    "%s%n%x",
    "{0.__class__}",
    "../../keys/storage.key",
    "/etc/passwd",
    "\r\nequipoise-reason: NONE",
    "\x1b[31m\x7f\x9b",
    "\u202egnorw",
    "\ufeff\u200b",
    "é" * 10_000,
    "\U0001f600" * 10_000,
)


@pytest.fixture(scope="module")
def released(here: Place) -> str:
    return played(here)


@pytest.mark.thin(2)
@pytest.mark.parametrize("what", ABOUT_A_ROUND)
def test_others_rounds_are_like_none(here: Place, released: str, what: str) -> None:
    name, requests = ABOUT_A_ROUND[what]
    with here.channel(here.mal) as channel:
        others = (here.others, here.others_session, released)
        for round_id in (*others, here.shared.upper(), f" {here.shared}", here.session.upper(), *GUESSES):
            found = attempt(channel, f"{ANALYST}/{name}", requests(round_id))
            assert found == NO_ROUND, (round_id, found)


def test_others_datasets_are_like_none(here: Place) -> None:
    with here.channel(here.mal) as channel:
        for name in ("unshared", "SHOP", here.others, *GUESSES):
            request = analyst_pb2.GetDatasetRequest(name=name)
            assert attempt(channel, f"{ANALYST}/GetDataset", [request.SerializeToString()]) == NO_DATASET, name


def test_lists_and_their_tokens_are_the_callers(here: Place, released: str) -> None:
    method = f"{ANALYST}/ListAnalystRounds"

    def request(token: str = "", size: int = 0) -> list[bytes]:
        return [analyst_pb2.ListAnalystRoundsRequest(page_token=token, page_size=size).SerializeToString()]

    with here.channel(here.mal) as channel:
        (raw,) = outcome(channel, method, request())
        listed = [each.id for each in analyst_pb2.ListAnalystRoundsResponse.FromString(raw).rounds]
        # Other tests may have opened sessions for the caller here before.
        assert listed[-2:] == [here.session, here.shared]
        assert {here.others, here.others_session, released}.isdisjoint(listed)
        # The last token of the caller's own leads to an empty page, and others' are like none.
        (raw,) = outcome(channel, method, request(here.shared))
        assert analyst_pb2.ListAnalystRoundsResponse.FromString(raw) == analyst_pb2.ListAnalystRoundsResponse()
        for token in (here.others, released, *GUESSES[1:]):
            assert attempt(channel, method, request(token)) == NO_TOKEN, token
        for size in (1001, 2**32 - 1):
            refused = refusal(channel, method, request(size=size))
            assert (refused.status, refused.message[:9]) == ("INVALID_ARGUMENT", "page_size")


def test_operators_tokens_are_positions_and_nothing_else(here: Place) -> None:
    tokens = (*GUESSES[1:], "-1", "9" * 18, "9" * 19, "٣", "1e3", " 1", here.shared)
    with here.channel(here.operator) as channel:
        for name, make in (
            ("ListRounds", operator_pb2.ListRoundsRequest),
            ("ListDatasets", operator_pb2.ListDatasetsRequest),
            ("ListAnalysts", operator_pb2.ListAnalystsRequest),
            (
                "ListAccounts",
                lambda page_token: operator_pb2.ListAccountsRequest(dataset="shop", page_token=page_token),
            ),
            (
                "ListAccountHistory",
                lambda page_token: operator_pb2.ListAccountHistoryRequest(
                    account="data/shop", page_token=page_token
                ),
            ),
        ):
            for token in tokens:
                request: Message = make(page_token=token)
                found = attempt(channel, f"{OPERATOR}/{name}", [request.SerializeToString()])
                if isinstance(found, Refusal):
                    assert (found.status, found.message[:10]) == ("INVALID_ARGUMENT", "page_token"), (name, token)


def test_request_ids_and_receipts_are_each_callers_own(here: Place) -> None:
    method, mine = f"{ANALYST}/SubmitWorkload", workload_to_bytes(ASKED[:1])
    with here.channel(here.ann) as ann, here.channel(here.mal) as mal:
        (first,) = outcome(ann, method, upload(here.shared, WORKLOAD, "the same"))
        # Neither a receipt of hers nor a word that her request_id is taken.
        (raw,) = outcome(mal, method, upload(here.shared, mine, "the same"))
        receipt = analyst_pb2.SubmitWorkloadResponse.FromString(raw).receipt
        assert (receipt.statements, receipt.queries) == (1, 1)
        withdrawal = analyst_pb2.WithdrawWorkloadRequest(round_id=here.shared, request_id="take back")
        (raw,) = outcome(mal, f"{ANALYST}/WithdrawWorkload", [withdrawal.SerializeToString()])
        told = json.loads(analyst_pb2.WithdrawWorkloadResponse.FromString(raw).envelope)
        payload = ReceiptPayload.from_bytes(from_base64(told["payload"], "the payload"))
        assert (payload.analyst, payload.commitment) == ("mal", None)
        assert outcome(ann, method, upload(here.shared, WORKLOAD, "the same")) == [first]
        # What she asked is hers still; what he took back is gone, and hers is not his to take.
        withdrawal.request_id = "and hers"
        refused = refusal(mal, f"{ANALYST}/WithdrawWorkload", [withdrawal.SerializeToString()])
        assert refused == Refusal("NOT_FOUND", "NOT_FOUND", "you have submitted no workload to this round")
        refused = refusal(mal, method, upload(here.shared, WORKLOAD, "the same"))
        assert (refused.status, refused.reason) == ("ALREADY_EXISTS", "EXISTS")


def test_streams_begin_where_they_are_and_no_further(here: Place, released: str) -> None:
    def results(after: int) -> list[bytes]:
        return [analyst_pb2.StreamResultsRequest(round_id=released, after_sequence=after).SerializeToString()]

    def synopsis(after: int) -> list[bytes]:
        return [analyst_pb2.DownloadSynopsisRequest(round_id=released, after_records=after).SerializeToString()]

    with here.channel(here.ann) as channel:
        (raw,) = outcome(channel, f"{ANALYST}/StreamResults", results(0))
        assert chunk_from_bytes(analyst_pb2.StreamResultsResponse.FromString(raw).chunk).last
        assert outcome(channel, f"{ANALYST}/StreamResults", results(1)) == []
        pages = outcome(channel, f"{ANALYST}/DownloadSynopsis", synopsis(0))
        records = analyst_pb2.DownloadSynopsisResponse.FromString(pages[0]).records
        assert outcome(channel, f"{ANALYST}/DownloadSynopsis", synopsis(records)) == []
        for after in (records + 1, 2**31, 2**63 - 1, 2**63, MAX_UINT64):
            for name, requests in (("StreamResults", results(after)), ("DownloadSynopsis", synopsis(after))):
                refused = refusal(channel, f"{ANALYST}/{name}", requests)
                assert (refused.status, refused.reason) == ("OUT_OF_RANGE", "RANGE"), (name, after)
        for since in (2**40, 2**63 - 1, 2**63, MAX_UINT64):
            never = analyst_pb2.DownloadEvidenceRequest(round_id=released, since_size=since)
            refused = refusal(channel, f"{ANALYST}/DownloadEvidence", [never.SerializeToString()])
            assert (refused.status, refused.reason) == ("OUT_OF_RANGE", "RANGE")
        for name, request in (
            ("StreamResults", analyst_pb2.StreamResultsRequest(round_id=here.others)),
            ("DownloadSynopsis", analyst_pb2.DownloadSynopsisRequest(round_id=here.others)),
            ("DownloadEvidence", analyst_pb2.DownloadEvidenceRequest(round_id=here.others)),
        ):
            refused = refusal(channel, f"{ANALYST}/{name}", [request.SerializeToString()])
            assert (refused.status, refused.reason) == ("FAILED_PRECONDITION", "STATE")
