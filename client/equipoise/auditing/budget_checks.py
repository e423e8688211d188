"""A5 to A7: the budget journal is one chain, its charges are what they are made of, and no cap was exceeded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from equipoise.accounting import Cost
from equipoise.auditing.accounts import WORST, Accounts, Moment
from equipoise.auditing.conversion import epsilon_of
from equipoise.auditing.steps import Step
from equipoise.errors import DataLoss, VerificationFailed
from equipoise.journal import START, verify
from equipoise.views import JournalEntry


def check_journal(journal: Sequence[JournalEntry], steps: Sequence[Step]) -> None:
    """A5: every entry is hashed onto the one before, and what the log commits to are digests of this chain."""
    try:
        verify(journal)
    except DataLoss as error:
        raise VerificationFailed(error.message) from None
    for step in steps:
        for fields in step.first.values():
            if "journal" in fields:
                _check_head(journal, fields["journal"], step)


def _check_head(journal: Sequence[JournalEntry], head: dict[str, Any], step: Step) -> None:
    sequence = head["sequence"]
    if sequence > len(journal):
        raise VerificationFailed(
            f"the budget journal has {len(journal)} entries, but {step} commits to {sequence}: some were dropped"
        )
    digest = journal[sequence - 1].digest if sequence else START
    if digest.hex() != head["digest"]:
        raise VerificationFailed(f"the budget journal is not the one that {step} commits to, at entry {sequence}")


def check_charges(journal: Sequence[JournalEntry]) -> Accounts:
    """A6: every charge is the sum of its parts, as the functions of `equipoise.accounting` add them up."""
    accounts = Accounts()
    for moment in accounts.moments(journal):
        entry, account = moment.entry, moment.account
        if entry.action == "reserve" and not account.is_made_of_parts(entry.round_id):
            raise VerificationFailed(
                f"entry {entry.sequence} of the budget journal charges {account.name} something else than "
                "what its parts come to"
            )
    return accounts


def check_caps(journal: Sequence[JournalEntry]) -> list[str]:
    """A7: whatever was reserved, and whatever cap was set, at that moment all that counted was within the cap.

    What was written off after a loss may have been spent and may be beyond the cap; it is remarked, not refused.
    """
    remarks = []
    for moment in Accounts().moments(journal):
        entry, account = moment.entry, moment.account
        match entry.action:
            case "reserve" if account.composition == WORST:
                _require_room(moment, [entry.cost])
            case "reserve":
                _require_room(moment, [account.committed])
            case "set-cap" if account.composition == WORST:
                _require_room(moment, [cost for cost in account.live if cost not in account.lost])
            case "set-cap" if not account.lost:
                _require_room(moment, [account.committed])
            case "write-off":
                remarks.append(f"entry {entry.sequence}: on {account.name} something was written off after a loss")
            case _:
                pass
    return remarks


def _require_room(moment: Moment, totals: Iterable[Cost]) -> None:
    entry, account = moment.entry, moment.account
    for total in totals:
        if not account.holds(total):
            reached = epsilon_of(total, account.cap.delta, account.order)
            raise VerificationFailed(
                f"entry {entry.sequence} of the budget journal takes {account.name} to epsilon {reached:.6g} "
                f"at delta {account.cap.delta:g}, beyond its cap of {account.cap.epsilon:g}"
            )
