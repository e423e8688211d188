"""Archives that were changed afterwards, and logs that were forked or cut: the audit names what was done."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from harness.audit_failures import failed_checks, failures
from harness.custodian import ORDER, Custodian
from harness.record_book import rechained

from equipoise.accounting import Cost
from equipoise.auditing.archive import Archive, read_archive, write_archive
from equipoise.auditing.verify import Outcome, verify
from equipoise.errors import VerificationFailed
from equipoise.records.signed_notes import sign_note

ROUND, OTHER = "aa", "bb"


@pytest.fixture
def custodian(custodian: Custodian) -> Custodian:
    """With a second whole round."""
    custodian.play(OTHER)
    return custodian


def unknown_key(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    stranger = Custodian().keys[0]
    text = archive.checkpoint.decode().split("\n\n")[0] + "\n"
    return replace(archive, checkpoint=sign_note(text, [custodian.keys[0], stranger]))


def unrecorded_key(custodian: Custodian) -> Archive:
    """A trusted key that the log says has been retired."""
    archive = custodian.archive()
    first = custodian.keys[0]
    custodian.add_key()
    custodian.retire_key(first)
    custodian.keys = [first, *custodian.keys]
    return replace(custodian.archive(), earlier=archive.checkpoint)


def leaf_removed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, leaves=archive.leaves[:-1])


def leaves_swapped(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    first, second, *others = archive.leaves
    return replace(archive, leaves=(second, first, *others))


def record_removed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, records=archive.records[:5] + archive.records[6:])


def record_twice(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    return replace(archive, records=(archive.records[0], *archive.records))


def item_changed(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    record = archive.records[5]
    changed = record.items[0].content.replace(b'"beta":0.05', b'"beta":0.06')
    items = (replace(record.items[0], content=changed), *record.items[1:])
    return replace(archive, records=(*archive.records[:5], replace(record, items=items), *archive.records[6:]))


def wrong_salt(custodian: Custodian) -> Archive:
    archive = custodian.archive()
    record = archive.records[5]
    items = (replace(record.items[0], salt=bytes(32)), *record.items[1:])
    return replace(archive, records=(*archive.records[:5], replace(record, items=items), *archive.records[6:]))


def plan_removed(custodian: Custodian) -> Archive:
    """As an analyst's item is removed with the analyst, but this one is of no analyst."""
    archive = custodian.archive()
    record = archive.records[5]
    items = (record.items[0], replace(record.items[1], content=b"", salt=b""), *record.items[2:])
    return replace(archive, records=(*archive.records[:5], replace(record, items=items), *archive.records[6:]))


def charge_lowered(custodian: Custodian) -> Archive:
    """In the journal alone, with all digests made anew."""
    custodian.journal[5] = replace(custodian.journal[5], cost=Cost(rho=1))
    custodian.journal[:] = rechained(custodian.journal)
    return custodian.archive()


def entry_dropped(custodian: Custodian) -> Archive:
    del custodian.journal[6]
    return custodian.archive()


def last_entries_dropped(custodian: Custodian) -> Archive:
    del custodian.journal[-2:]
    return custodian.archive()


def journal_forked(custodian: Custodian) -> Archive:
    """Another history of the newest entries, as long as the first."""
    custodian.journal[-1] = replace(custodian.journal[-1], time=custodian.time.replace(year=2027))
    custodian.journal[:] = rechained(custodian.journal)
    return custodian.archive()


@pytest.mark.parametrize(
    ("cheat", "check", "words"),
    [
        (unknown_key, "A1", "signed by the unknown key equipoise/test"),
        (unrecorded_key, "A1", "which the log says is not in force"),
        (leaf_removed, "A2", "there are 10 leaves, and the checkpoint says 11"),
        (leaves_swapped, "A2", "the leaves do not hash to the checkpoint's root"),
        (record_removed, "A4", "entry 5 of the log has no record"),
        (record_twice, "A4", "entry 1 of the log has no record, or two"),
        (item_changed, "A4", "entry 5 of the log: the item round does not open to its hash"),
        (wrong_salt, "A4", "entry 5 of the log: the item round does not open to its hash"),
        (plan_removed, "A4", "entry 5 of the log: the item plan does not open to its hash"),
        (charge_lowered, "A5", "is not the one that entry 6 of the log"),
        (
            charge_lowered,
            "A6",
            "entry 6 of the budget journal charges data/shop an amount that differs from the sum of its parts",
        ),
        (entry_dropped, "A5", "the budget journal is damaged at entry 7"),
        (last_entries_dropped, "A5", "some were dropped"),
        (journal_forked, "A5", "commits to, at entry 17"),
    ],
)
def test_what_was_changed_afterwards_is_named(
    custodian: Custodian, cheat: Callable[[Custodian], Archive], check: str, words: str
) -> None:
    assert words in failures(custodian, cheat(custodian)).get(check, "")


def test_two_checkpoints_of_one_size_are_a_fork(custodian: Custodian) -> None:
    other = Custodian(custodian.keys)
    other.register()
    other.play(ROUND)
    other.play("cc")
    failed = failures(custodian, custodian.archive(), [other.checkpoint()])
    assert failed["A3"] == "there are two checkpoints of size 11: the log was forked"


def test_an_old_checkpoint_is_not_taken_for_a_new_one(custodian: Custodian) -> None:
    old = custodian.archive()
    custodian.open("cc")
    assert "an old one is shown again" in failures(custodian, old, [custodian.checkpoint()])["A3"]


