"""Versions, retirement and deletion: what the audit finds of a custodian whose records do not go together."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness.audit_failures import failures
from harness.custodian import ORDER, Custodian

from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import verify
from equipoise.records.record import Kind

SAME, ROUND, OTHER = "same-as:shop", "aa", "bb"


def update(custodian: Custodian, version: int = 2, account: str = "shop", people: str = SAME) -> None:
    """Register another version of the shop's table."""
    custodian.register(people=people, account=account, version=version)


def test_rounds_before_and_after_an_update_are_in_order_and_on_one_account(custodian: Custodian) -> None:
    custodian.open(OTHER)
    update(custodian)
    custodian.reserve(OTHER)
    custodian.seal(OTHER)
    custodian.run(OTHER)
    custodian.settle(OTHER)
    custodian.release(OTHER)
    custodian.play("cc")
    custodian.end_dataset(Kind.DATASET_RETIRED)
    custodian.end_dataset(Kind.DATASET_DELETED)
    audit = verify(custodian.archive(), custodian.trusted)
    assert (failures(custodian), audit.remarks) == ({}, [])
    charged = {account.name: [*account.charges] for account in audit.standing}
    assert charged == {name: [ROUND, OTHER, "cc"] for name in charged}
    report = as_json(audit)
    retired, deleted = (len(custodian.records) - 2, len(custodian.records) - 1)
    state = f"retired in entry {retired}, deleted in entry {deleted}"
    assert [(each["version"], each["people"], each["state"]) for each in report["datasets"]] == [
        (1, "new", state),
        (2, SAME, state),
    ]
    assert [each["dataset_version"] for each in report["rounds"]] == [1, 1, 2]
    assert f"| shop | 2 | entry 9 of the log | {SAME} | `shop` | {state} |" in as_markdown(audit)


def with_a_fresh_account(custodian: Custodian) -> None:
    """The ledger gives the newer snapshot a second budget, and the log says so."""
    custodian.open_account("data/shop2", "sum", 3.0, ORDER)
    update(custodian, account="shop2")


def charged_elsewhere(custodian: Custodian) -> None:
    """The log says that the version shares the account, and its rounds are charged to another one."""
    update(custodian)
    custodian.open_account("data/shop2", "sum", 3.0, ORDER)
    custodian.account = "shop2"
    custodian.play(OTHER)


def as_new_people(custodian: Custodian) -> None:
    update(custodian, people="new")


def with_another_cap(custodian: Custodian) -> None:
    update(custodian)
    custodian.change_last("data", analyst_order=9.0)


def a_version_left_out(custodian: Custodian) -> None:
    update(custodian, version=3)


def the_name_again(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_DELETED)
    custodian.register()


def a_version_of_what_is_deleted(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_DELETED)
    update(custodian)


def a_version_of_what_is_retired(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_RETIRED)
    update(custodian)


def a_round_on_what_is_retired(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_RETIRED)
    custodian.play(OTHER)


def a_round_on_what_is_deleted(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_DELETED)
    custodian.play(OTHER)


def a_round_on_an_older_version(custodian: Custodian) -> None:
    update(custodian)
    custodian.open(OTHER)
    first = next(each for each in custodian.records if each.kind == Kind.DATASET_REGISTERED)
    custodian.change_last("round", dataset_version=1, dataset_root=first.root.hex())


def a_round_that_names_another_version(custodian: Custodian) -> None:
    update(custodian)
    custodian.open(OTHER)
    custodian.change_last("round", dataset_version=1)


def deleted_during_a_round(custodian: Custodian) -> None:
    custodian.open(OTHER)
    custodian.end_dataset(Kind.DATASET_DELETED)


def deleted_twice(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_DELETED)
    custodian.end_dataset(Kind.DATASET_DELETED)


def retired_after_its_deletion(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_DELETED)
    custodian.end_dataset(Kind.DATASET_RETIRED)


def retired_before_it_is_there(custodian: Custodian) -> None:
    custodian.end_dataset(Kind.DATASET_RETIRED, "later")


FRESH = "a version of 'shop' must have its people and its account 'shop'"


@pytest.mark.parametrize(
    ("lie", "check", "words"),
    [
        (with_a_fresh_account, "A8", f"{FRESH}, but has 'same-as:shop' and 'shop2'"),
        (charged_elsewhere, "A9", "it charges other accounts than the data's and those of its shares"),
        (as_new_people, "A8", f"{FRESH}, but has 'new' and 'shop'"),
        (with_another_cap, "A8", "a version of 'shop' gives its analysts another cap"),
        (a_version_left_out, "A8", "the dataset 'shop' is registered twice, or under two names"),
        (the_name_again, "A8", "the dataset 'shop' is registered twice, or under two names"),
        (a_version_of_what_is_deleted, "A8", "comes after the dataset 'shop' was deleted"),
        (a_version_of_what_is_retired, "A8", "comes after the dataset 'shop' was retired"),
        (a_round_on_what_is_retired, "A8", "comes after the dataset 'shop' was retired"),
        (a_round_on_what_is_deleted, "A8", "comes after the dataset 'shop' was deleted"),
        (a_round_on_an_older_version, "A8", "does not name the root of entry 8 of the log (dataset-registered)"),
        (a_round_that_names_another_version, "A8", "the version that it names is not that of entry 8 of the log"),
        (deleted_during_a_round, "A8", "the dataset 'shop' is deleted while a round on it has not ended"),
        (deleted_twice, "A8", "the dataset 'shop' is deleted twice"),
        (retired_after_its_deletion, "A8", "comes after the dataset 'shop' was deleted"),
        (retired_before_it_is_there, "A8", "the dataset 'later' is not registered before"),
    ],
)
def test_a_life_that_is_not_as_it_must_be_is_found(
    custodian: Custodian, lie: Callable[[Custodian], None], check: str, words: str
) -> None:
    lie(custodian)
    assert words in failures(custodian).get(check, "")


def test_a_claim_of_other_people_is_remarked(custodian: Custodian) -> None:
    custodian.register("other")
    (remark, *_) = [each for each in verify(custodian.archive(), custodian.trusted).remarks if "nobody" in each]
    assert remark == (
        "entry 8 of the log (dataset-registered): the custodian says that nobody in other is in a dataset "
        "registered before; what people who are in both may lose is the sum"
    )
