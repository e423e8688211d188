"""A bundle passes as it was made; every way of altering it, or of lying in it, is found, and by which check."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from harness.small_custodian import (
    ROUND,
    STATEMENTS,
    Custodian,
    Told,
    signing_key,
)
from harness.verifying import flipped, found, log_of, papers, with_evidence

from equipoise.model.results import AnswerMethod
from equipoise.records.bundle import Bundle
from equipoise.records.canonical import canonical_json
from equipoise.records.evidence import Earlier, Evidence, OpenedItem
from equipoise.records.merkle import leaf_hash, node_hash
from equipoise.records.record import Kind, leaf_bytes
from equipoise.records.signed_notes import sign_note
from equipoise.verification.checks import WITH_NONCE, WITHOUT_NONCE, Check, VerifierInputs, verify
from equipoise.wire.results import chunk_from_bytes, results_to_chunks

NOTHING = {"rho": 0, "epsilon": 0, "delta": 0, "divergence": 0}
HONEST = {
    "released": Told(),
    "no synopsis": Told(synopsis=False),
    "nothing submitted": Told(statements=None),
    "aborted while open": Told(end="open"),
    "aborted while open, nothing submitted": Told(end="open", statements=None),
    "aborted when sealed": Told(end="sealed"),
    "aborted when running": Told(end="running"),
    "an account of a Renyi order": Told(
        items={
            "round": {"unit": "analyst", "analyst_order": 5.5},
            "result": {"charge": NOTHING},
        },
        parts=(),
    ),
}


@pytest.mark.parametrize("told", HONEST.values(), ids=HONEST.keys())
def test_what_is_honest_passes(told: Told) -> None:
    log = log_of()
    bundle = told.bundle(log, earlier=3)
    assert found(bundle) is None
    assert Bundle.from_bytes(bundle.to_bytes()) == bundle
    assert Evidence.from_bytes(bundle.evidence.to_bytes()) == bundle.evidence


def test_what_is_counted_is_called_what_it_is() -> None:
    """Items of records are no statements, of which there are fewer."""
    bundle, said = Told().bundle(log_of(), earlier=3), dict[Check, str]()
    verify(bundle.to_bytes(), papers(), said.__setitem__)
    opened = sum(len(record.items) for record in bundle.evidence.records)
    assert said[Check.ITEMS] == f"{opened} items of {len(bundle.evidence.records)} records"
    assert "statement" not in Check.ITEMS.title
    assert said[Check.WORKLOAD].startswith(f"{len(STATEMENTS)} statements, ")


def test_it_is_said_who_has_a_part_in_the_seed() -> None:
    """Without an auditor's nonce the custodian could have drawn seeds until it liked the noise."""
    for told, words in (
        (Told(), WITHOUT_NONCE),
        (Told(items={"seal": {"nonce": "ab" * 32}}), WITH_NONCE),
        (Told(end="open"), None),  # of a round that was never sealed nothing was drawn from it
    ):
        said = dict[Check, str]()
        verify(told.bundle(log_of(), earlier=3).to_bytes(), papers(), said.__setitem__)
        assert said[Check.ROUND].partition("; ")[2] == (words or "")


def test_two_keys_in_force_sign_and_either_is_enough() -> None:
    log = Custodian(keys=[signing_key(1), signing_key(2)])
    log.grow(3)
    bundle = Told().bundle(log, earlier=2)
    for key in log.keys:
        assert found(bundle, VerifierInputs([key.verifier])) is None
    assert found(bundle, VerifierInputs([signing_key(3).verifier])) is Check.CHECKPOINT


# What others than the custodian could do to the file, or the custodian without its key.


def with_record(bundle: Bundle, number: int, **changes: object) -> Bundle:
    records = list(bundle.evidence.records)
    records[number] = replace(records[number], **changes)  # type: ignore[arg-type]
    return with_evidence(bundle, records=tuple(records))


def with_item(bundle: Bundle, record: int, number: int, **changes: object) -> Bundle:
    items = list(bundle.evidence.records[record].items)
    items[number] = replace(items[number], **changes)  # type: ignore[arg-type]
    return with_record(bundle, record, items=tuple(items))