def test_a_log_that_was_written_anew_does_not_continue_what_was_seen(custodian: Custodian) -> None:
    """A round was removed, and everything else made consistent again."""
    seen = custodian.checkpoint()
    anew = Custodian(custodian.keys)
    anew.register()
    for round_id in (ROUND, "dd", "ee"):
        anew.play(round_id)
    assert "the log was forked, or changed afterwards" in failures(custodian, anew.archive(seen))["A3"]


def test_a_round_that_is_not_recorded_is_missed(custodian: Custodian) -> None:
    """By the list of rounds, and by the journal where the list hides it, too."""
    custodian.remove(OTHER)
    listed = failures(custodian, custodian.archive())["A8"]
    assert listed == f"the round {OTHER} is listed, but its opening is not recorded"
    del custodian.listed[OTHER]
    journaled = failures(custodian, custodian.archive())["A8"]
    assert journaled == f"the round {OTHER} is in the budget journal, but is not recorded"


def test_a_round_that_is_listed_with_other_times_is_named(custodian: Custodian) -> None:
    honest = custodian.listed[OTHER]
    for name, words in (("open_time", "opening time"), ("release_time", "release time")):
        custodian.listed[OTHER] = replace(honest, **{name: getattr(honest, name) + 1})
        failed = failures(custodian, custodian.archive())["A8"]
        assert failed == f"the round {OTHER} is listed with another {words} than the one on record"
    custodian.listed[OTHER] = replace(honest, state="sealed", release_time=None)  # it was released meanwhile
    assert not failures(custodian, custodian.archive())


def test_a_round_that_is_said_to_be_from_before_the_log_is_missed(custodian: Custodian) -> None:
    """No time of opening that the custodian lists, and no dataset, excuses a round from being recorded."""
    hidden = custodian.listed[OTHER]
    custodian.open_account("data/hidden", "sum", 3.0, ORDER)
    custodian.remove(OTHER)
    for dataset in ("shop", "hidden"):
        custodian.listed[OTHER] = replace(hidden, open_time=0, dataset=dataset)
        problem = f"the round {OTHER} is listed, but its opening is not recorded"
        assert failures(custodian, custodian.archive()) == {"A8": problem}


def removing(archive: Archive, indices: Sequence[int], analyst: str) -> Archive:
    """Without the items of one analyst in some records."""
    about = f'"analyst":"{analyst}"'.encode()
    records = [
        replace(
            record,
            items=tuple(
                replace(item, content=b"", salt=b"") if place > 1 and about in item.content else item
                for place, item in enumerate(record.items)
            ),
        )
        if record.index in indices
        else record
        for record in archive.records
    ]
    return replace(archive, records=tuple(records))


def test_a_single_item_cannot_be_removed_as_if_its_analyst_was_deleted(custodian: Custodian) -> None:
    """Else a custodian who is found out by a receipt could remove just what the receipt is compared with."""
    archive, others = custodian.archive(), custodian.receipt(ROUND, "ann", b"w" * 32)
    audit = verify(removing(archive, [6], "ann"), custodian.trusted, (), [others])
    assert failed_checks(audit)["A8"] == (
        "entry 6 of the log (round-sealed): the item of 'ann' was removed, but others of that analyst were not"
    )


def test_all_items_of_an_analyst_are_withheld_only_once_the_log_says_that_it_was_deleted(
    custodian: Custodian,
) -> None:
    """Else a custodian could remove all that a receipt is compared with, of somebody who is still there."""
    archive, others = custodian.archive(), custodian.receipt(ROUND, "ann", b"w" * 32)
    audit = verify(removing(archive, range(len(archive.records)), "ann"), custodian.trusted, (), [others])
    assert failed_checks(audit) == {
        "A12": "entry 5 of the log (round-opened): the item of 'ann' is withheld, as only a deleted analyst's may "
        "be, but the log does not say that 'ann' was deleted"
    }
    custodian.revoke("ann", "deleted")
    archive = custodian.archive()
    audit = verify(removing(archive, range(len(archive.records)), "ann"), custodian.trusted, (), [others])
    assert not failed_checks(audit)
    (receipts,) = [check for check in audit.checks if check.number == "A11"]
    assert receipts.outcome is Outcome.NOT_CHECKED
    assert receipts.detail.startswith(f"only hashes are left of 'ann' in the round {ROUND}")


@pytest.mark.slow
@pytest.mark.thin(2)
@pytest.mark.parametrize("file", ["checkpoint", "leaves.jsonl", "records.jsonl", "journal.jsonl"])
def test_any_bit_that_is_flipped_is_found(
    custodian: Custodian, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what is signed; each time another, at random."""
    # One accountant is enough here.
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    write_archive(custodian.archive(), tmp_path / "archive")
    path = tmp_path / "archive" / file
    whole = path.read_bytes()
    drawn = random.Random(os.urandom(8))
    for _ in range(25):
        bit = drawn.randrange(8 * len(whole))
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            audit = verify(read_archive(tmp_path / "archive"), custodian.trusted)
        except VerificationFailed:
            continue
        assert not audit.passed, f"bit {bit} of {file}"
    path.write_bytes(whole)
    assert verify(read_archive(tmp_path / "archive"), custodian.trusted).passed
