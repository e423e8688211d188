"""Which account a dataset has: what the audit finds of a custodian who says one thing and counts another."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from harness.audit_failures import failures
from harness.custodian import ORDER, Custodian
from harness.record_book import rechained

from equipoise.accounting import Cost
from equipoise.auditing.report import as_json, as_markdown
from equipoise.auditing.verify import verify

SAME, ROUND, OTHER = "same-as:shop", "aa", "bb"


def test_datasets_of_the_same_people_are_in_order_and_are_listed(custodian: Custodian) -> None:
    custodian.register("later", people=SAME, account="shop")
    custodian.register("latest", people="same-as:later", account="shop")
    custodian.dataset = "latest"
    custodian.play(OTHER)
    audit = verify(custodian.archive(), custodian.trusted)
    assert (failures(custodian), audit.remarks) == ({}, [])
    charged = {account.name: [*account.charges] for account in audit.standing}
    assert charged == {name: [ROUND, OTHER] for name in charged}
    shared = {"version": 1, "account": "shop", "state": "active"}
    assert as_json(audit)["datasets"] == [
        {"dataset": "shop", "entry": 4, "people": "new", **shared},
        {"dataset": "later", "entry": 8, "people": SAME, **shared},
        {"dataset": "latest", "entry": 9, "people": "same-as:later", **shared},
    ]
    assert "| latest | 1 | entry 9 of the log | same-as:later | `shop` | active |" in as_markdown(audit)


def charged_to_its_own(custodian: Custodian) -> None:
    """The log says that the people are the same, and the ledger gives them a second budget."""
    custodian.register("later", people=SAME, account="shop")
    custodian.open_account("data/later", "sum", 3.0, ORDER)
    custodian.dataset = custodian.account = "later"
    custodian.play(OTHER)


def recorded_on_its_own(custodian: Custodian) -> None:
    custodian.open_account("data/later", "sum", 3.0, ORDER)
    custodian.register("later", people=SAME, account="later")


def recorded_as_new_on_another_s(custodian: Custodian) -> None:
    custodian.register("later", people="new", account="shop")


def named_before_it_is_there(custodian: Custodian) -> None:
    custodian.register("later", people="same-as:latest", account="latest")


def named_by_itself(custodian: Custodian) -> None:
    custodian.register("later", people="same-as:later", account="later")


def not_answered(custodian: Custodian) -> None:
    custodian.register("later", people="", account="shop")


def new_without_an_account(custodian: Custodian) -> None:
    custodian.register("later")
    custodian.journal.pop()
    custodian.change_last("data", journal=custodian.head())


def opened_after_it_was_registered(custodian: Custodian) -> None:
    new_without_an_account(custodian)
    custodian.open_account("data/later", "sum", 3.0, ORDER)


LIES: dict[str, tuple[Callable[[Custodian], None], str, str]] = {
    "a second budget": (
        charged_to_its_own,
        "A8",
        "opens data/later, though no dataset of new people is registered",
    ),
    "the round on it": (
        charged_to_its_own,
        "A9",
        "it charges other accounts than the data's and those of its shares",
    ),
    "its own account": (
        recorded_on_its_own,
        "A8",
        "'later' holds the people of 'shop', but has the account 'later' and not 'shop'",
    ),
    "another's account": (
        recorded_as_new_on_another_s,
        "A8",
        "'later' holds new people, but has the account 'shop' and not 'later'",
    ),
    "nobody's people": (
        named_before_it_is_there,
        "A8",
        "'later' holds the people of 'latest', which is not registered before",
    ),
    "its own people": (
        named_by_itself,
        "A8",
        "'later' holds the people of 'later', which is not registered before",
    ),
    "no answer": (not_answered, "A8", "does not say whose people 'later' holds"),
    "no account": (new_without_an_account, "A8", "the account 'later', which the budget journal has not opened"),
    "too late": (
        opened_after_it_was_registered,
        "A8",
        "the account 'later', which the budget journal has not opened",
    ),
}


@pytest.mark.parametrize(("lie", "check", "words"), LIES.values(), ids=LIES.keys())
def test_an_answer_that_is_recorded_and_not_kept_is_found(
    custodian: Custodian, lie: Callable[[Custodian], None], check: str, words: str
) -> None:
    lie(custodian)
    assert words in failures(custodian).get(check, "")


@pytest.mark.parametrize(
    ("persons", "person", "words"),
    [
        ({"mode": "average", "records": 4}, None, "must say both who is a person and by which column"),
        ({"mode": "rows", "records": 1}, "who", "must say both who is a person and by which column"),
        ({"mode": "events", "records": 3}, "who", "does not have 3 records a person"),
        ({"mode": "one", "records": 2}, "who", "records: must be 1 in the mode one"),
    ],
)
def test_persons_that_cannot_be_are_found(
    custodian: Custodian, persons: dict[str, object], person: str | None, words: str
) -> None:
    custodian.register("orders")
    assert failures(custodian) == {}
    custodian.change_last("dataset", persons=persons)
    custodian.change_last("data", person=person)
    assert any(words in said for said in failures(custodian).values())


def test_an_account_that_is_newer_than_the_log_is_no_difference(custodian: Custodian) -> None:
    """The journal is read last: a dataset may have been registered while the records were."""
    custodian.open_account("data/new", "sum", 3.0, ORDER)
    assert failures(custodian) == {}
    custodian.register("newer")
    assert "opens data/new, though no dataset of new people" in failures(custodian)["A8"]


def test_an_account_beside_another_is_remarked(custodian: Custodian) -> None:
    custodian.register("again")
    opened = custodian.journal[-1]
    events = json.dumps(json.loads(opened.events) | {"beside": ["data/shop"]})
    custodian.journal = rechained([*custodian.journal[:-1], replace(opened, events=events)])
    custodian.change_last("data", journal=custodian.head())
    audit = verify(custodian.archive(), custodian.trusted)
    assert failures(custodian) == {}
    assert audit.remarks == [
        "shop, again hold the same data: what people in them may lose is the sum",
        "entry 8 of the log (dataset-registered): the custodian says that nobody in again is in a dataset "
        "registered before; what people who are in both may lose is the sum",
        f"entry {opened.sequence}: data/again was opened beside data/shop, maybe for the same people",
    ]


def test_caps_whose_dangers_nobody_has_accepted_are_found_and_others_are_remarked() -> None:
    custodian = Custodian()
    custodian.register(epsilon=20.0)
    assert "nobody has accepted dangers of its caps: data_cap.epsilon: 20 is above 10" in failures(custodian)["A8"]
    custodian.change_last("data", accepted=["epsilon"])
    audit = verify(custodian.archive(), custodian.trusted)
    assert audit.passed
    assert [each for each in audit.remarks if "shop was registered with the danger epsilon: data_cap" in each]


def changed(custodian: Custodian, account: str, epsilon: float, delta: float, accepted: list[str]) -> None:
    events = json.dumps({"cap": {"epsilon": epsilon, "delta": delta}, "accepted": accepted})
    custodian.append("set-cap", account, "", Cost(), events)


@pytest.mark.parametrize(
    ("account", "epsilon", "delta", "danger", "said"),
    [
        ("data/shop", 20.0, 1e-6, "epsilon", "cap.epsilon: 20 is above 10"),
        ("data/shop", 9.0, 1 / 400, "delta", "cap.delta: 0.0025 is 1 in 400 people or more"),
        ("analyst/shop/query/ann", 20.0, 1e-6, "epsilon", "cap.epsilon: 20 is above 10"),
    ],
)
def test_a_changed_cap_whose_dangers_nobody_has_accepted_is_found_and_others_are_remarked(
    custodian: Custodian, account: str, epsilon: float, delta: float, danger: str, said: str
) -> None:
    changed(custodian, account, 9.0, 1 / 401, [])
    assert (failures(custodian), [each for each in remarks(custodian) if "danger" in each]) == ({}, [])
    before = list(custodian.journal)
    changed(custodian, account, epsilon, delta, [])
    assert f"nobody has accepted dangers of its cap: {said}" in failures(custodian)["A8"]
    custodian.journal = before
    changed(custodian, account, epsilon, delta, [danger])
    (remark,) = [each for each in remarks(custodian) if "danger" in each]
    assert remark.endswith(f": {account} got a cap with the danger {danger}: {said}")


def test_a_changed_cap_is_judged_by_what_was_registered_before_it(custodian: Custodian) -> None:
    changed(custodian, "data/shop", 3.0, 1 / 500, [])
    custodian.register("later", people=SAME, account="shop")
    custodian.change_last("dataset", records=500)
    assert failures(custodian) == {}
    changed(custodian, "data/shop", 3.0, 1 / 500, [])
    assert "1 in 500 people or more" in failures(custodian)["A8"]


def remarks(custodian: Custodian) -> list[str]:
    return verify(custodian.archive(), custodian.trusted).remarks


@pytest.mark.parametrize(
    ("name", "composition", "epsilon", "order", "words"),
    [
        ("analyst/shop/query/cyd", "worst", 3.0, None, ""),
        ("analyst/shop/analyst/cyd", "sum", 3.0, ORDER, ""),
        (
            "analyst/shop/query/cyd",
            "worst",
            300.0,
            None,
            "opens analyst/shop/query/cyd with the cap epsilon 300 at delta 1e-06, but entry 4 of the log "
            "(dataset-registered) says epsilon 3 at delta 1e-06",
        ),
        (
            "analyst/shop/analyst/cyd",
            "sum",
            2.0,
            ORDER,
            "with the cap epsilon 2 at delta 1e-06, but entry 4",
        ),
        ("analyst/shop/analyst/cyd", "sum", 3.0, ORDER + 1, "at the order 10.0, but entry 4 of the log"),
        ("analyst/none/query/cyd", "worst", 3.0, None, "though no such dataset is registered"),
    ],
)
def test_an_analyst_s_account_is_opened_with_the_cap_and_the_order_that_its_dataset_is_registered_with(
    custodian: Custodian, name: str, composition: str, epsilon: float, order: float | None, words: str
) -> None:
    custodian.open_account(name, composition, epsilon, order)
    # The registration of another dataset may still enter the log.
    assert ("A8" in failures(custodian)) is (bool(words) and "analyst/none" not in name)
    custodian.play(OTHER)
    problem = failures(custodian).get("A8", "")
    assert words in problem
    assert bool(problem) is bool(words)
