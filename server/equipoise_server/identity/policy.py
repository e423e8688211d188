"""The policy table: one row for every method, with its callers, the objects it may name, rate and log event.

The server refuses to start if a method has no row, so no method is reachable by oversight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from equipoise.errors import InvalidArgument, NotServed, PermissionDenied
from equipoise.model.identities import Role


class Ownership(StrEnum):
    """The objects that a caller may name. An object that it may not name seems not to exist."""

    SELF = "self"  # none: the call is about the caller
    SHARE = "share"  # a round, or the dataset of a round, in which the caller has a share
    DEPLOYMENT = "deployment"  # whatever there is


class Rate(StrEnum):
    """The caller's token bucket from which a call takes; see `rpc.interceptors.call_rates`."""

    READ = "read"
    STREAM = "stream"
    UPLOAD = "upload"
    CHANGE = "change"


@dataclass(frozen=True)
class MethodPolicy:
    """The policy of one method.

    `event` is the name under which each call is logged with its caller. It is empty for calls that are not logged,
    as reading leaves no trace.
    """

    roles: frozenset[Role]
    owned: Ownership
    rate: Rate
    event: str = ""


_ANYONE = frozenset(Role)
_ANALYST = frozenset({Role.ANALYST})
_OPERATOR = frozenset({Role.OPERATOR})
_AUDITOR = frozenset({Role.AUDITOR})

_SELF, _SHARE, _ALL = Ownership.SELF, Ownership.SHARE, Ownership.DEPLOYMENT
_READ, _STREAM, _UPLOAD, _CHANGE = Rate.READ, Rate.STREAM, Rate.UPLOAD, Rate.CHANGE

