"""The methods that operators may call: for datasets, analysts, rounds, sessions and budgets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.model.identities import Caller, Role
from equipoise.model.rounds import RoundState
from equipoise.v1 import operator_pb2, types_pb2
from equipoise.wire.accounts import account_to_message, budget_from_message, journal_entry_to_message
from equipoise.wire.identities import analyst_to_message
from equipoise.wire.rounds import plan_choice_to_message, round_detail_to_message
from equipoise.wire.terms import dangers_from_message, terms_from_message
from equipoise_server.identity.admission import Admission
from equipoise_server.rounds.analyst_deletion import delete_analyst
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.underway import PLANNING
from equipoise_server.rpc.services.analyst_requests import added, login_allowed, renewed
from equipoise_server.rpc.services.calendar import CalendarMethods
from equipoise_server.rpc.services.watch import progress_of, watch
from equipoise_server.rpc.shown_rounds import shown_choice, shown_to_operator
from equipoise_server.rpc.threads import Threads
from equipoise_server.storage.idempotency import check_request_id


@dataclass(frozen=True)
class OperatorMethods(CalendarMethods):
    """The served methods of `OperatorService`, bound by `rpc.methods`.

    `login_issuer` is the identity provider's identifier, empty where nobody logs in. `log_keys` returns the log's
    public keys in force, in the form in which analysts get them.
    """

    admission: Admission
    login_issuer: str
    log_keys: Callable[[], str]
    threads: Threads
    stopping: asyncio.Event

    def add_analyst(
        self, caller: Caller, request: operator_pb2.AddAnalystRequest
    ) -> operator_pb2.AddAnalystResponse:
        """Admits an analyst: signs the key of its certificate request under the name the operator gives."""
        return added(self.admission, self.log_keys(), request, caller)

    def renew_analyst(
        self, caller: Caller, request: operator_pb2.RenewAnalystRequest
    ) -> operator_pb2.RenewAnalystResponse:
        """Signs a further certificate for an analyst. Earlier certificates stay valid."""
        return renewed(self.admission, self.log_keys(), request, caller)

    def revoke_analyst(
        self, caller: Caller, request: operator_pb2.RevokeAnalystRequest
    ) -> operator_pb2.RevokeAnalystResponse:
        """Revokes an analyst's certificates. The analyst's open calls end within a minute."""
        self.admission.revoke(request.name, {Role.ANALYST}, request.request_id, f"operator/{caller.name}")
        return operator_pb2.RevokeAnalystResponse()

    def allow_login(
        self, caller: Caller, request: operator_pb2.AllowLoginRequest
    ) -> operator_pb2.AllowLoginResponse:
        """Lets an analyst log in with an account of the identity provider."""
        return login_allowed(self.admission, self.login_issuer, request, caller)

    def delete_analyst(
        self, caller: Caller, request: operator_pb2.DeleteAnalystRequest
    ) -> operator_pb2.DeleteAnalystResponse:
        """Deletes an analyst with its workloads and results."""
        delete_analyst(self.rounds.operations, request.name, request.request_id, caller.name)
        return operator_pb2.DeleteAnalystResponse()

    def list_analysts(
        self, _: Caller, request: operator_pb2.ListAnalystsRequest
    ) -> operator_pb2.ListAnalystsResponse:
        """Lists the analysts."""
        listed, token = self.admission.registry.list({Role.ANALYST}, request.page_size, request.page_token)
        return operator_pb2.ListAnalystsResponse(
            analysts=[analyst_to_message(analyst) for analyst in listed], next_page_token=token
        )

    def plan_round(self, caller: Caller, request: operator_pb2.PlanRoundRequest) -> operator_pb2.PlanRoundResponse:
        """Shows what a round, or a session, would do, what it was chosen from, and whether accounts admit it."""
        terms = terms_from_message(request.terms)
        with self.rounds.underway.followed(caller.name, request.request_id, PLANNING) as step:
            comparison = self.rounds.opening.compare(terms, step)
        charges = self.rounds.opening.charges(terms, comparison.plan)
        return plan_choice_to_message(
            shown_choice(comparison, terms, charges, self.rounds.datasets.get(terms.dataset).persons)
        )

    async def watch_request(
        self, caller: Caller, request: operator_pb2.WatchRequestRequest
    ) -> AsyncIterator[operator_pb2.WatchRequestResponse]:
        """Streams how far one of the caller's requests has come, until it is answered."""
        check_request_id(request.request_id)
        look = progress_of(lambda: self.rounds.underway.look(caller.name, request.request_id))
        async for progress in watch(look, self.stopping):
            yield operator_pb2.WatchRequestResponse(progress=progress)

    def open_round(self, caller: Caller, request: operator_pb2.OpenRoundRequest) -> operator_pb2.OpenRoundResponse:
        """Opens a round: workloads are accepted from now on."""
        terms = terms_from_message(request.terms)
        if terms.session is not None:
            raise InvalidArgument("terms.session", "must not be set in a round; OpenSession opens sessions")
        with self.rounds.underway.followed(caller.name, request.request_id, PLANNING) as step:
            record = self.rounds.opening.open(terms, request.request_id, caller.name, step)
        return operator_pb2.OpenRoundResponse(detail=self._detail(record))

    def list_rounds(self, _: Caller, request: operator_pb2.ListRoundsRequest) -> operator_pb2.ListRoundsResponse:
        """Lists the rounds, newest first."""
        records, token = self.rounds.views.page(request.page_size, request.page_token)
        return operator_pb2.ListRoundsResponse(
            details=[self._detail(record) for record in records], next_page_token=token
        )

    def get_round(self, _: Caller, request: operator_pb2.GetRoundRequest) -> operator_pb2.GetRoundResponse:
        """Shows one round."""
        return operator_pb2.GetRoundResponse(detail=self._detail(self.rounds.views.get(request.round_id)))

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
        record = self.rounds.lifecycle.seal(request.round_id, request.request_id, caller.name)
        return operator_pb2.SealRoundResponse(detail=self._detail(record))

    def run_round(self, caller: Caller, request: operator_pb2.RunRoundRequest) -> operator_pb2.RunRoundResponse:
        """Starts the worker process."""
        record = self.rounds.lifecycle.run(request.round_id, request.request_id, caller.name)
        return operator_pb2.RunRoundResponse(detail=self._detail(record))

    def release_round(
        self, caller: Caller, request: operator_pb2.ReleaseRoundRequest
    ) -> operator_pb2.ReleaseRoundResponse:
        """Releases the stored answers and spends the charges. Streams open at the release time."""
        record = self.rounds.lifecycle.release(request.round_id, request.request_id, caller.name)
        return operator_pb2.ReleaseRoundResponse(detail=self._detail(record))

    def abort_round(
        self, caller: Caller, request: operator_pb2.AbortRoundRequest
    ) -> operator_pb2.AbortRoundResponse:
        """Ends a round without answers."""
        record = self.rounds.lifecycle.abort(request.round_id, request.reason, request.request_id, caller.name)
        return operator_pb2.AbortRoundResponse(detail=self._detail(record))

    def open_session(
        self, caller: Caller, request: operator_pb2.OpenSessionRequest
    ) -> operator_pb2.OpenSessionResponse:
        """Opens an online session, and charges both budgets."""
        terms = terms_from_message(request.terms)
        with self.rounds.underway.followed(caller.name, request.request_id, PLANNING) as step:
            record = self.sessions.open(terms, request.request_id, caller.name, step)
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
        records, token = self.rounds.budgets.accounts(request.dataset, request.page_size, request.page_token)
        return operator_pb2.ListAccountsResponse(
            accounts=[account_to_message(record) for record in records], next_page_token=token
        )

    def list_account_history(
        self, _: Caller, request: operator_pb2.ListAccountHistoryRequest
    ) -> operator_pb2.ListAccountHistoryResponse:
        """Lists the journal entries of one account from its opening."""
        records, token = self.rounds.budgets.history(request.account, request.page_size, request.page_token)
        return operator_pb2.ListAccountHistoryResponse(
            entries=[journal_entry_to_message(record) for record in records], next_page_token=token
        )

    def set_cap(self, caller: Caller, request: operator_pb2.SetCapRequest) -> operator_pb2.SetCapResponse:
        """Changes the cap of an account."""
        cap = budget_from_message(request.cap, "cap")
        accepted = dangers_from_message(request.accepted, "accepted")
        record = self.rounds.budgets.set_cap(request.account, cap, request.request_id, caller.name, accepted)
        return operator_pb2.SetCapResponse(account=account_to_message(record))

    def _detail(self, record: RoundRecord) -> types_pb2.RoundDetail:
        asking = record.terms.session is not None and record.state is RoundState.OPEN
        progress = self.sessions.progress(record) if asking else self.rounds.views.progress(record.id)
        return round_detail_to_message(shown_to_operator(record, progress, self.rounds.views.charges(record)))

    def _look(self, round_id: str) -> tuple[types_pb2.RoundDetail, bool]:
        record = self.rounds.views.get(round_id)
        return self._detail(record), record.state.ended
