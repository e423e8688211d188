"""The auditor's check of rounds that answer from a measurement: on record, released, and of the same dataset."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from harness.audit_failures import failures
from harness.custodian import Custodian

from equipoise.auditing.report import as_markdown
from equipoise.auditing.verify import Outcome, verify
from equipoise.records.record import Kind

NOISE = {"ordered": [], "parameters": [3], "sets": [[0]], "sizes": [2, 4]}
DIGEST = "07" * 32
NAMED = {"round": "bb", "digest": DIGEST, "noise": NOISE}


def measured_custodian(released: bool = True, parameters: str = json.dumps({"noise": NOISE})) -> Custodian:
    """A custodian whose round bb is a measurement."""
    custodian = Custodian()
    custodian.register()
    custodian.unprotected.add("bb")
    custodian.open("bb", analysts=())
    custodian.change_last("round", mechanism="measurement")
    custodian.change_last("plan", plan={"mechanism": "measurement", "parameters": parameters})
    custodian.reserve("bb")
    custodian.seal("bb")
    custodian.run("bb")
    if released:
        custodian.settle("bb")
        custodian.release("bb")
        custodian.change_last("release", measurement=DIGEST, synopsis=None)
    return custodian


def test_a_measurement_without_its_noise_on_record_ends_no_audit() -> None:
    assert "a record is malformed" in answered(measured_custodian(parameters="{}"), NAMED)


def test_a_measurement_protects_no_analysts_and_says_so() -> None:
    custodian = measured_custodian()
    report = as_markdown(verify(custodian.archive(), custodian.trusted))
    assert "| there are none |" in report
    assert "| protected |" not in report


def answered(custodian: Custodian, named: object, planned: object = None) -> str:
    """What A9 says of a round that answers from what it names; empty where it is in order.

    `planned`: the plan's parameters, which else name the same.
    """
    custodian.open("aa")
    parameters = json.dumps({"measurement": named} if planned is None else planned)
    options = {} if named is None else {"standing": named}
    custodian.change_last("plan", terms={"options": options}, plan={"parameters": parameters})
    for step in (custodian.reserve, custodian.seal, custodian.run, custodian.settle, custodian.release):
        step("aa")
    checks = verify(custodian.archive(), custodian.trusted).checks
    return next((check.detail for check in checks if check.outcome is Outcome.FAILED), "")


def test_a_measurement_without_analysts_and_a_round_that_answers_from_it_are_in_order() -> None:
    assert answered(measured_custodian(), NAMED) == ""


def test_a_plan_uses_just_the_measurement_that_the_terms_name() -> None:
    prior = {"prior": {"measured": {"noise": NOISE, "released": {"round": "bb", "digest": DIGEST}}}}
    assert answered(measured_custodian(), NAMED, prior) == ""
    other = {"prior": {"measured": {"noise": NOISE, "released": {"round": "cc", "digest": DIGEST}}}}
    assert "does not use the measurement" in answered(measured_custodian(), NAMED, other)
    assert "does not use the measurement" in answered(measured_custodian(), NAMED, [{"game": None}])
    assert "that the terms do not name" in answered(measured_custodian(), None, [prior])


@pytest.mark.parametrize(
    ("custodian", "named", "found"),
    [
        (measured_custodian, {**NAMED, "digest": "08" * 32}, "other numbers than"),
        (measured_custodian, {**NAMED, "noise": {**NOISE, "parameters": [2]}}, "other numbers than"),
        (measured_custodian, {**NAMED, "round": "cc"}, "no measurement of its dataset"),
        (measured_custodian, "bb", "does not say which measurement"),
        (lambda: measured_custodian(released=False), NAMED, "not released before"),
    ],
    ids=["digest", "noise", "round", "form", "not released"],
)
def test_what_is_named_must_be_what_was_released(
    custodian: Callable[[], Custodian], named: object, found: str
) -> None:
    assert found in answered(custodian(), named)


@pytest.mark.parametrize("shown", [None, NAMED | {"digest": "08" * 32}])
def test_a_grant_that_shows_its_analyst_another_measurement_is_found(shown: object) -> None:
    """By the one that is shown the analyst counts what its statements cost."""
    custodian = measured_custodian()
    custodian.open("aa")
    parameters = json.dumps({"measurement": NAMED})
    custodian.change_last("plan", terms={"options": {"standing": NAMED}}, plan={"parameters": parameters})
    custodian.change_last("round", standing=shown)
    assert ("told of another measurement" in str(failures(custodian))) is (shown is not None)
    custodian.change_last("plan", plan={"mechanism": "grant", "parameters": parameters})
    custodian.change_last("round", mechanism="grant", standing=shown)
    assert "told of another measurement" in failures(custodian)["A9"]


def test_a_round_is_opened_after_what_it_answers_from_was_released() -> None:
    """Released by now, and in all else in order; but nobody could have known its numbers at the opening."""
    custodian = measured_custodian()
    custodian.open("aa")
    parameters = json.dumps({"measurement": NAMED})
    custodian.change_last("plan", terms={"options": {"standing": NAMED}}, plan={"parameters": parameters})
    assert failures(custodian) == {}
    opened = custodian.records.pop()
    places = [place for place, each in enumerate(custodian.records) if each.kind == Kind.ROUND_SEALED]
    custodian.records.insert(places[-1], opened)
    assert "not released before" in failures(custodian)["A9"]
