"""Bundles with a part too many, too few, or another's, where everything that is signed agrees: each is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cache
from typing import Any

import pytest
from harness.record_items import forge_item
from harness.small_custodian import PARTS, SALT, SCHEMA, STATEMENTS, SYNOPSIS, Custodian, Told
from harness.verifying import found, log_of, with_evidence

from equipoise.accounting import charge_of
from equipoise.model.synopsis import Synopsis
from equipoise.records.bundle import Bundle
from equipoise.records.evidence import OpenedRecord
from equipoise.records.record import Audience, Kind, Record, make_record
from equipoise.verification.checks import Check

SESSION = Told(slots=(0, 4, 8))
NOTHING = {"rho": 0, "epsilon": 0, "delta": 0, "divergence": 0}
NO_PARTS = {"mechanism": "equilibrium", "events": []}


def stream_of(bundle: Bundle) -> dict[str, Any]:
    """What the bundle's result commits to."""
    stream: dict[str, Any] = json.loads(bundle.evidence.records[-1].items[1].content)["stream"]
    return stream


def test_as_many_answers_as_the_record_counts() -> None:
    honest = stream_of(Told().bundle(log_of()))
    for more in (1, -1):
        counted = honest | {"queries": honest["queries"] + more}
        assert found(Told(items={"result": {"stream": counted}}).bundle(log_of())) is Check.STREAM


@pytest.mark.parametrize(("asked", "answered"), [(3, 2), (2, 3)])
@pytest.mark.parametrize(("told", "check"), [(Told(), Check.INTERVALS), (SESSION, Check.STREAM)])
def test_as_many_answers_as_were_asked_for(told: Told, check: Check, asked: int, answered: int) -> None:
    """Record and stream agree with each other on the answers to more statements, or to fewer."""
    wrong, right = (
        replace(told, statements=STATEMENTS[:count], slots=told.slots[:count]) for count in (answered, asked)
    )
    others = wrong.bundle(log_of())
    bundle = replace(right, items={"result": {"stream": stream_of(others)}}).bundle(log_of())
    assert found(replace(bundle, stream=others.stream)) is check


def test_no_synopsis_where_none_is_committed_to() -> None:
    bundle = Told(synopsis=False).bundle(log_of())
    assert found(bundle) is None
    assert found(replace(bundle, synopsis=Synopsis.of_cells(SYNOPSIS, SCHEMA.sizes).to_bytes())) is Check.SYNOPSIS


@pytest.mark.parametrize(
    "told", [Told(statements=None), replace(SESSION, statements=None)], ids=["round", "session"]
)
def test_no_statements_where_none_were_asked(told: Told) -> None:
    bundle, asked = told.bundle(log_of()), replace(told, statements=STATEMENTS).bundle(log_of())
    assert found(bundle) is None
    for wrong in (with_evidence(bundle, salt=SALT), replace(bundle, workload=asked.workload)):
        assert found(wrong) is Check.WORKLOAD


def test_a_session_s_statements_are_as_many_as_its_last_receipt_says() -> None:
    log = Custodian()
    log.grow(5)
    bundle = SESSION.bundle(log)
    assert found(bundle) is None
    assert found(with_evidence(bundle, receipt=SESSION.receipts(log)[1])) is Check.WORKLOAD


def test_a_round_has_a_budget_for_its_analysts() -> None:
    """Only sessions may have none, and say so."""
    public = {"analyst_budget": None, "analyst_cost": None, "analyst_events": NO_PARTS}
    items: dict[str, dict[str, Any]] = {"round": public, "result": {"charge": NOTHING}}
    assert found(Told(items=items).bundle(log_of())) is Check.CHARGE


def test_neither_results_without_a_workload_nor_a_workload_without_results() -> None:
    honest = Told().bundle(log_of())
    unanswered = Told(items={"result": {"stream": None}}).bundle(log_of())
    assert found(replace(unanswered, stream=())) is Check.STREAM
    unasked = Told(statements=None).bundle(log_of())
    assert found(unasked) is None
    assert found(replace(unasked, stream=honest.stream)) is Check.STREAM


def test_as_many_messages_and_records_as_are_committed_to() -> None:
    """The digests are those of what is there, and only the numbers beside them are others."""
    stream = stream_of(Told().bundle(log_of()))
    more = stream | {"messages": stream["messages"] + 1}
    assert found(Told(items={"result": {"stream": more}}).bundle(log_of())) is Check.STREAM
    honest = json.loads(Told().bundle(log_of()).evidence.records[-1].items[0].content)["synopsis"]
    longer = honest | {"records": honest["records"] + 1}
    assert found(Told(items={"release": {"synopsis": longer}}).bundle(log_of())) is Check.SYNOPSIS


@pytest.mark.parametrize(("end", "state"), [("open", "spent"), ("running", "none")])
def test_a_round_is_charged_if_and_only_if_it_was_sealed(end: str, state: str) -> None:
    """Amount and state agree with each other."""
    charge = NOTHING if state == "none" else asdict(charge_of(PARTS))
    told = Told(end=end, items={"charge": {"state": state, "charge": charge}})
    assert found(told.bundle(log_of())) is Check.CHARGE


class TwoFaced(Custodian):
    """A custodian whose record of an opening has two items for all, of which it shows the last."""

    def opened(self, record: Record, index: int, places: Sequence[int]) -> OpenedRecord:
        if record.kind is Kind.ROUND_OPENED:
            places = (len(record.items) - 1, *places[1:])
        return super().opened(record, index, places)


@cache
def opened_twice() -> tuple[Record, Record]:
    """The records of the dataset and of an opening, the same each time, in which the terms stand twice."""
    dataset, opened = Told()._openings()
    fields = json.loads(opened.items[0].content)
    again = forge_item(fields.pop("item"), Audience.ROUND, fields)
    return dataset, make_record(opened.kind, [*opened.items, again])


class ToldTwice(Told):
    """What is said of a round whose terms stand in its record twice."""

    def _openings(self) -> list[Record]:
        return [*opened_twice()]


def test_what_speaks_to_all_stands_at_one_place() -> None:
    """Else one record could hold two promises, one for each analyst."""
    log = TwoFaced()
    log.grow(5)
    assert found(ToldTwice().bundle(log)) is Check.ROUND
    assert found(ToldTwice().bundle(log_of())) is None
