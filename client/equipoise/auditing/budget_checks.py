"""A5 to A7: the budget journal is one chain, its charges are what they are made of, and no cap was exceeded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from equipoise.accounting import Cost
from equipoise.auditing.accounts import SUM, WORST, Accounts, Moment
from equipoise.auditing.steps import Step
from equipoise.errors import DataLoss, VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.model.journal import START, verify
from equipoise.records.item_parts import JournalHead
from equipoise.verification.conversion import epsilon_of


def check_journal(journal: Sequence[JournalEntry], steps: Sequence[Step]) -> None:
    """A5: every entry is hashed onto the one before, and what the log commits to are digests of this chain.

    Args:
        journal: all entries, in order.
        steps: all steps of the log, in order.

    Raises:
        VerificationFailed: the chain is broken, or a step commits to another digest.
    """
    try:
        verify(journal)
    except DataLoss as error:
        raise VerificationFailed(error.message) from None
    for step in steps:
        if step.journal is not None:
            _check_head(journal, step.journal, step)


def _check_head(journal: Sequence[JournalEntry], head: JournalHead, step: Step) -> None:
    sequence = head.sequence
    if sequence > len(journal):
        raise VerificationFailed(
            f"the budget journal has {len(journal)} entries, but {step} commits to {sequence}: some were dropped"
        )
    digest = journal[sequence - 1].digest if sequence else START
    if digest != head.digest:
        raise VerificationFailed(f"the budget journal is not the one that {step} commits to, at entry {sequence}")


def check_charges(journal: Sequence[JournalEntry]) -> Accounts:
    """A6: every charge is the sum of its parts, as the functions of `equipoise.accounting` add them up."""
    accounts = Accounts()
    for moment in accounts.moments(journal):
        entry, account = moment.entry, moment.account
        if entry.action in ("reserve", "reduce") and not account.is_made_of_parts(entry.round_id):
            raise VerificationFailed(
                f"entry {entry.sequence} of the budget journal charges {account.name} an amount that differs "
                "from the sum of its parts"
            )
    return accounts


def check_caps(journal: Sequence[JournalEntry]) -> list[str]:
    """A7: whatever was reserved, and whatever cap was set, at that moment all that counted was within the cap.

    Only what one person can be hidden in one round of may count by its worst round: an analyst's single statements.
    What was written off after a loss may have been spent and may be beyond the cap; it is remarked, not refused, as
    are caps that were changed.
    """
    remarks = []
    for moment in Accounts().moments(journal):
        entry, account = moment.entry, moment.account
        match entry.action:
            case "open-account":
                _require_composition(moment)
            case "reserve" if account.composition == WORST:
                _require_room(moment, [entry.cost])
            case "reserve":
                _require_room(moment, [account.committed])
            case "set-cap":
                if not account.lost:
                    _require_room(moment, account.totals)
                cap = f"epsilon {account.cap.epsilon:g} at delta {account.cap.delta:g}"
                remarks.append(f"entry {entry.sequence}: the cap of {account.name} was set to {cap}")
            case "write-off":
                remarks.append(f"entry {entry.sequence}: on {account.name} something was written off after a loss")
            case _:
                pass
    return remarks


def _require_composition(moment: Moment) -> None:
    kind, _, rest = moment.account.name.partition("/")
    unit = rest.split("/")[1] if kind == "analyst" and rest.count("/") == 2 else ""
    if moment.account.composition != (WORST if unit == "query" else SUM):
        raise VerificationFailed(
            f"entry {moment.entry.sequence} of the budget journal opens {moment.account.name} so that rounds do "
            "not add up as they must"
        )


def _require_room(moment: Moment, totals: Iterable[Cost]) -> None:
    entry, account = moment.entry, moment.account
    for total in totals:
        if not account.holds(total):
            reached = epsilon_of(total, account.cap.delta, account.order)
            raise VerificationFailed(
                f"entry {entry.sequence} of the budget journal takes {account.name} to epsilon {reached:.6g} "
                f"at delta {account.cap.delta:g}, beyond its cap of {account.cap.epsilon:g}: "
                f"{account.counted.in_words}"
            )