def item_of(bundle: Bundle, record: int, number: int) -> OpenedItem:
    return bundle.evidence.records[record].items[number]


def edited(bundle: Bundle, record: int, number: int, **fields: object) -> Bundle:
    content = json.loads(item_of(bundle, record, number).content) | fields
    return with_item(bundle, record, number, content=canonical_json(content))


def one_unit_more(bundle: Bundle) -> Bundle:
    (columns,) = map(chunk_from_bytes, bundle.stream)
    columns.answers.values[0] += 1
    return replace(bundle, stream=tuple(results_to_chunks(ROUND, columns.answers)))


def with_unknown_key(bundle: Bundle) -> Bundle:
    other = Custodian(keys=[signing_key(9)])
    text = bundle.evidence.checkpoint.decode().partition("\n\n")[0] + "\n"
    return with_evidence(bundle, checkpoint=sign_note(text, other.keys), keys=(signing_key(9).verifier.to_text(),))


def with_leaf_as_node(bundle: Bundle) -> Bundle:
    """An inner node of the record's tree passed for an item: its two hashes in the place of salt and content."""
    item = item_of(bundle, 3, 1)
    hashed = leaf_hash(item.salt + item.content)
    forged = replace(item, salt=hashed, content=item.path[0].hex().encode(), path=item.path[1:])
    assert node_hash(hashed, item.path[0])
    return with_record(bundle, 3, items=(item_of(bundle, 3, 0), forged))


