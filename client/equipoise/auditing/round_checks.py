"""A8 to A11: rounds went their way, within their budgets, with seeds and receipts on record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from equipoise.accounting import Cost
from equipoise.auditing.accounts import Accounts, comes_to
from equipoise.auditing.archive import Archive, AuditorLog, ListedRound
from equipoise.auditing.rounds import Recorded, RecordedRound
from equipoise.auditing.session_checks import check_session_receipts, check_session_terms, check_started
from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import COUNTED_FOR, Budget, JournalEntry
from equipoise.model.times import to_microseconds
from equipoise.records.envelopes import claimed_type, open_envelope
from equipoise.records.evidence import log_origin
from equipoise.records.items import (
    NOTHING_CHARGED,
    AccountCharge,
    ChargeItem,
    DataItem,
    ReleaseItem,
    ReservationItem,
    ResultItem,
    SealItem,
    SettledCharge,
    SettlementItem,
    SpendingItem,
    WorkloadItem,
)
from equipoise.records.receipts import RECEIPT_TYPE, SESSION_RECEIPT_TYPE, ReceiptPayload
from equipoise.records.signed_notes import VerifierKey
from equipoise.verification.conversion import TOLERANCE, epsilon_of

Charges = dict[str, Cost]
ACTIONS = ("reserve", "run", "spend", "release")
# States of the log that are further than what was listed before it was read.
_FURTHER = {
    ("sealed", "open"),
    ("aborted", "open"),
    ("released", "open"),
    ("aborted", "sealed"),
    ("released", "sealed"),
}


def check_rounds(archive: Archive, recorded: Recorded) -> list[str]:
    """A8: every round that is listed or charged is recorded, with the journal's entries at each of its steps.

    Gives remarks on the datasets.
    """
    _check_removed(recorded)
    if len({each.id for each in archive.rounds}) != len(archive.rounds):
        raise VerificationFailed("a round is listed twice")
    for each in archive.rounds:
        if problem := behind(each, recorded, archive.time):
            raise VerificationFailed(problem)
    entries: dict[str, list[JournalEntry]] = {}
    for entry in archive.journal:
        entries.setdefault(entry.round_id, []).append(entry)
    for round_id in entries:
        if round_id and round_id not in recorded.rounds:
            raise VerificationFailed(f"the round {round_id} is in the budget journal, but is not recorded")
    for round_id, held in recorded.rounds.items():
        _check_entries(held, entries.get(round_id, []))
    return _same_data(recorded)


def _check_removed(recorded: Recorded) -> None:
    """Whoever is deleted is so in all that is recorded: no single item can be taken out of sight."""
    there: set[str] = set()
    removed: dict[str, Step] = {}
    for held in recorded.rounds.values():
        for step in (held.opened, held.sealed, held.ended):
            for analyst, item in zip(held.analysts, () if step is None else step.of_analysts, strict=False):
                if item is not None:
                    there.add(analyst)
                elif step is not None:
                    removed.setdefault(analyst, step)
    for analyst, step in removed.items():
        if analyst in there:
            raise VerificationFailed(
                f"{step}: the item of {analyst!a} was removed, but others of that analyst were not"
            )


def _same_data(recorded: Recorded) -> list[str]:
    """Whoever is in two datasets may lose both budgets."""
    holding: dict[bytes, list[str]] = {}
    for name, step in recorded.datasets.items():
        holding.setdefault(step.one(DataItem).digest, []).append(name)
    return [
        f"{', '.join(names)} hold the same data: what people in them may lose is the sum"
        for names in holding.values()
        if len(names) > 1
    ]


def behind(listed: ListedRound, recorded: Recorded, now: datetime) -> str:
    """How what is recorded of a round falls behind what the server listed before; empty where it does not."""
    held = recorded.rounds.get(listed.id)
    if held is None:
        return f"the round {listed.id} is listed, but its opening is not recorded"
    if listed.dataset != held.terms.dataset:
        return f"the round {listed.id} is listed of another dataset than is recorded"
    if listed.open_time != held.terms.open_time:
        return f"the round {listed.id} is listed with another opening time than is recorded"
    released = None if held.ended is None else held.release
    if released is not None and listed.release_time not in (None, released.release_time):
        return f"the round {listed.id} is listed with another release time than is recorded"
    # A release enters the log at its release time.
    waits = listed.state == "released" and (listed.release_time or 0) > to_microseconds(now)
    wanted = "sealed" if waits or listed.state == "running" else listed.state
    if held.state == wanted or (held.state, wanted) in _FURTHER:
        return ""
    return f"the round {listed.id} is listed as {listed.state}, but recorded as {held.state}"


def _check_entries(held: RecordedRound, entries: Sequence[JournalEntry]) -> None:
    """The journal at a round's steps: reserved until it was sealed, run after that, and settled until it ended."""
    by_action = {action: [each for each in entries if each.action == action] for action in ACTIONS}
    reserved, settled = _charges(by_action["reserve"]), _charges(by_action["spend"] + by_action["release"])
    if held.session is not None:
        check_started(held, by_action["reserve"], by_action["run"])
    if held.sealed is None:
        if held.ended is not None and held.session is None:
            _check_abort(held.ended, reserved, NOTHING_CHARGED)
        elif held.ended is not None:
            _check_abort(held.ended, settled, "spent")
            _require_until(held.ended, by_action["spend"])
        return
    sealing = held.sealed.one(ReservationItem)
    if _charges_told(sealing.charges) != reserved:
        raise VerificationFailed(f"{held.sealed}: reserves something else than the budget journal")
    at_seal = sealing.journal.sequence
    if any(each.sequence > at_seal for each in by_action["reserve"]):
        raise VerificationFailed(f"{held.sealed}: comes before its reservation in the budget journal")
    before = ("reserve",) if held.session is None else ("reserve", "run")
    if any(each.sequence <= at_seal for each in entries if each.action not in before):
        raise VerificationFailed(f"{held.sealed}: data were touched, or charges settled, before it")
    run = min((each.sequence for each in by_action["run"]), default=None)
    if by_action["spend"] and (run is None or by_action["spend"][0].sequence < run):
        raise VerificationFailed(f"{held.sealed}: the round's charges were spent, but that it ran is not journaled")
    if held.ended is None:
        return
    if held.ended.kind == "round-released":
        _check_release(held, held.ended, by_action["spend"], settled)
    else:
        _check_abort(held.ended, settled, "spent" if run is not None else "released")
        ended = by_action["spend" if run is not None else "release"]
        _require_until(held.ended, ended)


