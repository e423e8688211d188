"""The policy table: one row for every method, saying who may call it and whether it is served yet.

A method without a row keeps the server from starting, so that none is ever reachable by oversight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from equipoise.errors import InvalidArgument, PermissionDenied
from equipoise_server.identity.names import Role


@dataclass(frozen=True)
class Row:
    """Who may call a method. What is not served yet answers UNIMPLEMENTED, after the role is checked."""

    roles: frozenset[Role]
    served: bool = True


_ANYONE = Row(frozenset(Role))
_ANALYST = Row(frozenset({Role.ANALYST}))
_OPERATOR = Row(frozenset({Role.OPERATOR}))
_AUDITOR = Row(frozenset({Role.AUDITOR}))
_ANALYST_LATER = Row(frozenset({Role.ANALYST}), served=False)
_OPERATOR_LATER = Row(frozenset({Role.OPERATOR}), served=False)
_AUDITOR_LATER = Row(frozenset({Role.AUDITOR}), served=False)

POLICY: Mapping[str, Row] = {
    "/equipoise.v1.AnalystService/GetIdentity": _ANYONE,
    "/equipoise.v1.AnalystService/GetDataset": _ANALYST,
    "/equipoise.v1.AnalystService/ListAnalystRounds": _ANALYST,
    "/equipoise.v1.AnalystService/GetAnalystRound": _ANALYST,
    "/equipoise.v1.AnalystService/WatchAnalystRound": _ANALYST,
    "/equipoise.v1.AnalystService/SubmitWorkload": _ANALYST,
    "/equipoise.v1.AnalystService/DryRunWorkload": _ANALYST,
    "/equipoise.v1.AnalystService/WithdrawWorkload": _ANALYST,
    "/equipoise.v1.AnalystService/StreamResults": _ANALYST,
    "/equipoise.v1.AnalystService/DownloadSynopsis": _ANALYST,
    "/equipoise.v1.AnalystService/GetEvidence": _ANALYST_LATER,
    "/equipoise.v1.AnalystService/ListSessions": _ANALYST_LATER,
    "/equipoise.v1.AnalystService/AskQueries": _ANALYST_LATER,
    "/equipoise.v1.OperatorService/RegisterDataset": _OPERATOR,
    "/equipoise.v1.OperatorService/RetireDataset": _OPERATOR,
    "/equipoise.v1.OperatorService/ListDatasets": _OPERATOR,
    "/equipoise.v1.OperatorService/AddAnalyst": _OPERATOR,
    "/equipoise.v1.OperatorService/ListAnalysts": _OPERATOR,
    "/equipoise.v1.OperatorService/RevokeAnalyst": _OPERATOR,
    "/equipoise.v1.OperatorService/RenewAnalyst": _OPERATOR,
    "/equipoise.v1.OperatorService/DeleteAnalyst": _OPERATOR,
    "/equipoise.v1.OperatorService/PlanRound": _OPERATOR,
    "/equipoise.v1.OperatorService/OpenRound": _OPERATOR,
    "/equipoise.v1.OperatorService/ListRounds": _OPERATOR,
    "/equipoise.v1.OperatorService/GetRound": _OPERATOR,
    "/equipoise.v1.OperatorService/WatchRound": _OPERATOR,
    "/equipoise.v1.OperatorService/SealRound": _OPERATOR,
    "/equipoise.v1.OperatorService/RunRound": _OPERATOR,
    "/equipoise.v1.OperatorService/ReleaseRound": _OPERATOR,
    "/equipoise.v1.OperatorService/AbortRound": _OPERATOR,
    "/equipoise.v1.OperatorService/ListAccounts": _OPERATOR,
    "/equipoise.v1.OperatorService/ListAccountHistory": _OPERATOR,
    "/equipoise.v1.OperatorService/SetCap": _OPERATOR,
    "/equipoise.v1.OperatorService/OpenSession": _OPERATOR_LATER,
    "/equipoise.v1.OperatorService/CloseSession": _OPERATOR_LATER,
    "/equipoise.v1.AuditorService/ListAuditRounds": _AUDITOR,
    "/equipoise.v1.AuditorService/ListJournal": _AUDITOR,
    "/equipoise.v1.AuditorService/GetCheckpoint": _AUDITOR_LATER,
    "/equipoise.v1.AuditorService/ListLogEntries": _AUDITOR_LATER,
    "/equipoise.v1.AuditorService/GetInclusionProof": _AUDITOR_LATER,
    "/equipoise.v1.AuditorService/GetConsistencyProof": _AUDITOR_LATER,
    "/equipoise.v1.AuditorService/GetSealedSeed": _AUDITOR_LATER,
}


def check_policy(methods: Iterable[str], policy: Mapping[str, Row] = POLICY) -> None:
    """Requires that the rows are exactly the methods; `InvalidArgument("policy", ...)` names the rest."""
    offered = set(methods)
    for problem, names in (
        ("no row for", offered - policy.keys()),
        ("no such method as", policy.keys() - offered),
    ):
        if names:
            raise InvalidArgument("policy", f"{problem} {', '.join(sorted(names))}")


def authorise(role: Role, method: str, policy: Mapping[str, Row] = POLICY) -> Row:
    """The method's row if `role` may call it, else `PermissionDenied`."""
    row = policy.get(method)
    if row is None or role not in row.roles:
        raise PermissionDenied(f"the role {role} may not call {method.rpartition('/')[2]}")
    return row