POLICY: Mapping[str, MethodPolicy] = {
    "/equipoise.v1.AnalystService/GetIdentity": MethodPolicy(_ANYONE, _SELF, _READ),
    "/equipoise.v1.AnalystService/GetAuthority": MethodPolicy(_ANYONE, _SELF, _READ),
    "/equipoise.v1.AnalystService/GetDataset": MethodPolicy(_ANALYST, _SHARE, _READ),
    "/equipoise.v1.AnalystService/ListAnalystRounds": MethodPolicy(_ANALYST, _SELF, _READ),
    "/equipoise.v1.AnalystService/GetAnalystRound": MethodPolicy(_ANALYST, _SHARE, _READ),
    "/equipoise.v1.AnalystService/WatchAnalystRound": MethodPolicy(_ANALYST, _SHARE, _STREAM),
    "/equipoise.v1.AnalystService/SubmitWorkload": MethodPolicy(_ANALYST, _SHARE, _UPLOAD, "workload_submitted"),
    "/equipoise.v1.AnalystService/DryRunWorkload": MethodPolicy(_ANALYST, _SHARE, _UPLOAD),
    "/equipoise.v1.AnalystService/WithdrawWorkload": MethodPolicy(_ANALYST, _SHARE, _CHANGE, "workload_withdrawn"),
    "/equipoise.v1.AnalystService/StreamResults": MethodPolicy(_ANALYST, _SHARE, _STREAM),
    "/equipoise.v1.AnalystService/DownloadSynopsis": MethodPolicy(_ANALYST, _SHARE, _STREAM),
    "/equipoise.v1.AnalystService/DownloadEvidence": MethodPolicy(_ANALYST, _SHARE, _STREAM),
    "/equipoise.v1.AnalystService/ListSessions": MethodPolicy(_ANALYST, _SELF, _READ),
    "/equipoise.v1.AnalystService/AskQueries": MethodPolicy(_ANALYST, _SHARE, _STREAM, "session_attached"),
    "/equipoise.v1.AnalystService/ListOwnDatasets": MethodPolicy(_ANALYST, _SELF, _READ),
    "/equipoise.v1.AnalystService/ListSpending": MethodPolicy(_ANALYST, _SHARE, _READ),
    "/equipoise.v1.AnalystService/RequestGrant": MethodPolicy(_ANALYST, _SELF, _CHANGE, "grant_requested"),
    "/equipoise.v1.AnalystService/ListOwnGrantRequests": MethodPolicy(_ANALYST, _SELF, _READ),
    "/equipoise.v1.OperatorService/RegisterDataset": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "dataset_registered"),
    "/equipoise.v1.OperatorService/UpdateDataset": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "dataset_updated"),
    "/equipoise.v1.OperatorService/RetireDataset": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "dataset_retired"),
    "/equipoise.v1.OperatorService/DeleteDataset": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "dataset_deleted"),
    "/equipoise.v1.OperatorService/ListDatasets": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/GetDatasetHistory": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/ListDatasetCharges": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/AddAnalyst": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "analyst_added"),
    "/equipoise.v1.OperatorService/ListAnalysts": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/RevokeAnalyst": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "analyst_revoked"),
    "/equipoise.v1.OperatorService/RenewAnalyst": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "analyst_renewed"),
    "/equipoise.v1.OperatorService/AllowLogin": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "login_allowed"),
    "/equipoise.v1.OperatorService/DeleteAnalyst": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "analyst_deleted"),
    "/equipoise.v1.OperatorService/PlanRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE),
    "/equipoise.v1.OperatorService/WatchRequest": MethodPolicy(_OPERATOR, _ALL, _STREAM),
    "/equipoise.v1.OperatorService/OpenRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "round_opened"),
    "/equipoise.v1.OperatorService/ListRounds": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/GetRound": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/WatchRound": MethodPolicy(_OPERATOR, _ALL, _STREAM),
    "/equipoise.v1.OperatorService/SealRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "round_sealed"),
    "/equipoise.v1.OperatorService/RunRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "round_started"),
    "/equipoise.v1.OperatorService/ReleaseRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "round_released"),
    "/equipoise.v1.OperatorService/AbortRound": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "round_aborted"),
    "/equipoise.v1.OperatorService/ListAccounts": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/ListAccountHistory": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/SetCap": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "cap_set"),
    "/equipoise.v1.OperatorService/OpenSession": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "session_opened"),
    "/equipoise.v1.OperatorService/CloseSession": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "session_closed"),
    "/equipoise.v1.OperatorService/ScheduleRounds": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "rounds_scheduled"),
    "/equipoise.v1.OperatorService/ListSchedules": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/StopSchedule": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "schedule_stopped"),
    "/equipoise.v1.OperatorService/ListGrantRequests": MethodPolicy(_OPERATOR, _ALL, _READ),
    "/equipoise.v1.OperatorService/DecideGrantRequest": MethodPolicy(_OPERATOR, _ALL, _CHANGE, "request_decided"),
    "/equipoise.v1.AuditorService/ListAuditRounds": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/ListJournal": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/GetCheckpoint": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/ListLogEntries": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/ListRecords": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/GetInclusionProof": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/GetConsistencyProof": MethodPolicy(_AUDITOR, _ALL, _READ),
    "/equipoise.v1.AuditorService/SetAuditNonce": MethodPolicy(_AUDITOR, _ALL, _CHANGE, "nonce_set"),
    "/equipoise.v1.AuditorService/GetSealedSeed": MethodPolicy(_AUDITOR, _ALL, _CHANGE, "seed_read"),
}


def check_policy(methods: Iterable[str], policy: Mapping[str, MethodPolicy] = POLICY) -> None:
    """Requires that the rows are exactly the methods; `InvalidArgument("policy", ...)` names the rest.

    Args:
        methods: all that the server offers, as gRPC names them.
        policy: the row of each method.
    """
    offered = set(methods)
    for problem, names in (
        ("no row for", offered - policy.keys()),
        ("no such method as", policy.keys() - offered),
    ):
        if names:
            raise InvalidArgument("policy", f"{problem} {', '.join(sorted(names))}")


def rate_of(method: str, policy: Mapping[str, MethodPolicy] = POLICY) -> Rate:
    """Return the bucket from which a call takes; a call of a method without a row takes from that of look-ups.

    Args:
        method: as gRPC names it.
        policy: the row of each method.
    """
    return policy[method].rate if method in policy else Rate.READ


def authorise(role: Role, method: str, policy: Mapping[str, MethodPolicy] = POLICY) -> MethodPolicy:
    """Return the method's row if `role` may call it.

    Args:
        role: the caller's.
        method: as gRPC names it.
        policy: the row of each method.

    Raises:
        NotServed: There is no such method.
        PermissionDenied: Callers with this role may not call it.
    """
    row = policy.get(method)
    if row is None:
        raise NotServed("the server does not know this method")
    if role not in row.roles:
        raise PermissionDenied(f"the role {role} may not call {method.rpartition('/')[2]}")
    return row