def _check_release(held: RecordedRound, ended: Step, spent: Sequence[JournalEntry], settled: Charges) -> None:
    spending, release = ended.one(SpendingItem), ended.one(ReleaseItem)
    if not spent or _charges(spent) != settled or _charges_told(spending.charges) != settled:
        raise VerificationFailed(f"{ended}: spends something else than the budget journal")
    _require_until(ended, spent)
    grid = held.terms.release_grid_seconds * 1_000_000
    if release.release_time < spending.commit_time or (grid and release.release_time % grid):
        raise VerificationFailed(f"{ended}: its release time is not a point of the round's grid after its end")


def _check_abort(ended: Step, settled: Charges, state: str) -> None:
    told = ended.one(SettlementItem).charges
    if any(each.state != state for each in told) or _charges_told(told) != settled:
        raise VerificationFailed(f"{ended}: settles something else than the budget journal")


def _require_until(step: Step, entries: Iterable[JournalEntry]) -> None:
    if step.journal is None or any(entry.sequence > step.journal.sequence for entry in entries):
        raise VerificationFailed(f"{step}: comes before its charges are settled in the budget journal")


def check_budgets(recorded: Recorded, accounts: Accounts) -> None:
    """A9: what a plan costs is within its round's budgets, and each share was charged just that, all alike."""
    for held in recorded.rounds.values():
        terms, plan = held.terms, held.plan.plan
        told = held.plan.terms
        planned = (told.unit, told.data_budget, told.analyst_budget, told.beta)
        if planned != (terms.unit, terms.data_budget, terms.analyst_budget, terms.beta):
            raise VerificationFailed(f"{held.opened}: the terms are not the public parameters")
        same = (plan.mechanism, plan.error_bound, plan.max_uncertified, plan.analyst_cost)
        public = (terms.mechanism, terms.error_bound, terms.max_uncertified, terms.analyst_cost)
        if same != public or json.loads(plan.analyst_events) != terms.analyst_events:
            raise VerificationFailed(f"{held.opened}: the plan is not the public parameters")
        missing = terms.analyst_budget is None
        if missing != (terms.analyst_cost is None) or (missing and held.session is None):
            raise VerificationFailed(
                f"{held.opened}: analysts have a cost without a budget, or a budget without a cost"
            )
        if held.session is not None:
            check_session_terms(held)
        _check_cost(held, "data", terms.data_budget, plan.data_cost, plan.data_events)
        if plan.analyst_cost is not None:
            _check_cost(held, "analyst", terms.analyst_budget, plan.analyst_cost, plan.analyst_events)
        _check_charged(held, accounts)
        dataset = recorded.datasets[terms.dataset]
        used = None if held.ended is None or held.release is None else held.ended.one(SpendingItem).data_digest
        if used not in (None, dataset.one(DataItem).digest):
            raise VerificationFailed(f"{held.ended}: was computed on other data than {dataset}")


