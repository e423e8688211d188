"""The methods that auditors may call: they read every record, and add randomness to rounds."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.model.identities import Caller
from equipoise.model.log import SealedSeed
from equipoise.v1 import auditor_pb2
from equipoise.wire.accounts import journal_entry_to_message
from equipoise.wire.log import record_opening_to_message, sealed_seed_to_message
from equipoise.wire.rounds import round_detail_to_message
from equipoise_server.rounds.budget_views import Budgets
from equipoise_server.rounds.round_views import RoundViews
from equipoise_server.rounds.seeds import Seeds
from equipoise_server.rpc.shown_rounds import shown_to_operator
from equipoise_server.transparency.views import LogViews


@dataclass(frozen=True)
class AuditorMethods:
    """The served methods of `AuditorService`, bound by `rpc.methods`."""

    rounds: RoundViews
    budgets: Budgets
    seeds: Seeds
    log: LogViews

    def list_audit_rounds(
        self, _: Caller, request: auditor_pb2.ListAuditRoundsRequest
    ) -> auditor_pb2.ListAuditRoundsResponse:
        """Lists every round, newest first."""
        records, token = self.rounds.page(request.page_size, request.page_token)
        details = [
            round_detail_to_message(
                shown_to_operator(record, self.rounds.progress(record.id), self.rounds.charges(record))
            )
            for record in records
        ]
        return auditor_pb2.ListAuditRoundsResponse(details=details, next_page_token=token)

    def list_journal(self, _: Caller, request: auditor_pb2.ListJournalRequest) -> auditor_pb2.ListJournalResponse:
        """Lists the budget journal from the beginning."""
        records, token = self.budgets.journal(request.page_size, request.page_token)
        entries = [journal_entry_to_message(record) for record in records]
        return auditor_pb2.ListJournalResponse(entries=entries, next_page_token=token)

    def get_checkpoint(self, _: Caller, __: auditor_pb2.GetCheckpointRequest) -> auditor_pb2.GetCheckpointResponse:
        """Shows the newest signed checkpoint of the log."""
        return auditor_pb2.GetCheckpointResponse(checkpoint=self.log.checkpoint())

    def list_log_entries(
        self, _: Caller, request: auditor_pb2.ListLogEntriesRequest
    ) -> auditor_pb2.ListLogEntriesResponse:
        """Lists the leaves of the log from the beginning."""
        leaves, token = self.log.leaves(request.page_size, request.page_token)
        return auditor_pb2.ListLogEntriesResponse(entries=leaves, next_page_token=token)

    def list_records(self, _: Caller, request: auditor_pb2.ListRecordsRequest) -> auditor_pb2.ListRecordsResponse:
        """Lists the opened records of the log's leaves."""
        records, token = self.log.records(request.page_size, request.page_token)
        shown = [record_opening_to_message(record) for record in records]
        return auditor_pb2.ListRecordsResponse(records=shown, next_page_token=token)

    def get_inclusion_proof(
        self, _: Caller, request: auditor_pb2.GetInclusionProofRequest
    ) -> auditor_pb2.GetInclusionProofResponse:
        """Proves that a leaf is in the tree of a size."""
        path = self.log.inclusion(request.leaf_index, request.tree_size)
        return auditor_pb2.GetInclusionProofResponse(hashes=path)

    def get_consistency_proof(
        self, _: Caller, request: auditor_pb2.GetConsistencyProofRequest
    ) -> auditor_pb2.GetConsistencyProofResponse:
        """Proves that the tree of one size is consistent with the tree of another size."""
        path = self.log.consistency(request.old_size, request.new_size)
        return auditor_pb2.GetConsistencyProofResponse(hashes=path)

    def set_audit_nonce(
        self, caller: Caller, request: auditor_pb2.SetAuditNonceRequest
    ) -> auditor_pb2.SetAuditNonceResponse:
        """Adds the auditor's own randomness to a round."""
        self.seeds.set_nonce(request.round_id, request.nonce, request.request_id, caller.name)
        return auditor_pb2.SetAuditNonceResponse()

    def get_sealed_seed(
        self, caller: Caller, request: auditor_pb2.GetSealedSeedRequest
    ) -> auditor_pb2.GetSealedSeedResponse:
        """Shows a round's seed, sealed to the auditors' keys, after the log has recorded the reading."""
        sealed = self.seeds.read(request.round_id, caller.name)
        seeds = [sealed_seed_to_message(SealedSeed(*seed)) for seed in sealed.items()]
        return auditor_pb2.GetSealedSeedResponse(seeds=seeds)
