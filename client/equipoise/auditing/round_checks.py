"""A8: rounds went their way, and the budget journal with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from equipoise.auditing.archive import Archive, ListedRound
from equipoise.auditing.rounds import Charges, Recorded, RecordedRound, recorded_charges
from equipoise.auditing.session_checks import check_started
from equipoise.auditing.steps import Step, newest_head
from equipoise.auditing.time_checks import ALLOWED
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import JournalEntry
from equipoise.model.rounds import GRANT
from equipoise.model.times import to_microseconds
from equipoise.records.item_parts import NOTHING_CHARGED
from equipoise.records.items import AbortItem, ReleaseItem, ReservationItem, SettlementItem, SpendingItem

ACTIONS = ("reserve", "run", "reduce", "spend", "release")
# States of the log that are further than what was listed before it was read.
_FURTHER = {
    ("sealed", "open"),
    ("aborted", "open"),
    ("released", "open"),
    ("aborted", "sealed"),
    ("released", "sealed"),
}


def check_rounds(archive: Archive, steps: Sequence[Step], recorded: Recorded) -> None:
    """A8: every round that is listed or charged is recorded, with the journal's entries at each of its steps.

    Args:
        archive: with the journal, which may be newer than the log, and the list of rounds.
        steps: of the log.
        recorded: what they say of rounds.

    Raises:
        VerificationFailed: naming the first round that is not on record as it is listed and charged.
    """
    _check_removed(recorded)
    if len({each.id for each in archive.rounds}) != len(archive.rounds):
        raise VerificationFailed("a round is listed twice")
    for each in archive.rounds:
        if problem := behind(each, recorded, archive.time):
            raise VerificationFailed(problem)
    newest = newest_head(steps)
    entries: dict[str, list[JournalEntry]] = {}
    for entry in archive.journal:
        entries.setdefault(entry.round_id, []).append(entry)
    for round_id in entries:
        if round_id and round_id not in recorded.rounds:
            raise VerificationFailed(f"the round {round_id} is in the budget journal, but is not recorded")
    for round_id, history in recorded.rounds.items():
        own = entries.get(round_id, [])
        _check_recorded(history, [each for each in own if each.sequence <= newest], archive.time)
        _check_entries(history, own)


def _check_removed(recorded: Recorded) -> None:
    """Whoever is deleted is so in all that is recorded: no single item can be taken out of sight."""
    there: set[str] = set()
    removed: dict[str, Step] = {}
    for history in recorded.rounds.values():
        for step, analyst, shown in history.shown:
            if shown:
                there.add(analyst)
            else:
                removed.setdefault(analyst, step)
    for analyst, step in removed.items():
        if analyst in there:
            raise VerificationFailed(
                f"{step}: the item of {analyst!a} was removed, but others of that analyst were not"
            )


def behind(listed: ListedRound, recorded: Recorded, now: datetime) -> str:
    """Returns how the records of a round fall behind what the server listed before; empty if they do not.

    Args:
        listed: the round as the server listed it when the archive was downloaded.
        recorded: all rounds on record.
        now: when the archive was downloaded. A release enters the log at its release time only.
    """
    history = recorded.rounds.get(listed.id)
    if history is None:
        return f"the round {listed.id} is listed, but its opening is not recorded"
    if listed.dataset != history.terms.dataset:
        return f"the round {listed.id} is listed under another dataset than the one on record"
    if listed.open_time != history.terms.open_time:
        return f"the round {listed.id} is listed with another opening time than the one on record"
    released = None if history.ended is None else history.release
    if released is not None and listed.release_time not in (None, released.release_time):
        return f"the round {listed.id} is listed with another release time than the one on record"
    # A release enters the log at its release time.
    waits = listed.state == "released" and (listed.release_time or 0) > to_microseconds(now)
    wanted = "sealed" if waits or listed.state == "running" else listed.state
    if history.state == wanted or (history.state, wanted) in _FURTHER:
        return ""
    return f"the round {listed.id} is listed as {listed.state}, but recorded as {history.state}"


def _check_recorded(history: RecordedRound, entries: Sequence[JournalEntry], now: datetime) -> None:
    """Check that a round with charges that the log commits to is sealed on record, too.

    A step enters the log before those after it. If the clock was set back in between, it waits until its time. So
    what is dated within that time of the download is left to the next audit.
    """
    waits = timedelta(microseconds=ALLOWED)
    if history.sealed is None and history.ended is None:
        opening = () if history.session is None else ("reserve", "run")
        for each in entries:
            if each.action not in opening and abs(each.time - now) > waits:
                raise VerificationFailed(
                    f"the round {each.round_id} has an entry {each.action!a} in the budget journal, entry "
                    f"{each.sequence}, but it is not sealed on record, though later steps are on record"
                )


def _check_run(history: RecordedRound, run: Sequence[JournalEntry]) -> None:
    """A round is begun once, on its data account: when its worker starts again, nothing is journaled."""
    if run and [each.account for each in run] != [f"data/{history.account}"]:
        raise VerificationFailed(
            f"{history.opened}: the budget journal must say once that the round runs, on data/{history.account}, "
            f"but says it {len(run)} times, on {', '.join(each.account for each in run)}"
        )


def _check_entries(history: RecordedRound, entries: Sequence[JournalEntry]) -> None:
    """The journal at a round's steps: reserved until it was sealed, run after that, and settled until it ended."""
    by_action = {action: [each for each in entries if each.action == action] for action in ACTIONS}
    reserved, settled = _charges(by_action["reserve"]), _charges(by_action["spend"] + by_action["release"])
    _check_reduced(history, by_action["reduce"])
    _check_run(history, by_action["run"])
    if history.session is not None:
        check_started(history, by_action["reserve"], by_action["run"])
    if history.sealed is None:
        if history.ended is not None and history.session is None:
            _check_abort(history.ended, reserved, NOTHING_CHARGED)
        elif history.ended is not None:
            _check_abort(history.ended, settled, "spent")
            _require_until(history.ended, by_action["spend"])
        return
    sealing = history.sealed.one(ReservationItem)
    if recorded_charges(sealing.charges) != reserved:
        raise VerificationFailed(f"{history.sealed}: what it reserves differs from the budget journal")
    at_seal = sealing.journal.sequence
    if any(each.sequence > at_seal for each in by_action["reserve"]):
        raise VerificationFailed(f"{history.sealed}: comes before its reservation in the budget journal")
    if history.session is None:
        _require_time(history.sealed, sealing.seal_time, by_action["reserve"])
    before = ("reserve",) if history.session is None else ("reserve", "run")
    if any(each.sequence <= at_seal for each in entries if each.action not in before):
        raise VerificationFailed(f"{history.sealed}: data were touched, or charges settled, before it")
    run = min((each.sequence for each in by_action["run"]), default=None)
    if by_action["spend"] and (run is None or by_action["spend"][0].sequence < run):
        raise VerificationFailed(f"{history.sealed}: charges were spent, but the journal does not say that it ran")
    if history.ended is None:
        return
    if history.ended.kind == "round-released":
        _check_release(history, history.ended, by_action["reduce"] + by_action["spend"], settled)
    else:
        _check_abort(history.ended, settled, "spent" if run is not None else "released")
        ended = by_action["spend" if run is not None else "release"]
        _require_until(history.ended, ended)
        _require_time(history.ended, history.ended.one(AbortItem).abort_time, ended)