def _check_cost(held: RecordedRound, side: str, budget: Budget | None, cost: Cost, events: str) -> None:
    if not comes_to(events, cost, None):
        raise VerificationFailed(f"{held.opened}: the {side} cost is not what its parts come to")
    if budget is None:
        raise VerificationFailed(f"{held.opened}: the plan has a cost of {side}s, for whom there is no budget")
    epsilon = epsilon_of(cost, budget.delta, None)
    if epsilon > budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(
            f"{held.opened}: the plan costs epsilon {epsilon:.6g} at delta {budget.delta:g}, beyond the round's "
            f"{side} budget of {budget.epsilon:g}"
        )


def _check_charged(held: RecordedRound, accounts: Accounts) -> None:
    """The data account and those of each share, by what the plan costs as each account counts.

    A round that protects all that an analyst asks protects each statement, and is counted for both. Where a session
    does not protect its analysts, the data account alone is charged.
    """
    charging = held.sealed if held.session is None else held.opened
    if charging is None:
        return
    terms, plan = held.terms, held.plan.plan
    charged_analysts = held.analysts if terms.analyst_budget is not None else []
    wanted = {f"data/{terms.dataset}": plan.data_events}
    prefix = f"analyst/{terms.dataset}/{terms.unit}/"
    wanted |= {
        f"analyst/{terms.dataset}/{unit}/{analyst}": plan.analyst_events
        for analyst in charged_analysts
        for unit in COUNTED_FOR.get(terms.unit, ())
    }
    charged = _charged_until_sealed(held, accounts)
    if charged.keys() != wanted.keys():
        raise VerificationFailed(f"{charging}: charges not just the data's account and those of each share")
    for name, events in wanted.items():
        account = accounts.by_name.get(name)
        if account is None or not comes_to(events, charged[name], account.order):
            raise VerificationFailed(f"{charging}: charges {name} something else than what the plan costs")
        if name.startswith(prefix) and account.order != terms.analyst_order:
            raise VerificationFailed(f"{held.opened}: {name} counts at another order than is told")
    if len({charged[prefix + analyst] for analyst in charged_analysts}) > 1:
        raise VerificationFailed(f"{charging}: does not charge all analysts alike")
    _check_told(held, {analyst: charged[prefix + analyst] for analyst in charged_analysts})


def _charged_until_sealed(held: RecordedRound, accounts: Accounts) -> Charges:
    """By the record of the seal, which is the journal's (A8); of a session that is not sealed, by the journal."""
    if held.sealed is not None:
        return _charges_told(held.sealed.one(ReservationItem).charges)
    round_id = held.terms.round_id
    return {
        account.name: account.charges[round_id].cost
        for account in accounts.by_name.values()
        if round_id in account.charges
    }


