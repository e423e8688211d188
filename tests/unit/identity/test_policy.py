"""The policy table covers exactly the services' methods, and decides by role."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidArgument, NotServed, PermissionDenied
from equipoise.model.identities import Role
from equipoise.v1 import analyst_pb2, auditor_pb2, operator_pb2
from equipoise_server.identity.policy import POLICY, MethodPolicy, Ownership, Rate, authorise, check_policy

SERVICES = {
    Role.ANALYST: analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"],
    Role.OPERATOR: operator_pb2.DESCRIPTOR.services_by_name["OperatorService"],
    Role.AUDITOR: auditor_pb2.DESCRIPTOR.services_by_name["AuditorService"],
}
METHODS = {
    f"/{service.full_name}/{method.name}": role for role, service in SERVICES.items() for method in service.methods
}


def test_every_method_has_a_row_and_every_row_a_method() -> None:
    check_policy(METHODS)


def test_a_method_without_a_row_or_a_row_without_a_method_is_named() -> None:
    with pytest.raises(InvalidArgument, match="no row for /x/Y"):
        check_policy([*METHODS, "/x/Y"])
    with pytest.raises(InvalidArgument, match=r"no such method as .*GetIdentity"):
        check_policy([name for name in METHODS if not name.endswith("GetIdentity")])


@pytest.mark.parametrize("method", sorted(METHODS))
def test_each_method_is_for_its_own_role(method: str) -> None:
    own = set(Role) if method.endswith(("/GetIdentity", "/GetAuthority")) else {METHODS[method]}
    for role in Role:
        if role in own:
            assert authorise(role, method) is POLICY[method]
        else:
            with pytest.raises(PermissionDenied, match=method.rpartition("/")[2]):
                authorise(role, method)


def test_a_method_that_is_not_in_the_table_is_for_nobody() -> None:
    table = {"/x/Y": MethodPolicy(frozenset(Role), Ownership.SELF, Rate.READ)}
    authorise(Role.ANALYST, "/x/Y", table)
    with pytest.raises(NotServed):
        authorise(Role.OPERATOR, "/x/Z", table)


def test_analysts_may_name_only_what_they_have_a_share_in() -> None:
    for method, row in POLICY.items():
        assert (row.owned is Ownership.DEPLOYMENT) is (Role.ANALYST not in row.roles), method


def test_every_change_is_recorded_under_a_name_of_its_own() -> None:
    events = {method: row.event for method, row in POLICY.items() if row.event}
    assert len(set(events.values())) == len(events)
    unrecorded = {
        method.rpartition("/")[2]
        for method, row in POLICY.items()
        if row.rate in (Rate.CHANGE, Rate.UPLOAD) and not row.event
    }
    # These two change nothing.
    assert unrecorded == {"PlanRound", "DryRunWorkload"}
