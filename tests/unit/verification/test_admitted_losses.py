"""What the log admits to be lost: which checkpoints it covers, what it says in words, and no forged bit of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.record_items import forge_item
from harness.small_custodian import DEPLOYMENT, TIME, Custodian, Told, signing_key
from harness.verifying import KEY, papers

from equipoise.errors import VerificationFailed
from equipoise.records.admitted_losses import AdmittedLosses
from equipoise.records.evidence import OpenedRecord
from equipoise.records.record import Audience, Kind, key_id, make_record
from equipoise.records.signed_notes import Checkpoint, SigningKey, claimed, sign_note
from equipoise.verification.admitted_losses import admitted_loss, signers_of
from equipoise.verification.checks import Check, CheckFailed, verify
from equipoise.verification.log_history import EarlierCheckpoint

LEFT, LOST = 5, 9  # entries that the older copy had, and that the lost log had


def log_before() -> Custodian:
    """The log that was lost: the older copy's entries are its first ones."""
    log = Custodian()
    log.grow(LOST)
    return log


def restored(lost: Custodian, left: int = LEFT, size: int = LOST) -> tuple[Custodian, AdmittedLosses]:
    """The log after a restoration of a copy with so many entries, and what it shows of the loss."""
    log = Custodian(leaves=lost.leaves[:left])
    if left > LOST:
        log.grow(left - LOST)
    root = claimed(lost.checkpoint(size)).root
    told = {"lost_size": size, "lost_root": root.hex(), "time": TIME}
    first = make_record(Kind.LOG_RESTORED, [forge_item("restoration", Audience.ROUND, told)])
    index = log.append(first)
    log.grow(max(0, size - left))
    return log, shown(log, (log.opened(first, index, (0,)),))


def shown(log: Custodian, records: tuple[OpenedRecord, ...]) -> AdmittedLosses:
    keys = tuple(sorted(key.verifier.to_text() for key in log.keys))
    return AdmittedLosses(DEPLOYMENT, log.checkpoint(), keys, records)


def test_every_state_of_the_lost_part_is_covered_and_no_other() -> None:
    lost = log_before()
    _, losses = restored(lost)
    for size in range(LEFT + 1, LOST + 1):
        said = admitted_loss(losses, lost.checkpoint(size), [KEY])
        assert said.startswith(
            f"entry {LEFT} of the log, of 2023-11-14 22:13:20 UTC, says that the custodian's store"
        )
        assert f"the log of {LOST} entries with the root" in said
        assert said.endswith(f"up to its first {LEFT} entries the log is the same as before")
    lost.grow(1)
    assert admitted_loss(losses, lost.checkpoint(), [KEY]) == ""  # more than was lost
    forked = Custodian()
    forked.grow(LOST)
    forked.leaves[0] = forked.leaves[1]
    for size in range(1, LEFT + 1):
        assert admitted_loss(losses, forked.checkpoint(size), [KEY]) == ""  # what the copy had must be there
    assert admitted_loss(losses, forked.checkpoint(LOST), [KEY]) == ""  # another log of that size


def test_where_both_copies_went_on_nobody_knows_from_where() -> None:
    lost = log_before()
    _, losses = restored(lost, left=LOST + 3)
    assert "does not say up to which entry" in admitted_loss(losses, lost.checkpoint(2), [KEY])
    assert admitted_loss(losses, lost.checkpoint(LOST), [KEY])
    lost.grow(1)
    assert admitted_loss(losses, lost.checkpoint(), [KEY]) == ""


def retired(number: int = 1, purpose: str = "log") -> tuple[Custodian, AdmittedLosses]:
    """A log whose key of this number signs no more, as after the loss of a guard: key 2 signs alone."""
    key = signing_key(number).verifier
    log = Custodian([signing_key(2)])
    log.grow(LEFT)
    item = {"purpose": purpose, "public": key.public.hex(), "id": key_id(key.public), "time": TIME}
    record = make_record(Kind.KEY_RETIRED, [forge_item("key", Audience.ROUND, item)])
    index = log.append(record)
    return log, shown(log, (log.opened(record, index, (0,)),))


