"""What operators may call: data, analysts, rounds, budgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import datetime

from cryptography import x509

from equipoise import wire
from equipoise.v1 import operator_pb2, types_pb2
from equipoise_server.identity.authority import Authority
from equipoise_server.identity.enrolment import requested_key
from equipoise_server.identity.names import Caller, Role, check_name
from equipoise_server.identity.registry import Registry
from equipoise_server.rounds.clock import Clock
from equipoise_server.rounds.datasets import Counting
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.service import Rounds
from equipoise_server.rounds.states import RoundState
from equipoise_server.rpc import messages
from equipoise_server.rpc.terms import budget_from_message, terms_from_message
from equipoise_server.rpc.threads import Threads
from equipoise_server.rpc.watching import watch
from equipoise_server.sessions.service import Sessions
from equipoise_server.storage.requests import make_request


@dataclass(frozen=True)
class OperatorMethods:
    """The served methods of `OperatorService`, bound by `rpc.methods`.

    `log_keys`: the log's public keys that are in force, as analysts are given them.
    """

    rounds: Rounds
    sessions: Sessions
    registry: Registry
    authority: Authority
    log_keys: Callable[[], str]
    certificate_days: int
    clock: Clock
    threads: Threads
    stopping: asyncio.Event

    def register_dataset(
        self, caller: Caller, request: operator_pb2.RegisterDatasetRequest
    ) -> operator_pb2.RegisterDatasetResponse:
        """Registers a table that lies in the data directory and opens its budget accounts."""
        record = self.rounds.register_dataset(
            request.name,
            request.source,
            wire.schema_from_message(request.schema),
            budget_from_message(request.data_cap, "data_cap"),
            budget_from_message(request.analyst_cap, "analyst_cap"),
            request.request_id,
            caller.name,
            Counting(request.data_order, request.analyst_order),
            new_budgets=request.new_budgets,
        )
        return operator_pb2.RegisterDatasetResponse(dataset=messages.dataset(record))

    def list_datasets(
        self, _: Caller, request: operator_pb2.ListDatasetsRequest
    ) -> operator_pb2.ListDatasetsResponse:
        """Lists the datasets."""
        records, token = self.rounds.list_datasets(request.page_size, request.page_token)
        return operator_pb2.ListDatasetsResponse(
            datasets=[messages.dataset(record) for record in records], next_page_token=token
        )

    def retire_dataset(
        self, caller: Caller, request: operator_pb2.RetireDatasetRequest
    ) -> operator_pb2.RetireDatasetResponse:
        """Allows no new rounds on a dataset."""
        record = self.rounds.retire_dataset(request.name, request.request_id, caller.name)
        return operator_pb2.RetireDatasetResponse(dataset=messages.dataset(record))

    def add_analyst(
        self, caller: Caller, request: operator_pb2.AddAnalystRequest
    ) -> operator_pb2.AddAnalystResponse:
        """Admits an analyst: signs the key of its certificate request under the name the operator gives."""
        asked = make_request(
            f"operator/{caller.name}", request.request_id, "add_analyst", request.name, request.signing_request
        )
        certificate, now = self._certified(request.name, request.signing_request)
        pem = self.registry.add(request.name, Role.ANALYST, certificate, now, asked)
        self.rounds.remember()
        return operator_pb2.AddAnalystResponse(
            certificate=pem, authority=self.authority.pem, log_keys=self.log_keys()
        )

    def renew_analyst(
        self, caller: Caller, request: operator_pb2.RenewAnalystRequest
    ) -> operator_pb2.RenewAnalystResponse:
        """Signs a new certificate for an analyst, beside those that it has."""
        asked = make_request(
            f"operator/{caller.name}", request.request_id, "renew_analyst", request.name, request.signing_request
        )
        certificate, now = self._certified(request.name, request.signing_request)
        pem = self.registry.renew(request.name, {Role.ANALYST}, certificate, now, asked)
        self.rounds.remember()
        return operator_pb2.RenewAnalystResponse(
            certificate=pem, authority=self.authority.pem, log_keys=self.log_keys()
        )

    def revoke_analyst(
        self, caller: Caller, request: operator_pb2.RevokeAnalystRequest
    ) -> operator_pb2.RevokeAnalystResponse:
        """Revokes an analyst's certificates; what it has open ends within a minute (`rpc.open_calls`)."""
        asked = make_request(f"operator/{caller.name}", request.request_id, "revoke_analyst", request.name)
        self.registry.revoke(request.name, {Role.ANALYST}, self.clock(), asked)
        self.rounds.remember()
        return operator_pb2.RevokeAnalystResponse()

    def delete_analyst(
        self, caller: Caller, request: operator_pb2.DeleteAnalystRequest
    ) -> operator_pb2.DeleteAnalystResponse:
        """Deletes an analyst with its workloads and results."""
        self.rounds.delete_analyst(request.name, request.request_id, caller.name)
        return operator_pb2.DeleteAnalystResponse()

    def list_analysts(
        self, _: Caller, request: operator_pb2.ListAnalystsRequest
    ) -> operator_pb2.ListAnalystsResponse:
        """Lists the analysts."""
        found, token = self.registry.list({Role.ANALYST}, request.page_size, request.page_token)
        return operator_pb2.ListAnalystsResponse(
            analysts=[messages.analyst(each) for each in found], next_page_token=token
        )

    def plan_round(self, _: Caller, request: operator_pb2.PlanRoundRequest) -> operator_pb2.PlanRoundResponse:
        """Shows what a round, or a session, would do and cost, without opening it."""
        session = request.session if request.HasField("session") else None
        terms = terms_from_message(request.terms, session)
        return operator_pb2.PlanRoundResponse(plan=messages.plan(self.rounds.plan(terms), terms))

    def open_round(self, caller: Caller, request: operator_pb2.OpenRoundRequest) -> operator_pb2.OpenRoundResponse:
        """Opens a round: workloads are accepted from now on."""
        record = self.rounds.open(terms_from_message(request.terms), request.request_id, caller.name)
        return operator_pb2.OpenRoundResponse(detail=self._detail(record))

    def list_rounds(self, _: Caller, request: operator_pb2.ListRoundsRequest) -> operator_pb2.ListRoundsResponse:
        """Lists the rounds, newest first."""
        records, token = self.rounds.list(request.page_size, request.page_token)
        return operator_pb2.ListRoundsResponse(
            details=[self._detail(record) for record in records], next_page_token=token
        )

    def get_round(self, _: Caller, request: operator_pb2.GetRoundRequest) -> operator_pb2.GetRoundResponse:
        """Shows one round."""
        return operator_pb2.GetRoundResponse(detail=self._detail(self.rounds.get(request.round_id)))

    async def watch_round(
        self, caller: Caller, request: operator_pb2.WatchRoundRequest
    ) -> AsyncIterator[operator_pb2.WatchRoundResponse]:
        """Streams a round whenever its state or progress changes, until it has ended."""
        async for shown in watch(
            lambda: self.threads.reading.run(caller.name, self._look, request.round_id), self.stopping
        ):
            yield operator_pb2.WatchRoundResponse(detail=shown)

    def seal_round(self, caller: Caller, request: operator_pb2.SealRoundRequest) -> operator_pb2.SealRoundResponse:
        """Fixes the workloads and reserves both budgets."""
        record = self.rounds.seal(request.round_id, request.request_id, caller.name)
        return operator_pb2.SealRoundResponse(detail=self._detail(record))

    def run_round(self, caller: Caller, request: operator_pb2.RunRoundRequest) -> operator_pb2.RunRoundResponse:
        """Starts the worker process."""
        record = self.rounds.run(request.round_id, request.request_id, caller.name)
        return operator_pb2.RunRoundResponse(detail=self._detail(record))

    def release_round(
        self, caller: Caller, request: operator_pb2.ReleaseRoundRequest
    ) -> operator_pb2.ReleaseRoundResponse:
        """Stores answers and charges; streams open at the release time."""
        record = self.rounds.release(request.round_id, request.request_id, caller.name)
        return operator_pb2.ReleaseRoundResponse(detail=self._detail(record))

    def abort_round(
        self, caller: Caller, request: operator_pb2.AbortRoundRequest
    ) -> operator_pb2.AbortRoundResponse:
        """Ends a round without answers."""
        record = self.rounds.abort(request.round_id, request.reason, request.request_id, caller.name)
        return operator_pb2.AbortRoundResponse(detail=self._detail(record))

    def open_session(
        self, caller: Caller, request: operator_pb2.OpenSessionRequest
    ) -> operator_pb2.OpenSessionResponse:
        """Opens an online session, and charges both budgets."""
        terms = terms_from_message(request.terms, request.session)
        record = self.sessions.open(terms, request.request_id, caller.name)
        return operator_pb2.OpenSessionResponse(detail=self._detail(record))

    def close_session(
        self, caller: Caller, request: operator_pb2.CloseSessionRequest
    ) -> operator_pb2.CloseSessionResponse:
        """Closes an online session: no more statements are answered."""
        record = self.sessions.close(request.session_id, request.request_id, caller.name)
        return operator_pb2.CloseSessionResponse(detail=self._detail(record))

    def list_accounts(
        self, _: Caller, request: operator_pb2.ListAccountsRequest
    ) -> operator_pb2.ListAccountsResponse:
        """Shows the budget accounts of a dataset."""
        records, token = self.rounds.accounts(request.dataset, request.page_size, request.page_token)
        return operator_pb2.ListAccountsResponse(
            accounts=[messages.account(record) for record in records], next_page_token=token
        )

    def list_account_history(
        self, _: Caller, request: operator_pb2.ListAccountHistoryRequest
    ) -> operator_pb2.ListAccountHistoryResponse:
        """Lists the journal entries of one account from its opening."""
        records, token = self.rounds.account_history(request.account, request.page_size, request.page_token)
        return operator_pb2.ListAccountHistoryResponse(
            entries=[messages.journal_entry(record) for record in records], next_page_token=token
        )

    def set_cap(self, caller: Caller, request: operator_pb2.SetCapRequest) -> operator_pb2.SetCapResponse:
        """Changes the cap of an account."""
        cap = budget_from_message(request.cap, "cap")
        record = self.rounds.set_cap(request.account, cap, request.request_id, caller.name)
        return operator_pb2.SetCapResponse(account=messages.account(record))

    def _certified(self, name: str, signing_request: bytes) -> tuple[x509.Certificate, datetime]:
        """A certificate that counts once it is in the registry, and when it was made."""
        check_name(name)
        now = self.clock()
        key = requested_key(signing_request)
        return self.authority.issue_identity(name, key, now, self.certificate_days), now

    def _detail(self, record: RoundRecord) -> types_pb2.RoundDetail:
        asking = record.terms.session is not None and record.state is RoundState.OPEN
        progress = self.sessions.progress(record) if asking else self.rounds.progress(record.id)
        return messages.round_detail(record, progress)

    def _look(self, round_id: str) -> tuple[types_pb2.RoundDetail, bool]:
        record = self.rounds.get(round_id)
        return self._detail(record), record.state.ended
