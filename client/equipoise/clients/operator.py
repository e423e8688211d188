"""What an operator does: register data, admit analysts, run rounds, look at budgets."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from equipoise.clients.analyst import fresh_request_id
from equipoise.clients.connection import Connection, ServerClient
from equipoise.errors import AlreadyExists, InvalidArgument, WrongState
from equipoise.model.accounts import Account, Budget, JournalEntry
from equipoise.model.datasets import Dataset
from equipoise.model.identities import Identity
from equipoise.model.rounds import Plan, RoundDetail, RoundState, Terms
from equipoise.profile.enrolment import Bundle, begin, default_request_id, install, is_profile
from equipoise.queries.schema import Schema
from equipoise.v1 import operator_pb2, operator_pb2_grpc
from equipoise.wire import workloads
from equipoise.wire.accounts import account_from_message, budget_to_message, journal_entry_from_message
from equipoise.wire.datasets import dataset_from_message
from equipoise.wire.identities import analyst_from_message
from equipoise.wire.rounds import plan_from_message, round_detail_from_message
from equipoise.wire.terms import terms_to_message


class Operator(ServerClient):
    """An operator's way to a server. Thread-safe; every method may raise `equipoise.errors.EquipoiseError`.

    What changes something takes an optional `request_id`; the same one gets the first answer again.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._service = operator_pb2_grpc.OperatorServiceStub(connection.channel)

    def register_dataset(
        self,
        name: str,
        source: str,
        schema: Schema,
        data_cap: Budget,
        analyst_cap: Budget,
        request_id: str | None = None,
        data_order: float = 0,
        analyst_order: float = 0,
        *,
        new_budgets: bool = False,
    ) -> Dataset:
        """Registers the file `source` of the server's data directory and opens its budget accounts.

        The caps are the most that all rounds together may cost the people in the table, and any analyst. Accounts
        to which rounds add count divergences at these Renyi orders (0: the usual one of the cap), which cannot be
        changed later. Where another dataset, also a retired one, has the same table, or one that a restored store
        has lost may have it, `new_budgets` must say that its records get budgets of their own besides; that is
        journaled. Raises `InvalidArgument` with counts per attribute where the table does not fit the schema.
        """
        request = operator_pb2.RegisterDatasetRequest(
            name=name,
            source=source,
            schema=workloads.schema_to_message(schema),
            data_cap=budget_to_message(data_cap),
            analyst_cap=budget_to_message(analyst_cap),
            request_id=request_id or fresh_request_id(),
            data_order=data_order,
            analyst_order=analyst_order,
            new_budgets=new_budgets,
        )
        return dataset_from_message(self._connection.call(self._service.RegisterDataset, request).dataset)

    def datasets(self) -> Iterator[Dataset]:
        """All datasets."""
        for page in self._connection.pages(
            self._service.ListDatasets, lambda token: operator_pb2.ListDatasetsRequest(page_token=token)
        ):
            yield from map(dataset_from_message, page.datasets)

    def retire_dataset(self, name: str, request_id: str | None = None) -> Dataset:
        """Allows no new rounds on a dataset. Rounds that are open go on, and results stay readable."""
        request = operator_pb2.RetireDatasetRequest(name=name, request_id=request_id or fresh_request_id())
        return dataset_from_message(self._connection.call(self._service.RetireDataset, request).dataset)

    def admit_analyst(
        self, name: str, signing_request: bytes, target: str | None = None, request_id: str | None = None
    ) -> Bundle:
        """Admits an analyst who sent a request, made by `equipoise enroll`; the bundle is sent back.

        `target`: where the analyst reaches the server, if not where this client does. Without a `request_id`, the
        same request again gets the first answer. Raises `AlreadyExists` where the name is taken.
        """
        request = operator_pb2.AddAnalystRequest(
            name=name,
            signing_request=signing_request,
            request_id=request_id or default_request_id("add", signing_request),
        )
        response = self._connection.call(self._service.AddAnalyst, request)
        return self._bundle(name, target, response)

    def renew_analyst(
        self, name: str, signing_request: bytes, target: str | None = None, request_id: str | None = None
    ) -> Bundle:
        """Gives an analyst another certificate, also after a revocation; as `admit_analyst`. Raises `NotFound`.

        The earlier ones stay good until they expire or are revoked.
        """
        request = operator_pb2.RenewAnalystRequest(
            name=name,
            signing_request=signing_request,
            request_id=request_id or default_request_id("renew", signing_request),
        )
        response = self._connection.call(self._service.RenewAnalyst, request)
        return self._bundle(name, target, response)

    def _bundle(
        self,
        name: str,
        target: str | None,
        response: operator_pb2.AddAnalystResponse | operator_pb2.RenewAnalystResponse,
    ) -> Bundle:
        reached = target or self._connection.target
        return Bundle(name, reached, response.certificate, response.authority, response.log_keys)

    def add_analyst(self, name: str, directory: str | Path, request_id: str | None = None) -> Path:
        """Plays both parts: makes a key and a request, admits the analyst, writes its profile to a new directory.

        For trials, and where one person is both; otherwise the analyst's key would have to be handed over. It is
        never sent to the server. Where the answer was lost, the directory stays incomplete, and the same call sends
        the same request again. Raises `AlreadyExists` where the name is taken.
        """
        path = Path(directory)
        if is_profile(path):
            raise InvalidArgument(str(path), "exists already")
        fresh = not path.exists()
        signing_request = begin(path)
        try:
            bundle = self.admit_analyst(name, signing_request, request_id=request_id)
        except (AlreadyExists, InvalidArgument):
            # The one case in which it is certain that nothing was signed for this key.
            if fresh:
                shutil.rmtree(path, ignore_errors=True)
            raise
        install(path, bundle)
        return path

    def revoke_analyst(self, name: str, request_id: str | None = None) -> None:
        """Revokes every certificate of an analyst; what it has open ends within a minute. Raises `NotFound`."""
        request = operator_pb2.RevokeAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.RevokeAnalyst, request)

    def delete_analyst(self, name: str, request_id: str | None = None) -> None:
        """Removes an analyst, its workloads and its results; its name and charges stay for ever.

        Raises `WrongState` while it has a share in a round whose results are not out, `NotFound`.
        """
        request = operator_pb2.DeleteAnalystRequest(name=name, request_id=request_id or fresh_request_id())
        self._connection.call(self._service.DeleteAnalyst, request)

    def analysts(self) -> Iterator[Identity]:
        """All analysts by name, but those who were deleted."""
        for page in self._connection.pages(
            self._service.ListAnalysts, lambda token: operator_pb2.ListAnalystsRequest(page_token=token)
        ):
            yield from map(analyst_from_message, page.analysts)

    def plan(self, terms: Terms) -> Plan:
        """What a round, or a session, would do and cost. Nothing is opened, nothing spent."""
        request = operator_pb2.PlanRoundRequest(terms=terms_to_message(terms))
        return plan_from_message(self._connection.call(self._service.PlanRound, request).plan)

    def open(self, terms: Terms, request_id: str | None = None) -> RoundDetail:
        """Opens a round: analysts with a share can submit from now on."""
        if terms.session is not None:
            raise InvalidArgument("terms.session", "is of a session, which open_session opens")
        request = operator_pb2.OpenRoundRequest(
            terms=terms_to_message(terms), request_id=request_id or fresh_request_id()
        )
        return round_detail_from_message(self._connection.call(self._service.OpenRound, request).detail)

    def open_session(self, terms: Terms, request_id: str | None = None) -> RoundDetail:
        """Opens a session: its analysts can ask from now on, and both budgets are charged, for good.

        `terms.session` must be set. Raises `BudgetExhausted` naming the account.
        """
        if terms.session is None:
            raise InvalidArgument("terms.session", "is missing; what has none is a round")
        request = operator_pb2.OpenSessionRequest(
            terms=terms_to_message(terms),
            request_id=request_id or fresh_request_id(),
        )
        return round_detail_from_message(self._connection.call(self._service.OpenSession, request).detail)

    def close_session(self, session_id: str, request_id: str | None = None) -> RoundDetail:
        """Ends the asking in a session; `run` and `release` then give its results as those of a round.

        Raises `NotFound` where there is no session with this id, `WrongState` where it was closed before.
        """
        request = operator_pb2.CloseSessionRequest(
            session_id=session_id, request_id=request_id or fresh_request_id()
        )
        return round_detail_from_message(self._connection.call(self._service.CloseSession, request).detail)

    def rounds(self) -> Iterator[RoundDetail]:
        """All rounds and sessions, newest first."""
        for page in self._connection.pages(
            self._service.ListRounds, lambda token: operator_pb2.ListRoundsRequest(page_token=token)
        ):
            yield from map(round_detail_from_message, page.details)

    def round(self, round_id: str) -> RoundDetail:
        """One round."""
        request = operator_pb2.GetRoundRequest(round_id=round_id)
        return round_detail_from_message(self._connection.call(self._service.GetRound, request).detail)

    def watch(self, round_id: str) -> Iterator[RoundDetail]:
        """The round whenever its state or progress changes, until it has ended."""
        request = operator_pb2.WatchRoundRequest(round_id=round_id)
        for response in self._connection.stream(self._service.WatchRound, lambda: request):
            yield round_detail_from_message(response.detail)

    def seal(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Fixes the workloads and reserves both budgets. Raises `BudgetExhausted` naming the account."""
        request = operator_pb2.SealRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(self._connection.call(self._service.SealRound, request).detail)

    def run(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Starts the computation and returns at once; `watch` or `run_to_completion` follow it."""
        request = operator_pb2.RunRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(self._connection.call(self._service.RunRound, request).detail)

    def run_to_completion(
        self,
        round_id: str,
        on_change: Callable[[RoundDetail], None] | None = None,
        request_id: str | None = None,
    ) -> RoundDetail:
        """Starts the computation and waits until the answers are ready to be released.

        Raises `WrongState` where the round leaves RUNNING before that, or its computation ended without answers.
        """
        self.run(round_id, request_id)
        for detail in self.watch(round_id):
            if on_change is not None:
                on_change(detail)
            if detail.progress.complete:
                return detail
            if detail.round.state is not RoundState.RUNNING:
                break
            if detail.progress.phase.startswith("failed"):
                raise WrongState(f"the computation {detail.progress.phase}; it can be started again")
        raise WrongState("the round is not running any more")

    def release(self, round_id: str, request_id: str | None = None) -> RoundDetail:
        """Stores answers and charges in one transaction; results open at the next point of the time grid."""
        request = operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id=request_id or fresh_request_id())
        return round_detail_from_message(self._connection.call(self._service.ReleaseRound, request).detail)

    def abort(self, round_id: str, reason: str, request_id: str | None = None) -> RoundDetail:
        """Ends a round without answers. Every analyst is shown the reason: give public things only."""
        request = operator_pb2.AbortRoundRequest(
            round_id=round_id, reason=reason, request_id=request_id or fresh_request_id()
        )
        return round_detail_from_message(self._connection.call(self._service.AbortRound, request).detail)

    def accounts(self, dataset: str) -> Iterator[Account]:
        """The budget accounts of a dataset."""
        for page in self._connection.pages(
            self._service.ListAccounts,
            lambda token: operator_pb2.ListAccountsRequest(dataset=dataset, page_token=token),
        ):
            yield from map(account_from_message, page.accounts)

    def account_history(self, account: str) -> Iterator[JournalEntry]:
        """The journal's entries of one account, from its opening. Raises `NotFound`."""
        for page in self._connection.pages(
            self._service.ListAccountHistory,
            lambda token: operator_pb2.ListAccountHistoryRequest(account=account, page_token=token),
        ):
            yield from map(journal_entry_from_message, page.entries)

    def set_cap(self, account: str, cap: Budget, request_id: str | None = None) -> Account:
        """Gives an account another cap; journaled. Raises `InvalidArgument` below what is committed.

        `WrongState` where rounds that are open would have no room left; aborting them makes room.
        """
        request = operator_pb2.SetCapRequest(
            account=account, cap=budget_to_message(cap), request_id=request_id or fresh_request_id()
        )
        return account_from_message(self._connection.call(self._service.SetCap, request).account)
