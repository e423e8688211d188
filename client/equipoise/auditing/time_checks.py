"""The parts of A8 and A11 about times: a round's follow one another, none is dated back, and none is yet to come.

Only times are compared that a server writes by a clock that it trusts: those of openings, seals, releases and
receipts. While a server runs, such a clock differs by an hour at most from the seconds that have passed. At a start
it is an hour at most behind the time that was recorded last, which is at most ten minutes old. So what is written
later is dated earlier by less than `ALLOWED`. Other times are the clock's own, and are compared with nothing here:
those of aborts, of runs, of accounts and caps, of registrations and identities.

A clock that was set back by more, and that the holder of the server confirmed, fails these checks, too.
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

ALLOWED = 3 * 3600 * 1_000_000  # microseconds


@dataclass(frozen=True)
class _Dated:
    """A step with its time, and its place: the newest entry of the budget journal that was there, and the log's."""

    step: Step
    time: int
    place: tuple[int, int]

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
    dated: list[_Dated] = []
    for history in recorded.rounds.values():
        own = _dated(history)
        for before, after in pairwise(own):
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
        if each.time > to_microseconds(archive.time) + ALLOWED:
            raise VerificationFailed(
                f"{each.step}: is dated {_said(each.time)}, but the archive was downloaded at "
                f"{archive.time:%Y-%m-%d %H:%M:%S} UTC: a time is false, or one of the two clocks is wrong"
            )
        if newest is not None:
            each.require_after(newest)
        if newest is None or each.time > newest.time:
            newest = each


def check_taken(history: RecordedRound, analyst: str, time: int) -> None:
    """Check that a receipt was signed while its round was open.

    Args:
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
    if time < opened - ALLOWED:
        raise VerificationFailed(f"{history.opened}: {dated}, before the opening at {_said(opened)}")
    if sealed is not None and time > sealed + turn + ALLOWED:
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
