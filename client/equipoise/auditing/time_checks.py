"""The parts of A8 and A11 about times: a round's follow one another, none is dated back, and none is yet to come.

Only times are compared that a server writes by a clock that it trusts: those of openings, seals, releases and
receipts. While a server runs, such a clock differs by an hour at most from the seconds that have passed. At a start
it is an hour at most behind the time that was recorded last, which is at most ten minutes old. So what is written
later is dated earlier by less than `ALLOWED`. Other times are compared with nothing here: those of identities, and
of what the holder of the state directory does, may be those of a clock that is not trusted.

A clock that was set back by more is trusted again once the holder of the state directory has confirmed it. The
confirmation is on record. Later times may be earlier than those before it, and the audit has a remark on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from equipoise.auditing.archive import Archive
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.model.times import from_microseconds, to_microseconds
from equipoise.records.items import ReservationItem, SpendingItem
from equipoise.records.log_items import ConfirmationItem

ALLOWED = 3 * 3600 * 1_000_000  # microseconds


@dataclass(frozen=True)
class _Dated:
    """A step with its time, and its place: the newest entry of the budget journal that was there, and the log's."""

    step: Step
    time: int
    place: tuple[int, int]
    confirms: bool = False  # what follows may be dated earlier

    def require_after(self, before: _Dated) -> None:
        """Raise `VerificationFailed` if it is dated before what came before it."""
        if self.time < before.time - ALLOWED:
            raise VerificationFailed(
                f"{self.step}: is dated {_said(self.time)}, but came after {before.step}, which is dated "
                f"{_said(before.time)}: a time is false, or the server's clock was set back by more than 3 hours"
            )


def check_times(archive: Archive, recorded: Recorded) -> None:
    """Check that rounds were opened, sealed and released in the order of their times, and before the download.

    Args:
        archive: with the time of its download.
        recorded: all rounds on record.

    Raises:
        VerificationFailed: naming the first time that cannot be.
    """
    dated = [
        _Dated(step, (told := step.one(ConfirmationItem)).time, (told.journal.sequence, step.index), confirms=True)
        for step in recorded.confirmations
    ]
    confirmed = [each.place for each in dated]
    for history in recorded.rounds.values():
        own = _dated(history)
        for before, after in pairwise(own):
            if not any(before.place <= each <= after.place for each in confirmed):
                after.require_after(before)
        opened, closed = history.terms.open_time, history.terms.close_time
        # The closing time is compared with the clock before a round is planned, which may take minutes.
        if closed is not None and closed < opened - ALLOWED:
            raise VerificationFailed(
                f"{history.opened}: the round closes at {_said(closed)}, before it is opened at {_said(opened)}"
            )
        dated += own
    newest: _Dated | None = None
    for each in sorted(dated, key=lambda each: each.place):
        set_right = any(each.place < later for later in confirmed)
        if each.time > to_microseconds(archive.time) + ALLOWED and not set_right:
            raise VerificationFailed(
                f"{each.step}: is dated {_said(each.time)}, but the archive was downloaded at "
                f"{archive.time:%Y-%m-%d %H:%M:%S} UTC: a time is false, or one of the two clocks is wrong"
            )
        if newest is not None and not each.confirms:
            each.require_after(newest)
        if newest is None or each.confirms or each.time > newest.time:
            newest = each


def clock_remarks(recorded: Recorded) -> list[str]:
    """Remarks on clocks that were confirmed: times may have been set back there as far as they say."""
    remarks = []
    for step in recorded.confirmations:
        told = step.one(ConfirmationItem)
        before = "no time" if told.before is None else _said(told.before)
        remarks.append(
            f"{step}: the server's clock was confirmed at {_said(told.time)}, where {before} was recorded"
        )
    return remarks


def check_taken(recorded: Recorded, history: RecordedRound, analyst: str, time: int) -> None:
    """Check that a receipt was signed while its round was open.

    An analyst's receipts have ever later times, also after a clock was set back and confirmed.

    Args:
        recorded: all that is on record, with the confirmations of clocks.
        history: the round on record.
        analyst: whose receipt it is, for errors.
        time: of the receipt, in microseconds since 1970: when it was signed or, in a session by turns, when the
            answer is due, at the end of the turn in which it was signed.

    Raises:
        VerificationFailed: the receipt is dated before the opening, or after the seal.
    """
    opened, sealed = history.terms.open_time, history.seal_time
    dated = f"a receipt of {analyst!a} is dated {_said(time)}"
    turn = 0 if history.session is None else history.session.turn_seconds * 1_000_000
    told = [(step.index, step.one(ConfirmationItem)) for step in recorded.confirmations]
    first = min([opened, *(each.time for index, each in told if index > history.opened.index)])
    if time < first - ALLOWED:
        raise VerificationFailed(f"{history.opened}: {dated}, before the opening at {_said(opened)}")
    if history.sealed is None or sealed is None:
        return
    last = max([sealed, *(each.before or 0 for index, each in told if index < history.sealed.index)])
    if time > last + turn + ALLOWED:
        raise VerificationFailed(f"{history.sealed}: {dated}, after the seal at {_said(sealed)}")


def _dated(history: RecordedRound) -> Sequence[_Dated]:
    opened, sealed, ended = history.opened, history.sealed, history.ended
    found = [_Dated(opened, history.terms.open_time, (history.plan.journal.sequence, opened.index))]
    if sealed is not None:
        sealing = sealed.one(ReservationItem)
        found.append(_Dated(sealed, sealing.seal_time, (sealing.journal.sequence, sealed.index)))
    if ended is not None and history.release is not None:
        spending = ended.one(SpendingItem)
        # The newest entry is the end's own, so whatever else has it came later. A release may enter the log long
        # after the end, and other rounds before it.
        found.append(_Dated(ended, spending.commit_time, (spending.journal.sequence, -1)))
    return found


def _said(time: int) -> str:
    return f"{from_microseconds(time):%Y-%m-%d %H:%M:%S} UTC"
