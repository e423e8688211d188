"""Every checkpoint that was seen before must be of the log, wherever it stands among those that are."""

from __future__ import annotations

import pytest
from harness.audit_failures import failures
from harness.custodian import Custodian
from harness.record_book import ORIGIN

from equipoise.records.merkle import leaf_hash, root_of
from equipoise.records.signed_notes import Checkpoint, sign_note


@pytest.mark.parametrize("place", range(3))
def test_a_forked_checkpoint_is_found_before_between_and_behind_good_ones(custodian: Custodian, place: int) -> None:
    good = custodian.checkpoint()
    forked = sign_note(Checkpoint(ORIGIN, 1, root_of([leaf_hash(b"another")])).to_text(), custodian.keys)
    custodian.play("bb")
    assert failures(custodian, seen=[good, good]) == {}
    seen = [good, good]
    seen.insert(place, forked)
    assert "the first 1 leaves are not those of the checkpoint" in failures(custodian, seen=seen)["A3"]
