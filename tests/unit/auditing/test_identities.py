"""Who was admitted, as the log says: what the audit finds of a custodian who lets others in, or hides whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from harness.custodian import Custodian
from harness.record_book import digest_of

from equipoise.auditing.identities import EARLY, LATE
from equipoise.auditing.identity_list import AuthorityChange, IdentityChange, registry_changes
from equipoise.auditing.verify import Outcome, verify
from equipoise.errors import VerificationFailed
from equipoise.model.times import to_microseconds

ROUND, OTHER = "aa", "bb"


def problem(custodian: Custodian, *receipts: bytes) -> str:
    """What A12 finds; no other check but that of receipts may fail."""
    checks = verify(custodian.archive(), custodian.trusted, (), receipts).checks
    failed = {each.number: each.detail for each in checks if each.outcome is Outcome.FAILED}
    assert failed.keys() <= {"A11", "A12"}
    return failed.get("A12", "")


@pytest.fixture
def custodian() -> Custodian:
    """A table, ann, bob and an auditor, and a whole round."""
    made = Custodian()
    made.register()
    made.play(ROUND)
    return made


def test_everything_that_may_become_of_people_is_in_order(custodian: Custodian) -> None:
    custodian.admit("ann", event="renewed")
    custodian.revoke("ann")
    custodian.admit("ann", event="renewed")
    custodian.play(OTHER)
    custodian.read_seed(ROUND)
    custodian.rotate()
    custodian.play("cc")
    custodian.revoke("bob", "deleted")
    custodian.admit("cyd")
    custodian.old.pop("bob")
    custodian.retire()
    custodian.rotate()
    custodian.read_seed(OTHER)
    assert problem(custodian) == ""


ACCOUNT, ANOTHER = "0a" * 32, "0b" * 32


def logged_in(custodian: Custodian, name: str, account: str) -> None:
    """A certificate by logging in, on record."""
    end = to_microseconds(custodian.time + timedelta(hours=1))
    issued: dict[str, object] = {"digest": digest_of(f"login {name} {custodian.time}"), "expire_time": end}
    custodian.change(name, "renewed", [issued], login=account)
    custodian.certificates.setdefault(name, []).append(issued)


def test_logging_in_with_the_account_that_was_allowed_is_in_order(custodian: Custodian) -> None:
    custodian.change("ann", "login", [], login=ACCOUNT)
    logged_in(custodian, "ann", ACCOUNT)
    custodian.change("dan", "login", [], login=ANOTHER)  # who had not been admitted
    logged_in(custodian, "dan", ANOTHER)
    custodian.revoke("ann")
    custodian.change("ann", "login", [], login=ACCOUNT)
    logged_in(custodian, "ann", ACCOUNT)
    custodian.play(OTHER)
    assert problem(custodian) == ""


def test_a_login_that_has_expired_need_not_be_among_what_is_revoked(custodian: Custodian) -> None:
    custodian.change("ann", "login", [], login=ACCOUNT)
    held = list(custodian.certificates["ann"])
    logged_in(custodian, "ann", ACCOUNT)
    custodian.time += timedelta(minutes=59)
    records = list(custodian.records)
    custodian.change("ann", "revoked", held)
    assert "that 'ann' has lost are not all that were in force" in problem(custodian)
    custodian.records = records
    custodian.time += timedelta(minutes=2)
    custodian.change("ann", "revoked", held)
    assert problem(custodian) == ""


def after_a_revocation(custodian: Custodian) -> None:
    custodian.revoke("bob")
    logged_in(custodian, "bob", ACCOUNT)


@pytest.mark.parametrize(
    "lie",
    [
        lambda each: logged_in(each, "ann", ACCOUNT),
        lambda each: logged_in(each, "bob", ANOTHER),
        lambda each: each.change("ann", "login", [], login=ACCOUNT),
        lambda each: each.change("ann", "login", []),
        after_a_revocation,
    ],
    ids=["not allowed", "another account", "an account of two", "no account", "revoked"],
)
def test_a_login_that_was_not_allowed_is_found(custodian: Custodian, lie: Callable[[Custodian], None]) -> None:
    custodian.change("bob", "login", [], login=ACCOUNT)
    lie(custodian)
    assert "account" in problem(custodian)


def test_the_changes_are_listed_in_their_order(custodian: Custodian) -> None:
    custodian.revoke("ann")
    archive = custodian.archive()
    changes = registry_changes(archive.checkpoint, archive.leaves, archive.records, custodian.trusted)
    assert all(isinstance(each, IdentityChange) for each in changes)
    told = [
        (each.event.value, each.role.value, each.name, each.by, len(each.certificates))
        for each in changes
        if isinstance(each, IdentityChange)
    ]
    assert told == [
        ("added", "auditor", "auditor", "operator/olga", 1),
        ("added", "analyst", "ann", "operator/olga", 1),
        ("added", "analyst", "bob", "operator/olga", 1),
        ("revoked", "analyst", "ann", "operator/olga", 1),
    ]
    assert changes[-1].certificates == changes[1].certificates
    assert [each.index for each in changes] == [1, 2, 3, 8]


def test_exchanges_of_the_authority_are_listed_with_the_certificates_that_came_and_went(
    custodian: Custodian,
) -> None:
    custodian.rotate()
    custodian.retire()
    archive = custodian.archive()
    changes = registry_changes(archive.checkpoint, archive.leaves, archive.records, custodian.trusted)
    rotated, retired = (each for each in changes if isinstance(each, AuthorityChange))
    assert (rotated.event.value, retired.event.value) == ("rotated", "retired")
    assert (rotated.authority, rotated.predecessor) == (retired.authority, retired.predecessor)
    for exchange in (rotated, retired):
        assert [each.name for each in exchange.certificates] == ["auditor", "ann", "bob"]
    first = [each.certificates[0] for each in changes if isinstance(each, IdentityChange)]
    assert [each.digest for each in retired.certificates] == [each.digest for each in first]
    assert [each.expire_time for each in rotated.certificates] == [each.expire_time for each in first]
    assert {each.digest for each in rotated.certificates}.isdisjoint(each.digest for each in first)


def test_of_a_log_that_nobody_has_signed_nothing_is_listed(custodian: Custodian) -> None:
    archive, stranger = custodian.archive(), Custodian()
    with pytest.raises(VerificationFailed):
        registry_changes(archive.checkpoint, archive.leaves, archive.records, stranger.trusted)
    with pytest.raises(VerificationFailed):
        registry_changes(archive.checkpoint, archive.leaves[:-1], archive.records[:-1], custodian.trusted)


def without(custodian: Custodian, name: str) -> None:
    """The log leaves out that somebody was admitted."""
    custodian.records = [
        each for each in custodian.records if f'"name":"{name}"'.encode() not in each.items[0].content
    ]


def never_admitted(custodian: Custodian) -> None:
    without(custodian, "bob")


def admitted_later(custodian: Custodian) -> None:
    without(custodian, "bob")
    custodian.admit("bob")


def admitted_in_another_role(custodian: Custodian) -> None:
    without(custodian, "bob")
    custodian.admit("bob", "operator")
    custodian.records.insert(1, custodian.records.pop())


def deleted_before(custodian: Custodian) -> None:
    custodian.revoke("bob", "deleted")
    custodian.open(OTHER)


def revoked_before_the_round(custodian: Custodian) -> None:
    custodian.revoke("ann")
    custodian.time += timedelta(minutes=2)
    custodian.play(OTHER)


def expired_before_the_round(custodian: Custodian) -> None:
    custodian.time += timedelta(days=398)
    custodian.play(OTHER)


def read_by_nobody_known(custodian: Custodian) -> None:
    without(custodian, "auditor")
    custodian.read_seed(ROUND)


def read_after_a_revocation(custodian: Custodian) -> None:
    custodian.change("auditor", "revoked", custodian.certificates.pop("auditor"), "auditor")
    custodian.time += timedelta(minutes=2)
    custodian.read_seed(ROUND)


def admitted_twice(custodian: Custodian) -> None:
    custodian.admit("Ann")


def renewed_after_deletion(custodian: Custodian) -> None:
    custodian.revoke("bob", "deleted")
    custodian.admit("bob", event="renewed")


def renewed_without_admission(custodian: Custodian) -> None:
    custodian.admit("zoe", event="renewed")


def renewed_in_another_role(custodian: Custodian) -> None:
    custodian.admit("ann", "auditor", "renewed")


def one_certificate_twice(custodian: Custodian) -> None:
    custodian.change("ann", "renewed", custodian.certificates["ann"])


def renewed_without_a_certificate(custodian: Custodian) -> None:
    custodian.change("ann", "renewed", [])


def one_certificate_kept_in_force(custodian: Custodian) -> None:
    custodian.admit("ann", event="renewed")
    custodian.change("ann", "revoked", custodian.certificates["ann"][:1])


def signed_for_longer(custodian: Custodian) -> None:
    ann, *others = custodian.successors({"ann": custodian.certificates["ann"][:1], **rest(custodian)})
    assert isinstance(ann["expire_time"], int)
    custodian.exchange("rotated", [ann | {"expire_time": ann["expire_time"] + 1}, *others])


def signed_for_a_second_time(custodian: Custodian) -> None:
    ann = custodian.certificates["ann"][0]
    again = {"name": "ann", **ann, "digest": "00" * 32}
    custodian.exchange("rotated", [*custodian.successors({"ann": [ann], **rest(custodian)}), again])


def not_signed_anew(custodian: Custodian) -> None:
    custodian.exchange("rotated", custodian.successors(rest(custodian)))


def signed_after_expiry(custodian: Custodian) -> None:
    custodian.time += timedelta(days=398)
    custodian.rotate()


def rest(custodian: Custodian) -> dict[str, list[dict[str, object]]]:
    """Everybody's certificates but ann's."""
    return {name: list(held) for name, held in custodian.certificates.items() if name != "ann"}


def exchanged_twice(custodian: Custodian) -> None:
    custodian.rotate()
    custodian.rotate()


def exchanged_for_a_stranger(custodian: Custodian) -> None:
    custodian.rotate()
    custodian.retire()
    custodian.exchange("rotated", custodian.successors(dict(custodian.certificates)), predecessor="00" * 32)


def retired_without_exchange(custodian: Custodian) -> None:
    custodian.retire()


def retired_for_a_stranger(custodian: Custodian) -> None:
    custodian.rotate()
    custodian.exchange("retired", [], authority="00" * 32)


def kept_after_the_retirement(custodian: Custodian) -> None:
    custodian.rotate()
    del custodian.old["bob"]
    custodian.retire()


def new_one_revoked_with_the_old(custodian: Custodian) -> None:
    custodian.rotate()
    custodian.old["bob"] = custodian.certificates["bob"]
    custodian.retire()


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (never_admitted, "'bob' has a share, but is not admitted before"),
        (admitted_later, "'bob' has a share, but is not admitted before"),
        (admitted_in_another_role, "'bob' has a share, but is not admitted before"),
        (deleted_before, "'bob' has a share, but was deleted before"),
        (revoked_before_the_round, "a workload of 'ann' was used, who had no certificate in force"),
        (expired_before_the_round, "a workload of 'ann' was used, who had no certificate in force"),
        (read_by_nobody_known, "its seed was read by 'auditor', who had no auditor's certificate in force"),
        (read_after_a_revocation, "its seed was read by 'auditor', who had no auditor's certificate in force"),
        (admitted_twice, "'Ann' is admitted twice"),
        (renewed_after_deletion, "'bob' is renewed, but was deleted before"),
        (renewed_without_admission, "'zoe' is renewed, but is not admitted before"),
        (renewed_in_another_role, "'ann' has the role auditor, and was admitted as analyst"),
        (one_certificate_twice, "the certificate of 'ann' is issued twice"),
        (renewed_without_a_certificate, "'ann' is renewed with 0 certificates"),
        (one_certificate_kept_in_force, "that 'ann' has lost are not all that were in force"),
        (signed_for_longer, "a certificate of 'ann' ends later than the one that it replaces"),
        (signed_for_a_second_time, "'ann' has 2 certificates signed anew, for 1 in force"),
        (not_signed_anew, "'ann' has 0 certificates signed anew, for 1 in force"),
        (signed_after_expiry, " has 1 certificates signed anew, for 0 in force"),
        (exchanged_twice, "its predecessor is not the one authority in force"),
        (exchanged_for_a_stranger, "its predecessor is not the one authority in force"),
        (retired_without_exchange, "it ends an exchange of authorities that was not begun"),
        (retired_for_a_stranger, "it ends an exchange of authorities that was not begun"),
        (kept_after_the_retirement, "a certificate of 'bob' by the old authority is left in force"),
        (new_one_revoked_with_the_old, "a certificate of 'bob' is revoked that was not in force"),
    ],
)
def test_what_does_not_go_with_who_was_admitted_is_found(
    custodian: Custodian, lie: Callable[[Custodian], None], words: str
) -> None:
    lie(custodian)
    assert words in problem(custodian)


@pytest.mark.parametrize(("microseconds", "holds"), [(LATE, True), (LATE + 1, False)])
def test_a_receipt_is_of_somebody_who_was_let_in(custodian: Custodian, microseconds: int, holds: bool) -> None:
    """Open calls of somebody revoked end within a minute, and no later."""
    custodian.revoke("ann")
    revoked = custodian.time - timedelta(seconds=1)  # when it was put on record
    custodian.time = revoked + timedelta(microseconds=microseconds)
    receipt = custodian.receipt(ROUND, "ann", custodian.commitment(ROUND, "ann"))
    found = problem(custodian, receipt)
    assert ("a receipt is for 'ann' at" in found) is not holds


@pytest.mark.parametrize(("microseconds", "holds"), [(EARLY, True), (EARLY + 1, False)])
def test_a_receipt_is_not_older_than_its_holder_s_certificate(
    custodian: Custodian, microseconds: int, holds: bool
) -> None:
    archive = custodian.archive()
    changes = registry_changes(archive.checkpoint, archive.leaves, archive.records, custodian.trusted)
    admitted = next(each.time for each in changes if isinstance(each, IdentityChange) and each.name == "ann")
    custodian.time = admitted - timedelta(microseconds=microseconds)
    assert to_microseconds(custodian.time) > 0
    receipt = custodian.receipt(ROUND, "ann", custodian.commitment(ROUND, "ann"))
    assert (problem(custodian, receipt) == "") is holds
