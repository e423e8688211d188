"""`equipoise audit verify`: numbered checks of an archive, each of which answers one question of an auditor.

All of them are made, whatever comes of others; each names the first difference that it finds. A check that needs
what another could not establish is not made, and says so. `docs/auditing.md` explains every one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from equipoise.auditing.accounts import Account, Accounts
from equipoise.auditing.archive import Archive
from equipoise.auditing.budget_checks import check_caps, check_charges, check_journal
from equipoise.auditing.dataset_checks import (
    check_analyst_accounts,
    check_caps_accepted,
    check_data_accounts,
    counted_twice,
)
from equipoise.auditing.dp_accounting_check import NotInstalled, check_totals
from equipoise.auditing.identities import read_identities
from equipoise.auditing.identity_checks import check_identities, check_receipt_times, keys_of_auditors
from equipoise.auditing.log_checks import check_continuation, check_root, check_signatures
from equipoise.auditing.plan_checks import accepted_dangers, check_budgets
from equipoise.auditing.questions import QUESTIONS
from equipoise.auditing.receipt_checks import check_receipts
from equipoise.auditing.replay_checks import ReplayReport, check_replays
from equipoise.auditing.round_checks import check_rounds
from equipoise.auditing.rounds import Recorded, read_rounds
from equipoise.auditing.seed_checks import check_seeds
from equipoise.auditing.session_checks import unprotected
from equipoise.auditing.steps import Step, open_steps
from equipoise.auditing.time_checks import check_times, clock_remarks
from equipoise.errors import InvalidArgument, VerificationFailed
from equipoise.records.log_items import KeyItem, RestorationItem
from equipoise.records.signed_notes import Checkpoint, VerifierKey


class Outcome(StrEnum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        number: its number in docs/auditing.md, such as "A5".
        outcome: what came of it.
        detail: the first difference, or why the check was not made; empty where it passed.
    """

    number: str
    outcome: Outcome
    detail: str = ""

    @property
    def question(self) -> str:
        """The question that the check answers."""
        return QUESTIONS[self.number]


@dataclass
class Audit:
    """The results of an audit. What could not be established is None or empty."""

    archive: Archive
    checks: list[Check] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    known: list[VerifierKey] = field(default_factory=list)
    steps: tuple[Step, ...] | None = None
    recorded: Recorded | None = None
    accounts: Accounts | None = None

    @property
    def passed(self) -> bool:
        """Whether no check has failed."""
        return all(check.outcome is not Outcome.FAILED for check in self.checks)

    @property
    def standing(self) -> list[Account]:
        """The accounts by their names."""
        return [] if self.accounts is None else [each for _, each in sorted(self.accounts.by_name.items())]


class _NotMade(Exception):
    """A check cannot be made; says why."""


def verify(
    archive: Archive,
    trusted: Sequence[VerifierKey],
    seen: Sequence[bytes] = (),
    receipts: Sequence[bytes] = (),
    replays: Sequence[ReplayReport] = (),
) -> Audit:
    """Makes every check of an archive and returns their results. A check that fails raises nothing.

    Args:
        archive: what was downloaded.
        trusted: the custodian's keys, from a source that the auditor trusts.
        seen: checkpoints that anybody saw at any time, signed notes.
        receipts: envelopes that analysts received.
        replays: what replays of rounds reported.

    Raises:
        InvalidArgument: there are no keys, or they are not of one log.
    """
    if len({key.name for key in trusted}) != 1:
        raise InvalidArgument("key", "needs the custodian's verifier keys, all of one log")
    return _Verification(archive, trusted, seen, receipts, replays).run()


