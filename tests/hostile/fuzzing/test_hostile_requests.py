"""Whatever a caller sends is answered or refused in our own words: never an unexpected error, never its text.

Through the handlers as gRPC calls them, inside the error shield, on the real service and a real store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio
from harness.dangers import LARGE_CAPS_SENT, SMALL_TABLE
from harness.mutations import nearly
from harness.rounds_bench import ANN, SALT, SCHEMA, TERMS, Bench
from harness.server_process import signing_request
from harness.session_terms import ONLINE
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise.errors import BY_REASON, InternalError
from equipoise.model.accounts import Budget
from equipoise.model.identities import Caller, Role
from equipoise.model.rounds import SessionTerms as RecordedSession
from equipoise.model.rounds import Share, Terms
from equipoise.model.rounds import Share as RecordedShare
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2, types_pb2
from equipoise.wire.terms import terms_to_message
from equipoise.wire.workloads import schema_to_message, workload_to_bytes
from equipoise_server.identity.admission import Admission
from equipoise_server.identity.authority import Authority, new_key
from equipoise_server.identity.policy import POLICY
from equipoise_server.rpc.interceptors import authentication
from equipoise_server.rpc.interceptors.error_translation import MAX_MESSAGE, REASON_KEY, hide_errors
from equipoise_server.rpc.interceptors.interceptor import Context, surround
from equipoise_server.rpc.methods import Serving, bind
from equipoise_server.rpc.services import evidence_stream
from equipoise_server.rpc.services.analyst import AnalystMethods
from equipoise_server.rpc.services.auditor import AuditorMethods
from equipoise_server.rpc.services.operator import OperatorMethods
from equipoise_server.rpc.services.session_stream import SessionStreamLimits, SessionStreams
from equipoise_server.rpc.services.synopsis_stream import Synopses
from equipoise_server.rpc.services.uploads import Uploads
from equipoise_server.rpc.threads import SharedThreads, Threads
from equipoise_server.transparency.identity_records import authority_is_recorded, recorded_login, recorded_registry
from equipoise_server.transparency.views import LogViews

SESSION_TERMS = replace(
    ONLINE,
    shares=(RecordedShare("ann", 5000, 50_000), RecordedShare("bob", 4, 12)),
    session=RecordedSession(10_000),
)
ANALYST, OPERATOR, AUDITOR = (f"/equipoise.v1.{name}Service" for name in ("Analyst", "Operator", "Auditor"))

STALL_SECONDS = 60.0


class Aborted(aio.AbortError):
    """What the real context raises."""


@dataclass
class FakeContext:
    """Keeps what a call was ended with."""

    ended: list[tuple[grpc.StatusCode, str, dict[str, str]]] = field(default_factory=list)

    async def abort(
        self, status: grpc.StatusCode, message: str, trailing_metadata: tuple[tuple[str, str], ...]
    ) -> NoReturn:
        self.ended.append((status, message, dict(trailing_metadata)))
        raise Aborted

    async def write(self, message: bytes) -> None:
        """Every message is read at once."""


@dataclass(frozen=True)
class Details:
    """What a generic handler is asked with."""

    method: str
    invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


class Served:
    """All services of a server without its network."""

    def __init__(self, bench: Bench) -> None:
        stopping = asyncio.Event()
        stopping.set()  # so that who watches is told to come back later
        self.bench = bench
        self.round_id = bench.opened(replace(TERMS, mechanism="gaussian", options={}))
        self.session_id = bench.sessions.open(SESSION_TERMS, "a session").id
        rounds, now = bench.rounds, bench.clock
        authority = Authority.create("here", now())
        admission = Admission(
            recorded_registry(rounds.operations),
            lambda: authority,
            authority_is_recorded,
            recorded_login,
            10,
            60,
            9,
        )
        self._shared = SharedThreads(2, "hostile")
        threads = Threads(self._shared, self._shared)
        uploads = Uploads(10_000, 2**20, admission.registry.count, self._shared)
        asking = SessionStreams(
            bench.sessions, threads, asyncio.Event(), SessionStreamLimits(4, 1e6, 1e6, STALL_SECONDS)
        )
        operators = OperatorMethods(
            rounds,
            bench.sessions,
            admission,
            "https://login.example",
            lambda: "",
            threads,
            stopping,
        )
        implementations = {
            analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"]: AnalystMethods(
                rounds.own_world,
                rounds.grant_requests,
                rounds.datasets,
                rounds.submissions,
                rounds.analyst_views,
                asking,
                Synopses(rounds.analyst_views, bench.store),
                uploads,
                threads,
                stopping,
                admission,
            ),
            operator_pb2.DESCRIPTOR.services_by_name["OperatorService"]: operators,
            auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"]: AuditorMethods(
                rounds.views, rounds.budgets, rounds.seeds, LogViews(bench.store)
            ),
        }
        self._services = bind(implementations, Serving(threads, STALL_SECONDS))
        self._runner = asyncio.Runner()

    def close(self) -> None:
        self._runner.close()
        self._shared.close()
        self.bench.stop()

    def check(self, method: str, *requests: bytes) -> None:
        """The call ends with an answer, or with a refusal of the fixed catalogue that may be sent."""
        context = FakeContext()
        self._runner.run(self._call(method, requests, context))
        for status, message, trailing in context.ended:
            kind = BY_REASON[trailing[REASON_KEY]]
            assert kind is not InternalError, (method, requests, message)
            assert status.name == kind.status
            assert len(message.encode()) <= MAX_MESSAGE

    async def _call(self, method: str, requests: tuple[bytes, ...], context: FakeContext) -> None:
        (role,) = POLICY[method].roles
        authentication._CALLER.set(Caller("ann" if role is Role.ANALYST else str(role), role))
        found: Any = next(filter(None, (service.service(cast(Any, Details(method))) for service in self._services)))
        handler: Any = surround(found, hide_errors, method)

        async def sent() -> AsyncIterator[bytes]:
            for request in requests:
                yield request

        asked = sent() if handler.request_streaming else requests[0]
        try:
            answer = handler.unary_stream or handler.stream_unary or handler.unary_unary or handler.stream_stream
            await answer(asked, cast(Context, context))
        except Aborted:
            pass


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("hostile")
    made = Served(Bench(directory, f"sqlite:///{directory / 'test.db'}"))
    (directory / "data" / "made.csv").write_text("colour,size\nred,s\n")
    with pytest.MonkeyPatch.context() as patched:
        # Nothing here looks after the log, so waiting for it would be in vain.
        patched.setattr(evidence_stream, "PATIENCE_SECONDS", 0.0)
        yield made
    made.close()


CAP = types_pb2.Budget(epsilon=1.0, delta=1e-6)
BUDGET = Budget(1.0, 1e-6)
TERMS_MESSAGE = terms_to_message(
    Terms(
        "shop",
        (Share("ann", 4, 12), Share("bob", 4, 12)),
        Budget(1.0, 1e-6),
        Budget(1.0, 1e-6),
        mechanism="laplace",
        accepted=SMALL_TABLE,
    )
)
SESSION_MESSAGE = types_pb2.RoundTerms()
SESSION_MESSAGE.CopyFrom(TERMS_MESSAGE)
SESSION_MESSAGE.mechanism = "online_private"
SESSION_MESSAGE.session.CopyFrom(types_pb2.SessionTerms(length=3, turn_seconds=1))
HALF_A_PAIR = operator_pb2.PlanRoundRequest(terms=TERMS_MESSAGE)
HALF_A_PAIR.terms.options = '{"\\ud800": 1}'
CSR = signing_request(new_key())


def templates(round_id: str) -> dict[str, Message]:
    """A request of every method that could be served, the seed of its mutations. Nothing here starts a worker."""
    return {
        f"{ANALYST}/GetDataset": analyst_pb2.GetDatasetRequest(name="shop"),
        f"{ANALYST}/ListAnalystRounds": analyst_pb2.ListAnalystRoundsRequest(page_size=1, page_token=round_id),
        f"{ANALYST}/GetAnalystRound": analyst_pb2.GetAnalystRoundRequest(round_id=round_id),
        f"{ANALYST}/WatchAnalystRound": analyst_pb2.WatchAnalystRoundRequest(round_id=round_id),
        f"{ANALYST}/WithdrawWorkload": analyst_pb2.WithdrawWorkloadRequest(round_id=round_id, request_id="a"),
        f"{ANALYST}/StreamResults": analyst_pb2.StreamResultsRequest(round_id=round_id, after_sequence=1),
        f"{ANALYST}/DownloadSynopsis": analyst_pb2.DownloadSynopsisRequest(round_id=round_id, after_records=1),
        f"{ANALYST}/DownloadEvidence": analyst_pb2.DownloadEvidenceRequest(round_id=round_id, since_size=1),
        f"{ANALYST}/ListSessions": analyst_pb2.ListSessionsRequest(page_size=1, page_token=round_id),
        f"{ANALYST}/ListOwnDatasets": analyst_pb2.ListOwnDatasetsRequest(page_size=1, page_token="a"),
        f"{ANALYST}/ListSpending": analyst_pb2.ListSpendingRequest(round_id=round_id, page_size=1, page_token="1"),
        f"{ANALYST}/RequestGrant": analyst_pb2.RequestGrantRequest(
            dataset="shop", reason="For the yearly report.", epsilon=0.5, request_id="a"
        ),
        f"{ANALYST}/ListOwnGrantRequests": analyst_pb2.ListOwnGrantRequestsRequest(page_size=1, page_token="1"),
        f"{OPERATOR}/RegisterDataset": operator_pb2.RegisterDatasetRequest(
            name="made",
            source="made.csv",
            schema=schema_to_message(SCHEMA),
            data_cap=CAP,
            analyst_cap=CAP,
            request_id="a",
            data_order=0.0,
            accepted=LARGE_CAPS_SENT,
        ),
        f"{OPERATOR}/AllowLogin": operator_pb2.AllowLoginRequest(name="nobody", subject="s", request_id="a"),
        f"{OPERATOR}/UpdateDataset": operator_pb2.UpdateDatasetRequest(
            name="nothing", source="made.csv", schema=schema_to_message(SCHEMA), request_id="a"
        ),
        f"{OPERATOR}/DeleteDataset": operator_pb2.DeleteDatasetRequest(name="nothing", request_id="a"),
        f"{OPERATOR}/GetDatasetHistory": operator_pb2.GetDatasetHistoryRequest(name="shop"),
        f"{OPERATOR}/ListDatasetCharges": operator_pb2.ListDatasetChargesRequest(
            dataset="shop", page_size=1, page_token="1"
        ),
        f"{OPERATOR}/RetireDataset": operator_pb2.RetireDatasetRequest(name="nothing", request_id="a"),
        f"{OPERATOR}/ListDatasets": operator_pb2.ListDatasetsRequest(page_size=1, page_token="a"),
        f"{OPERATOR}/AddAnalyst": operator_pb2.AddAnalystRequest(name="eve", signing_request=CSR, request_id="a"),
        f"{OPERATOR}/RevokeAnalyst": operator_pb2.RevokeAnalystRequest(name="none", request_id="a"),
        f"{OPERATOR}/RenewAnalyst": operator_pb2.RenewAnalystRequest(
            name="eve", signing_request=CSR, request_id="a"
        ),
        f"{OPERATOR}/DeleteAnalyst": operator_pb2.DeleteAnalystRequest(name="none", request_id="a"),
        f"{OPERATOR}/ListAnalysts": operator_pb2.ListAnalystsRequest(page_size=1, page_token="ann"),
        f"{OPERATOR}/PlanRound": operator_pb2.PlanRoundRequest(terms=TERMS_MESSAGE),
        f"{OPERATOR}/WatchRequest": operator_pb2.WatchRequestRequest(request_id="a"),
        f"{OPERATOR}/OpenRound": operator_pb2.OpenRoundRequest(terms=TERMS_MESSAGE, request_id="a"),
        f"{OPERATOR}/OpenSession": operator_pb2.OpenSessionRequest(terms=SESSION_MESSAGE, request_id="a"),
        f"{OPERATOR}/CloseSession": operator_pb2.CloseSessionRequest(session_id=round_id, request_id="a"),
        f"{OPERATOR}/ScheduleRounds": operator_pb2.ScheduleRoundsRequest(
            terms=TERMS_MESSAGE,
            period="monthly",
            first_time=Timestamp(seconds=4_000_000_000),
            yearly_budget=CAP,
            request_id="a",
        ),
        f"{OPERATOR}/ListSchedules": operator_pb2.ListSchedulesRequest(page_size=1, page_token="1"),
        f"{OPERATOR}/StopSchedule": operator_pb2.StopScheduleRequest(id=round_id, request_id="a"),
        f"{OPERATOR}/ListGrantRequests": operator_pb2.ListGrantRequestsRequest(page_size=1, page_token="1"),
        f"{OPERATOR}/DecideGrantRequest": operator_pb2.DecideGrantRequestRequest(
            analyst="ann", number=1, answer="There is no budget left.", request_id="a"
        ),
        f"{OPERATOR}/ListRounds": operator_pb2.ListRoundsRequest(page_size=1, page_token=round_id),
        f"{OPERATOR}/GetRound": operator_pb2.GetRoundRequest(round_id=round_id),
        f"{OPERATOR}/WatchRound": operator_pb2.WatchRoundRequest(round_id=round_id),
        f"{OPERATOR}/SealRound": operator_pb2.SealRoundRequest(round_id="none", request_id="a"),
        f"{OPERATOR}/RunRound": operator_pb2.RunRoundRequest(round_id="none", request_id="a"),
        f"{OPERATOR}/ReleaseRound": operator_pb2.ReleaseRoundRequest(round_id="none", request_id="a"),
        f"{OPERATOR}/AbortRound": operator_pb2.AbortRoundRequest(round_id="none", reason="a", request_id="a"),
        f"{OPERATOR}/ListAccounts": operator_pb2.ListAccountsRequest(dataset="shop", page_size=1, page_token="a"),
        f"{OPERATOR}/ListAccountHistory": operator_pb2.ListAccountHistoryRequest(
            account="data/shop", page_size=1, page_token="1"
        ),
        f"{OPERATOR}/SetCap": operator_pb2.SetCapRequest(account="data/shop", cap=CAP, request_id="a"),
        f"{AUDITOR}/ListAuditRounds": auditor_pb2.ListAuditRoundsRequest(page_size=1, page_token=round_id),
        f"{AUDITOR}/ListJournal": auditor_pb2.ListJournalRequest(page_size=1, page_token="1"),
        f"{AUDITOR}/ListLogEntries": auditor_pb2.ListLogEntriesRequest(page_size=1, page_token="1"),
        f"{AUDITOR}/ListRecords": auditor_pb2.ListRecordsRequest(page_size=1, page_token="1"),
        f"{AUDITOR}/GetInclusionProof": auditor_pb2.GetInclusionProofRequest(leaf_index=1, tree_size=2),
        f"{AUDITOR}/GetConsistencyProof": auditor_pb2.GetConsistencyProofRequest(old_size=1, new_size=2),
        f"{AUDITOR}/SetAuditNonce": auditor_pb2.SetAuditNonceRequest(
            round_id=round_id, nonce=bytes(32), request_id="a"
        ),
        f"{AUDITOR}/GetSealedSeed": auditor_pb2.GetSealedSeedRequest(round_id=round_id),
    }


UPLOADS = tuple(f"{ANALYST}/{name}" for name in ("SubmitWorkload", "DryRunWorkload"))


ASKING = f"{ANALYST}/AskQueries"
FIELDLESS = (f"{AUDITOR}/GetCheckpoint",)  # nothing can be put into its request


def test_every_method_is_attacked(served: Served) -> None:
    attacked = {*templates(served.round_id), *UPLOADS, ASKING, *FIELDLESS}
    left_out = {method for method, row in POLICY.items() if len(row.roles) == 1} - attacked
    assert not left_out


@given(st.data())
@settings(max_examples=4 * settings().max_examples)
def test_no_request_is_unexpected(served: Served, data: st.DataObject) -> None:
    method, template = data.draw(
        st.sampled_from(sorted(templates(served.round_id).items(), key=lambda each: each[0]))
    )
    served.check(method, data.draw(nearly(template)))


@given(nearly(operator_pb2.PlanRoundRequest(terms=TERMS_MESSAGE)))
@settings(max_examples=2 * settings().max_examples)
@example(HALF_A_PAIR.SerializeToString())
def test_no_terms_are_unexpected(served: Served, raw: bytes) -> None:
    served.check(f"{OPERATOR}/PlanRound", raw)


WORKLOAD = types_pb2.Workload.FromString(workload_to_bytes(ANN))


@given(st.sampled_from(UPLOADS), nearly(WORKLOAD), st.data())
@settings(max_examples=2 * settings().max_examples)
def test_no_workload_is_unexpected(served: Served, method: str, workload: bytes, data: st.DataObject) -> None:
    header = analyst_pb2.SubmitHeader(
        round_id=served.round_id,
        request_id=f"request {data.draw(st.integers(0, 9))}",
        commitment_salt=SALT,
        workload_bytes=len(workload),
    )
    cut = data.draw(st.integers(0, len(workload)))
    parts = [
        analyst_pb2.SubmitWorkloadRequest(header=header).SerializeToString(),
        analyst_pb2.SubmitWorkloadRequest(piece=workload[:cut]).SerializeToString(),
        analyst_pb2.SubmitWorkloadRequest(piece=workload[cut:]).SerializeToString(),
    ]
    if data.draw(st.integers(0, 9)) == 0:
        parts = data.draw(st.lists(st.sampled_from(parts) | st.binary(max_size=4), max_size=5))
    served.check(method, *parts)


@given(nearly(WORKLOAD.statements[0]), st.data())
@settings(max_examples=2 * settings().max_examples)
def test_nothing_asked_in_a_session_is_unexpected(served: Served, statement: bytes, data: st.DataObject) -> None:
    first = analyst_pb2.AttachSession(
        session_id=served.session_id,
        after_sequence=data.draw(st.sampled_from((0, 0, 0, 1, 2**64 - 1))),
        commitment_salt=SALT,
        accept_unprotected=True,
    )
    parts = [analyst_pb2.AskQueriesRequest(attach=first)]
    for sequence in data.draw(st.lists(st.integers(0, 3), max_size=3)):
        asked = analyst_pb2.AskQueriesRequest.Asked(sequence=sequence, statement=statement)
        parts.append(analyst_pb2.AskQueriesRequest(asked=asked))
    sent = [part.SerializeToString() for part in parts]
    if data.draw(st.integers(0, 3)) == 0:
        sent = data.draw(st.lists(st.sampled_from(sent) | st.binary(max_size=4) | nearly(parts[0]), max_size=5))
    served.check(ASKING, *sent)
