"""Which commitment an auditor's seed is compared with: that of the round's one opening in the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pytest
from harness.custodian import Custodian

from equipoise.auditing.archive import Archive
from equipoise.auditing.opened_seeds import recorded_seed
from equipoise.clients.auditor import Auditor
from equipoise.errors import NotFound, VerificationFailed
from equipoise.model.log import RecordOpening

FIRST, LATER = "aa", "cc"


@dataclass(frozen=True)
class Shown:
    """What a custodian shows to an auditor who asks for the log."""

    archive: Archive

    def checkpoint(self) -> bytes:
        return self.archive.checkpoint

    def leaves(self) -> Iterator[bytes]:
        return iter(self.archive.leaves)

    def records(self) -> Iterator[RecordOpening]:
        return iter(self.archive.records)


def shown(custodian: Custodian) -> Auditor:
    return cast(Auditor, Shown(custodian.archive()))


@pytest.fixture
def custodian() -> Custodian:
    made = Custodian()
    made.register()
    for name in (FIRST, LATER):
        made.open(name)
    return made


def test_a_seed_is_compared_with_the_opening_of_its_own_round(custodian: Custodian) -> None:
    for name in (FIRST, LATER):
        found = recorded_seed(shown(custodian), custodian.trusted, name)
        assert found.round_id == name
        assert name.encode() in custodian.records[found.opening.index].items[0].content
    with pytest.raises(NotFound, match="no such round"):
        recorded_seed(shown(custodian), custodian.trusted, "dd")


def test_a_round_that_is_opened_twice_has_two_commitments_and_is_refused(custodian: Custodian) -> None:
    """Else a custodian could seal the one seed to an auditor and compute with the other."""
    custodian.open(FIRST)
    custodian.change_last("round", seed_commitment="ab" * 32)
    with pytest.raises(VerificationFailed, match=f"the round {FIRST} is opened twice"):
        recorded_seed(shown(custodian), custodian.trusted, FIRST)
    assert recorded_seed(shown(custodian), custodian.trusted, LATER).round_id == LATER