@dataclass
class _Verification:
    archive: Archive
    trusted: Sequence[VerifierKey]
    seen: Sequence[bytes]
    receipts: Sequence[bytes]
    replays: Sequence[ReplayReport]

    def run(self) -> Audit:
        audit = self.audit = Audit(self.archive)
        # The log names its own keys, so the records are opened before the signatures are looked at.
        opened = self._run_check("A4", self._open)
        self._make("A1", self._signatures)
        self._make("A2", self._root)
        self._make("A3", self._continuation)
        audit.checks.append(opened)
        self._make("A5", lambda: check_journal(self.archive.journal, self._steps()))
        self._make("A6", self._charges)
        self._make("A6b", self._library)
        self._make("A7", lambda: audit.remarks.extend(check_caps(self.archive.journal)))
        self._make("A8", self._rounds)
        self._make("A9", lambda: check_budgets(self._recorded(), self._accounts()))
        self._make("A10", self._seeds)
        self._make("A11", self._receipts)
        self._make("A12", self._identities)
        return audit

    def _make(self, number: str, check: Callable[[], None]) -> None:
        self.audit.checks.append(self._run_check(number, check))

    def _run_check(self, number: str, check: Callable[[], None]) -> Check:
        try:
            check()
        except VerificationFailed as error:
            return Check(number, Outcome.FAILED, error.message)
        except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
            # The custodian wrote the records, and nothing that it writes may end the audit without a report.
            return Check(number, Outcome.FAILED, "a record is malformed")
        except _NotMade as reason:
            return Check(number, Outcome.NOT_CHECKED, str(reason))
        return Check(number, Outcome.PASSED)

    def _open(self) -> None:
        self.audit.steps = open_steps(self.archive.records, self.archive.leaves)
        for step in self.audit.steps:
            if step.kind == "log-restored":
                lost = step.one(RestorationItem).lost_size
                self.audit.remarks.append(f"{step}: a log of size {lost} was lost, and restored from an older copy")
            if step.kind in ("key-added", "key-retired"):
                key = step.one(KeyItem)
                what = "added" if step.kind == "key-added" else "retired"
                self.audit.remarks.append(f"{step}: the {key.purpose} key {key.id.hex()} was {what}")
        for root, size in self.archive.own.losses.items():
            accepted = f"the auditor has accepted that the log of size {size} with the root {root} is lost"
            self.audit.remarks.append(accepted)
        removed = sum(each is None for step in self.audit.steps for each in step.record.items)
        if removed:
            self.audit.remarks.append(f"{removed} items of deleted analysts are left as hashes only")

    def _signatures(self) -> None:
        checked = check_signatures(self.archive.checkpoint, self.trusted, self.audit.steps)
        self.audit.checkpoint, self.audit.known = checked

    def _root(self) -> None:
        check_root(self._checkpoint(), self.archive.leaves)

    def _continuation(self) -> None:
        checkpoint = self._checkpoint()
        seen = [*self.seen, *([] if self.archive.earlier is None else [self.archive.earlier])]
        if not seen:
            raise _NotMade("no checkpoint was seen before; the next audit can compare with this one")
        steps = self.audit.steps or ()
        check_continuation(checkpoint, self.archive.leaves, seen, self.trusted, self.audit.known, steps)

    def _charges(self) -> None:
        self.audit.accounts = check_charges(self.archive.journal)

    def _library(self) -> None:
        try:
            check_totals(self._accounts().by_name)
        except NotInstalled:
            raise _NotMade("dp_accounting is not installed here: pip install 'equipoise[audit]'") from None

    def _rounds(self) -> None:
        journal, steps = self.archive.journal, self._steps()
        recorded = self.audit.recorded = read_rounds(steps)
        self.audit.remarks += [*unprotected(recorded), *accepted_dangers(recorded), *clock_remarks(recorded)]
        self.audit.remarks += counted_twice(journal, recorded)
        check_data_accounts(journal, steps, recorded)
        check_rounds(self.archive, steps, recorded)
        check_times(self.archive, recorded)
        check_analyst_accounts(journal, steps, recorded)
        self.audit.remarks += check_caps_accepted(journal, recorded)

    def _seeds(self) -> None:
        check_seeds(self._recorded(), self.archive.own)
        check_replays(self._steps(), self.replays)

    def _receipts(self) -> None:
        recorded = self._recorded()
        if not self.receipts:
            raise _NotMade("no receipts were given (--receipt)")
        removed = check_receipts(recorded, self.receipts, self.trusted, self.audit.known)
        if removed:
            raise _NotMade(f"only hashes are left of {', '.join(removed)}; no other receipt differs")

    def _identities(self) -> None:
        known = read_identities(self._steps())
        check_identities(self._recorded(), known, keys_of_auditors(self._steps()))
        check_receipt_times(known, self.receipts, self.trusted, self.audit.known)

    def _checkpoint(self) -> Checkpoint:
        if self.audit.checkpoint is None:
            raise _NotMade("A1 has failed")
        return self.audit.checkpoint

    def _steps(self) -> tuple[Step, ...]:
        if self.audit.steps is None:
            raise _NotMade("A4 has failed")
        return self.audit.steps

    def _recorded(self) -> Recorded:
        if self.audit.recorded is None:
            raise _NotMade("A4 or A8 has failed")
        return self.audit.recorded

    def _accounts(self) -> Accounts:
        if self.audit.accounts is None:
            raise _NotMade("A6 has failed")
        return self.audit.accounts