def _check_told(held: RecordedRound, charged: Mapping[str, Cost]) -> None:
    """What each analyst is told that it was charged, is what its account was charged: nothing where it was not."""
    if held.ended is None:
        return
    for item in held.ended.of_analysts:
        if not isinstance(item, ResultItem | ChargeItem):
            continue
        cost = charged.get(item.analyst)
        uncharged = isinstance(item, ChargeItem) and item.state == NOTHING_CHARGED
        if item.charge != (cost or Cost()) or (cost is not None and uncharged):
            raise VerificationFailed(f"{held.ended}: {item.analyst!a} is told of another charge than was made")


def check_seeds(recorded: Recorded, own: AuditorLog) -> None:
    """A10: what the auditor itself did for a round's randomness is on record: its nonces, and what it read."""
    for round_id, nonce in own.nonces.items():
        held = recorded.rounds.get(round_id)
        if held is None:
            raise VerificationFailed(f"the round {round_id} got a nonce of the auditor's, but is not recorded")
        # A session takes none: the server refused it, and the auditor's own copy means nothing.
        taken = held.sealed is not None and held.session is None
        if taken and held.sealed is not None and held.sealed.one(SealItem).nonce != bytes.fromhex(nonce):
            raise VerificationFailed(f"{held.sealed}: does not name the nonce that the auditor gave")
    for round_id, times in own.reads.items():
        held = recorded.rounds.get(round_id)
        recorded_reads = 0 if held is None else sum(read.auditor == own.name for read in held.reads)
        if recorded_reads < times:
            raise VerificationFailed(
                f"the seed of the round {round_id} was read {times} times, of which {recorded_reads} are recorded"
            )
    commitments = [held.terms.seed_commitment for held in recorded.rounds.values()]
    if len(set(commitments)) != len(commitments):
        raise VerificationFailed("two rounds have one seed commitment")


def check_receipts(
    recorded: Recorded, receipts: Sequence[bytes], trusted: Sequence[VerifierKey], known: Sequence[VerifierKey]
) -> list[str]:
    """A11: of each analyst's newest receipt, the workload that was used is the one the custodian took.

    Gives what could not be compared, as the analyst was deleted.
    """
    of_sessions = [each for each in receipts if claimed_type(each) == SESSION_RECEIPT_TYPE]
    removed = check_session_receipts(recorded, of_sessions, trusted, known)
    newest: dict[tuple[str, str], ReceiptPayload] = {}
    for envelope in (each for each in receipts if each not in of_sessions):
        receipt = ReceiptPayload.from_bytes(open_envelope(envelope, RECEIPT_TYPE, trusted, known))
        if trusted[0].name != log_origin(receipt.deployment):
            raise VerificationFailed(f"a receipt is of another deployment: {receipt.deployment!a}")
        key = receipt.round_id, receipt.analyst
        before = newest.setdefault(key, receipt)
        if before.accept_time == receipt.accept_time and before != receipt:
            raise VerificationFailed(f"two receipts of {receipt.analyst!a} have one time, so neither is the newest")
        newest[key] = max(before, receipt, key=lambda each: each.accept_time)
    for (round_id, analyst), receipt in newest.items():
        held = recorded.rounds.get(round_id)
        if held is None or analyst not in held.analysts:
            raise VerificationFailed(f"a receipt of {analyst!a} is of the round {round_id}, which is not recorded")
        if held.sealed is None:
            continue
        item = held.sealed.record.each(WorkloadItem)[held.analysts.index(analyst)]
        if item is None:
            removed.append(f"{analyst!a} in the round {round_id}")
        elif item.commitment != receipt.commitment:
            raise VerificationFailed(
                f"{held.sealed}: another workload of {analyst!a} was used than the newest receipt says"
            )
    return removed


def _charges(entries: Iterable[JournalEntry]) -> Charges:
    return {entry.account: entry.cost for entry in entries}


def _charges_told(charges: Iterable[AccountCharge | SettledCharge]) -> Charges:
    return {charge.account: charge.cost for charge in charges}