def _check_reduced(history: RecordedRound, reduced: Sequence[JournalEntry]) -> None:
    """Check that a grant gives back what it has not spent once, to its data account, when it is released."""
    if not reduced:
        return
    of_grant = history.terms.mechanism == GRANT and history.state != "aborted"
    if not of_grant or [each.account for each in reduced] != [f"data/{history.account}"]:
        raise VerificationFailed(f"{history.opened}: a charge was reduced, which only a grant's may be")


def _check_release(history: RecordedRound, ended: Step, settling: Sequence[JournalEntry], settled: Charges) -> None:
    spending, release = ended.one(SpendingItem), ended.one(ReleaseItem)
    spent = [each for each in settling if each.action == "spend"]
    if not spent or _charges(spent) != settled or recorded_charges(spending.charges) != settled:
        raise VerificationFailed(f"{ended}: what it spends differs from the budget journal")
    _require_until(ended, settling)
    _require_time(ended, spending.commit_time, settling)
    grid = history.terms.release_grid_seconds * 1_000_000
    if release.release_time < spending.commit_time or (grid and release.release_time % grid):
        raise VerificationFailed(
            f"{ended}: its release time is not a point of the round's release grid after its end"
        )
    if release.release_time - spending.commit_time > grid:
        raise VerificationFailed(
            f"{ended}: its release time is later than the first point of the release grid after its end"
        )


def _check_abort(ended: Step, settled: Charges, state: str) -> None:
    charges = ended.one(SettlementItem).charges
    if any(each.state != state for each in charges) or recorded_charges(charges) != settled:
        raise VerificationFailed(f"{ended}: what it settles differs from the budget journal")


def _require_until(step: Step, entries: Iterable[JournalEntry]) -> None:
    if step.journal is None or any(entry.sequence > step.journal.sequence for entry in entries):
        raise VerificationFailed(f"{step}: comes before its charges are settled in the budget journal")


def _require_time(step: Step, time: int, entries: Iterable[JournalEntry]) -> None:
    """Its entries are of its own transaction, and so of its time: none can be dated back, or on, by itself."""
    if any(to_microseconds(entry.time) != time for entry in entries):
        raise VerificationFailed(f"{step}: has another time than its charges in the budget journal")


def _charges(entries: Iterable[JournalEntry]) -> Charges:
    return {entry.account: entry.cost for entry in entries}