def test_a_checkpoint_of_retired_keys_alone_is_covered_in_other_words() -> None:
    before = log_before().checkpoint()
    _, losses = retired()
    new = signing_key(2).verifier
    said = admitted_loss(losses, before, [new])
    assert said.startswith(f"entry {LEFT} of the log, of 2023-11-14 22:13:20 UTC, says that the key")
    assert "signs no more; no record says how much of the log was lost, or whether anything was" in said
    # Another key has signed, too, which is in force; or the retired key is an auditor's; or it still signs.
    both = sign_note(claimed(before).to_text(), [signing_key(1), signing_key(2)])
    assert admitted_loss(losses, both, [new]) == ""
    _, of_auditors = retired(purpose="auditor")
    assert admitted_loss(of_auditors, before, [KEY, new]) == ""
    log, ended = retired()
    still = Custodian([signing_key(1)], log.leaves)
    assert admitted_loss(shown(still, ()), before, [KEY]) == ""
    # The log says that the key is retired, and yet it signs on.
    still = Custodian([signing_key(1), signing_key(2)], log.leaves)
    assert admitted_loss(shown(still, ended.records), before, [KEY]) == ""


def test_what_is_shown_must_be_proven() -> None:
    lost = log_before()
    log, losses = restored(lost)
    kept = lost.checkpoint()
    (record,) = losses.records
    (item,) = record.items
    forged = item.content.replace(str(LOST).encode(), str(LOST + 1).encode())
    for wrong in (
        replace(losses, records=(replace(record, items=(replace(item, content=forged),)),)),
        replace(losses, records=(replace(record, index=record.index - 1),)),
        replace(losses, records=(replace(record, items=()),)),
        replace(losses, records=(record, record)),
        replace(losses, deployment="fedcba9876543210"),
        replace(losses, checkpoint=log.checkpoint(LEFT)),
        replace(losses, checkpoint=sign_note(claimed(losses.checkpoint).to_text(), [signing_key(7)])),
        replace(losses, records=(log_of_a_round(log),)),
    ):
        with pytest.raises(VerificationFailed):
            admitted_loss(wrong, kept, [KEY])
    assert AdmittedLosses.from_bytes(losses.to_bytes()) == losses


def log_of_a_round(log: Custodian) -> OpenedRecord:
    """A record of another kind, opened."""
    item = forge_item("destruction", Audience.ROUND, {"round": "ab" * 16, "time": TIME})
    record = make_record(Kind.SEED_DESTROYED, [item])
    return log.opened(record, log.append(record), (0,))


def test_a_checkpoint_of_another_log_or_by_another_key_is_not_asked_about() -> None:
    lost = log_before()
    _, losses = restored(lost)
    foreign = SigningKey("equipoise/fedcba9876543210", signing_key(1).private)
    other = Checkpoint(foreign.name, LOST, bytes(32)).to_text()
    for note in (sign_note(other, [foreign]), sign_note(claimed(lost.checkpoint()).to_text(), [signing_key(7)])):
        with pytest.raises(VerificationFailed):
            admitted_loss(losses, note, [KEY])
    assert signers_of(lost.checkpoint(), [KEY, signing_key(2).verifier]) == [KEY]


def last_check(lost: Custodian, log: Custodian, losses: AdmittedLosses | None, *accepted: str) -> str:
    """What check 13 says of a round that was held after the restoration."""
    said: dict[Check, str] = {}
    kept = papers(
        checkpoint=EarlierCheckpoint(lost.checkpoint()), losses=losses, accepted=dict.fromkeys(accepted, LOST)
    )
    try:
        verify(Told().bundle(log).to_bytes(), kept, said.__setitem__)
    except CheckFailed as failed:
        said[failed.check] = failed.problem
    return said[Check.HISTORY]


def test_the_last_check_tells_the_way_on_and_names_what_was_accepted() -> None:
    lost = log_before()
    root = claimed(lost.checkpoint()).root.hex()
    log, losses = restored(lost)
    assert last_check(lost, log, None).endswith("then make it again there")
    said = last_check(lost, log, losses)
    assert said.startswith("nothing connects the checkpoint")
    assert f"But entry {LEFT} of the log" in said
    assert said.endswith(f"if you accept that loss: equipoise accept-loss {'ab' * 16} {root}")
    named = f"lost, as you have accepted: the log of {LOST} leaves ({root[:16]}...)"
    assert last_check(lost, log, losses, root).endswith(f"no other checkpoint was given; {named}")
    assert last_check(lost, log, losses, "00" * 32).endswith(root)
    silent = last_check(lost, log, shown(log, ()))
    assert silent.endswith("The log admits no loss of it: keep your checkpoint and this bundle, which are evidence")
    assert "is no proof: " in last_check(lost, log, replace(losses, deployment="other"))
