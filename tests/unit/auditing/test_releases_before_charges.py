"""A release commits to a state of the budget journal in which all of its charges are settled."""

from __future__ import annotations

import pytest
from harness.audit_failures import failures
from harness.custodian import Custodian

from equipoise.model.accounts import JournalEntry


@pytest.mark.parametrize("behind", [0, 1, 2, 3])
def test_a_release_that_commits_to_an_entry_before_its_last_charge_is_found(
    custodian: Custodian, behind: int
) -> None:
    custodian.play("bb")
    entry: JournalEntry = custodian.journal[-1 - behind]
    custodian.change_last("spending", journal={"sequence": entry.sequence, "digest": entry.digest.hex()})
    problem = failures(custodian).get("A8", "")
    assert ("comes before its charges are settled in the budget journal" in problem) is (behind > 0)
    assert bool(problem) is (behind > 0)