def with_node_as_leaf(bundle: Bundle) -> Bundle:
    """The same in the log: a leaf one level higher."""
    record = bundle.evidence.records[3]
    return with_record(bundle, 3, index=record.index // 2, path=record.path[1:])


def swapped(bundle: Bundle) -> Bundle:
    """The stream of another analyst's, whose statements were the same."""
    return replace(bundle, stream=Told(values={0: 1}, methods={0: AnswerMethod.GAUSSIAN}).bundle(log_of()).stream)


def truncated(bundle: Bundle) -> Bundle:
    """The checkpoint of the log before the release, under which the evidence cannot stand."""
    log = log_of()
    Told().bundle(log)
    return with_evidence(bundle, checkpoint=log.checkpoint(6))


def with_another_log_before(bundle: Bundle) -> Bundle:
    assert bundle.evidence.earlier is not None
    return with_evidence(bundle, earlier=Earlier(log_of(3).checkpoint(), bundle.evidence.earlier.path))


ALTERED: dict[str, tuple[Callable[[Bundle], Bundle], Check]] = {
    "a checkpoint by an unknown key": (with_unknown_key, Check.CHECKPOINT),
    "a checkpoint's size": (
        lambda b: with_evidence(b, checkpoint=b.evidence.checkpoint.replace(b"\n11\n", b"\n12\n")),
        Check.CHECKPOINT,
    ),
    "another deployment": (lambda b: with_evidence(b, deployment="other"), Check.CHECKPOINT),
    "a key told twice": (lambda b: with_evidence(b, keys=b.evidence.keys * 2), Check.CHECKPOINT),
    "an older checkpoint": (truncated, Check.LOG),
    "a proof's hash": (lambda b: with_record(b, 2, path=(bytes(32), *b.evidence.records[2].path[1:])), Check.LOG),
    "a shorter proof": (lambda b: with_record(b, 2, path=b.evidence.records[2].path[1:]), Check.LOG),
    "another index": (lambda b: with_record(b, 2, index=b.evidence.records[2].index ^ 1), Check.LOG),
    "a leaf": (lambda b: with_record(b, 3, leaf=leaf_bytes(Kind.ROUND_RELEASED, bytes(32), 8)), Check.LOG),
    "a leaf one level higher": (with_node_as_leaf, Check.LOG),
    "records in another order": (
        lambda b: with_evidence(b, records=(*b.evidence.records[2:], *b.evidence.records[:2])),
        Check.LOG,
    ),
    "an item's salt": (lambda b: with_item(b, 1, 0, salt=bytes(32)), Check.ITEMS),
    "an item's place": (lambda b: with_item(b, 3, 1, position=3), Check.ITEMS),
    "an item's proof": (lambda b: with_item(b, 3, 1, path=item_of(b, 3, 0).path), Check.ITEMS),
    "a leaf presented as a node": (with_leaf_as_node, Check.ITEMS),
    "a lower charge": (
        lambda b: edited(b, 3, 1, charge=NOTHING),
        Check.ITEMS,
    ),
    "another reservation of the plan": (lambda b: edited(b, 1, 0, max_half_width=1.0), Check.ITEMS),
    "a dropped item": (lambda b: with_record(b, 3, items=b.evidence.records[3].items[:1]), Check.ROUND),
    "a dropped record": (lambda b: with_evidence(b, records=b.evidence.records[:3]), Check.ROUND),
    "a dropped first record": (lambda b: with_evidence(b, records=b.evidence.records[1:]), Check.ROUND),
    "another analyst": (lambda b: with_evidence(b, analyst="bob"), Check.ROUND),
    "another round": (lambda b: with_evidence(b, round_id="cd" * 16), Check.ROUND),
    "no receipt": (lambda b: with_evidence(b, receipt=None), Check.RECEIPT),
    "a receipt's bit": (lambda b: with_evidence(b, receipt=flipped(b.evidence.receipt or b"", 240)), Check.RECEIPT),
    "another salt": (lambda b: with_evidence(b, salt=bytes(32)), Check.WORKLOAD),
    "no salt": (lambda b: with_evidence(b, salt=None), Check.WORKLOAD),
    "another workload": (lambda b: replace(b, workload=flipped(b.workload or b"", 9)), Check.WORKLOAD),
    "no workload": (lambda b: replace(b, workload=None), Check.WORKLOAD),
    "an answer by one unit": (one_unit_more, Check.STREAM),
    "another's results": (swapped, Check.STREAM),
    "a dropped message": (lambda b: replace(b, stream=b.stream[:-1]), Check.STREAM),
    "a message twice": (lambda b: replace(b, stream=(*b.stream, b.stream[-1])), Check.STREAM),
    "a record of the synopsis": (lambda b: replace(b, synopsis=flipped(b.synopsis or b"", 0)), Check.SYNOPSIS),
    "a shorter synopsis": (lambda b: replace(b, synopsis=(b.synopsis or b"")[:-4]), Check.SYNOPSIS),
    "no synopsis": (lambda b: replace(b, synopsis=None), Check.SYNOPSIS),
    "the earlier checkpoint": (with_another_log_before, Check.HISTORY),
    "the proof of growth": (
        lambda b: with_evidence(b, earlier=Earlier(log_of(3).checkpoint(), (bytes(32),))),
        Check.HISTORY,
    ),
}


@pytest.mark.parametrize(("alter", "check"), ALTERED.values(), ids=ALTERED.keys())
def test_what_is_altered_is_found(alter: Callable[[Bundle], Bundle], check: Check) -> None:
    bundle = Told().bundle(log_of(), earlier=3)
    altered = alter(bundle)
    assert altered != bundle
    assert found(altered) is check


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "a space": lambda data: data.replace(b",", b", ", 1),
    "a line's end": lambda data: data + b"\n",
    "another order": lambda data: json.dumps(
        dict(reversed(json.loads(data).items())), separators=(",", ":")
    ).encode(),
    "a key more": lambda data: canonical_json(json.loads(data) | {"note": "unsigned"}),
    "a key twice": lambda data: b'{"evidence":{},' + data[1:],
    "a key less": lambda data: canonical_json({k: v for k, v in json.loads(data).items() if k != "synopsis"}),
    "a later version": lambda data: canonical_json(json.loads(data) | {"version": 2}),
    "another format": lambda data: canonical_json(json.loads(data) | {"format": "equipoise-archive"}),
    "padding bits of base64": lambda data: canonical_json(json.loads(data) | {"synopsis": "AAAAAB=="}),
    "half a file": lambda data: data[: len(data) // 2],
    "nothing": lambda data: b"",
    "deep nesting": lambda data: b"[" * 100_000,
    "a huge number": lambda data: data.replace(b'"version":1', b'"version":' + b"9" * 10_000),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_another_form_is_refused(form: Callable[[bytes], bytes]) -> None:
    assert found(form(Told().bundle(log_of()).to_bytes())) is Check.FORMAT
