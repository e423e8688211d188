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
    for round_id, history in recorded.rounds.items():
        _check_entries(history, entries.get(round_id, []))
    return _same_data(recorded)


def _check_removed(recorded: Recorded) -> None:
    """Whoever is deleted is so in all that is recorded: no single item can be taken out of sight."""
    there: set[str] = set()
    removed: dict[str, Step] = {}
    for history in recorded.rounds.values():
        for step in (history.opened, history.sealed, history.ended):
            for analyst, item in zip(history.analysts, () if step is None else step.of_analysts, strict=False):
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
    history = recorded.rounds.get(listed.id)
    if history is None:
        return f"the round {listed.id} is listed, but its opening is not recorded"
    if listed.dataset != history.terms.dataset:
        return f"the round {listed.id} is listed of another dataset than is recorded"
    if listed.open_time != history.terms.open_time:
        return f"the round {listed.id} is listed with another opening time than is recorded"
    released = None if history.ended is None else history.release
    if released is not None and listed.release_time not in (None, released.release_time):
        return f"the round {listed.id} is listed with another release time than is recorded"
    # A release enters the log at its release time.
    waits = listed.state == "released" and (listed.release_time or 0) > to_microseconds(now)
    wanted = "sealed" if waits or listed.state == "running" else listed.state
    if history.state == wanted or (history.state, wanted) in _FURTHER:
        return ""
    return f"the round {listed.id} is listed as {listed.state}, but recorded as {history.state}"


def _check_entries(history: RecordedRound, entries: Sequence[JournalEntry]) -> None:
    """The journal at a round's steps: reserved until it was sealed, run after that, and settled until it ended."""
    by_action = {action: [each for each in entries if each.action == action] for action in ACTIONS}
    reserved, settled = _charges(by_action["reserve"]), _charges(by_action["spend"] + by_action["release"])
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
    if _recorded_charges(sealing.charges) != reserved:
        raise VerificationFailed(f"{history.sealed}: reserves something else than the budget journal")
    at_seal = sealing.journal.sequence
    if any(each.sequence > at_seal for each in by_action["reserve"]):
        raise VerificationFailed(f"{history.sealed}: comes before its reservation in the budget journal")
    before = ("reserve",) if history.session is None else ("reserve", "run")
    if any(each.sequence <= at_seal for each in entries if each.action not in before):
        raise VerificationFailed(f"{history.sealed}: data were touched, or charges settled, before it")
    run = min((each.sequence for each in by_action["run"]), default=None)
    if by_action["spend"] and (run is None or by_action["spend"][0].sequence < run):
        raise VerificationFailed(f"{history.sealed}: charges were spent, but the journal does not say that it ran")
    if history.ended is None:
        return
    if history.ended.kind == "round-released":
        _check_release(history, history.ended, by_action["spend"], settled)
    else:
        _check_abort(history.ended, settled, "spent" if run is not None else "released")
        ended = by_action["spend" if run is not None else "release"]
        _require_until(history.ended, ended)


def _check_release(history: RecordedRound, ended: Step, spent: Sequence[JournalEntry], settled: Charges) -> None:
    spending, release = ended.one(SpendingItem), ended.one(ReleaseItem)
    if not spent or _charges(spent) != settled or _recorded_charges(spending.charges) != settled:
        raise VerificationFailed(f"{ended}: spends something else than the budget journal")
    _require_until(ended, spent)
    grid = history.terms.release_grid_seconds * 1_000_000
    if release.release_time < spending.commit_time or (grid and release.release_time % grid):
        raise VerificationFailed(f"{ended}: its release time is not a point of the round's grid after its end")


def _check_abort(ended: Step, settled: Charges, state: str) -> None:
    charges = ended.one(SettlementItem).charges
    if any(each.state != state for each in charges) or _recorded_charges(charges) != settled:
        raise VerificationFailed(f"{ended}: settles something else than the budget journal")


def _require_until(step: Step, entries: Iterable[JournalEntry]) -> None:
    if step.journal is None or any(entry.sequence > step.journal.sequence for entry in entries):
        raise VerificationFailed(f"{step}: comes before its charges are settled in the budget journal")


def check_budgets(recorded: Recorded, accounts: Accounts) -> None:
    """A9: what a plan costs is within its round's budgets, and each share was charged just that, all alike."""
    for history in recorded.rounds.values():
        terms, plan = history.terms, history.plan.plan
        parameters = history.plan.terms
        planned = (parameters.unit, parameters.data_budget, parameters.analyst_budget, parameters.beta)
        if planned != (terms.unit, terms.data_budget, terms.analyst_budget, terms.beta):
            raise VerificationFailed(f"{history.opened}: the terms differ from the public parameters")
        same = (plan.mechanism, plan.error_bound, plan.max_uncertified, plan.analyst_cost)
        public = (terms.mechanism, terms.error_bound, terms.max_uncertified, terms.analyst_cost)
        if same != public or json.loads(plan.analyst_events) != terms.analyst_events:
            raise VerificationFailed(f"{history.opened}: the plan differs from the public parameters")
        missing = terms.analyst_budget is None
        if missing != (terms.analyst_cost is None) or (missing and history.session is None):
            raise VerificationFailed(
                f"{history.opened}: analysts have a cost without a budget, or a budget without a cost"
            )
        if history.session is not None:
            check_session_terms(history)
        _check_cost(history, "data", terms.data_budget, plan.data_cost, plan.data_events)
        if plan.analyst_cost is not None:
            _check_cost(history, "analyst", terms.analyst_budget, plan.analyst_cost, plan.analyst_events)
        _check_charged(history, accounts)
        dataset = recorded.datasets[terms.dataset]
        used = (
            None
            if history.ended is None or history.release is None
            else history.ended.one(SpendingItem).data_digest
        )
        if used not in (None, dataset.one(DataItem).digest):
            raise VerificationFailed(f"{history.ended}: was computed on other data than {dataset}")


def _check_cost(history: RecordedRound, side: str, budget: Budget | None, cost: Cost, events: str) -> None:
    if not comes_to(events, cost, None):
        raise VerificationFailed(f"{history.opened}: the {side} cost is not what its parts come to")
    if budget is None:
        raise VerificationFailed(f"{history.opened}: the plan has a cost of {side}s, for whom there is no budget")
    epsilon = epsilon_of(cost, budget.delta, None)
    if epsilon > budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(
            f"{history.opened}: the plan costs epsilon {epsilon:.6g} at delta {budget.delta:g}, beyond the round's "
            f"{side} budget of {budget.epsilon:g}"
        )


def _check_charged(history: RecordedRound, accounts: Accounts) -> None:
    """The data account and those of each share, by what the plan costs as each account counts.

    A round that protects all that an analyst asks protects each statement, and is counted for both. Where a session
    does not protect its analysts, the data account alone is charged.
    """
    charging = history.sealed if history.session is None else history.opened
    if charging is None:
        return
    terms, plan = history.terms, history.plan.plan
    charged_analysts = history.analysts if terms.analyst_budget is not None else []
    wanted = {f"data/{terms.dataset}": plan.data_events}
    prefix = f"analyst/{terms.dataset}/{terms.unit}/"
    wanted |= {
        f"analyst/{terms.dataset}/{unit}/{analyst}": plan.analyst_events
        for analyst in charged_analysts
        for unit in COUNTED_FOR.get(terms.unit, ())
    }
    charged = _charged_until_sealed(history, accounts)
    if charged.keys() != wanted.keys():
        raise VerificationFailed(f"{charging}: charges not just the data's account and those of each share")
    for name, events in wanted.items():
        account = accounts.by_name.get(name)
        if account is None or not comes_to(events, charged[name], account.order):
            raise VerificationFailed(f"{charging}: charges {name} something else than what the plan costs")
        if name.startswith(prefix) and account.order != terms.analyst_order:
            raise VerificationFailed(f"{history.opened}: {name} counts at another order than the record says")
    if len({charged[prefix + analyst] for analyst in charged_analysts}) > 1:
        raise VerificationFailed(f"{charging}: does not charge all analysts alike")
    _check_announced_charges(history, {analyst: charged[prefix + analyst] for analyst in charged_analysts})


def _charged_until_sealed(history: RecordedRound, accounts: Accounts) -> Charges:
    """By the record of the seal, which is the journal's (A8); of a session that is not sealed, by the journal."""
    if history.sealed is not None:
        return _recorded_charges(history.sealed.one(ReservationItem).charges)
    round_id = history.terms.round_id
    return {
        account.name: account.charges[round_id].cost
        for account in accounts.by_name.values()
        if round_id in account.charges
    }


def _check_announced_charges(history: RecordedRound, charged: Mapping[str, Cost]) -> None:
    """What each analyst is told that it was charged, is what its account was charged: nothing where it was not."""
    if history.ended is None:
        return
    for item in history.ended.of_analysts:
        if not isinstance(item, ResultItem | ChargeItem):
            continue
        cost = charged.get(item.analyst)
        uncharged = isinstance(item, ChargeItem) and item.state == NOTHING_CHARGED
        if item.charge != (cost or Cost()) or (cost is not None and uncharged):
            raise VerificationFailed(f"{history.ended}: {item.analyst!a} is shown another charge than was made")


def check_seeds(recorded: Recorded, own: AuditorLog) -> None:
    """A10: what the auditor itself did for a round's randomness is on record: its nonces, and what it read."""
    for round_id, nonce in own.nonces.items():
        history = recorded.rounds.get(round_id)
        if history is None:
            raise VerificationFailed(f"the round {round_id} got a nonce of the auditor's, but is not recorded")
        # A session takes none: the server refused it, and the auditor's own copy means nothing.
        taken = history.sealed is not None and history.session is None
        if taken and history.sealed is not None and history.sealed.one(SealItem).nonce != bytes.fromhex(nonce):
            raise VerificationFailed(f"{history.sealed}: does not name the nonce that the auditor gave")
    for round_id, times in own.reads.items():
        history = recorded.rounds.get(round_id)
        recorded_reads = 0 if history is None else sum(read.auditor == own.name for read in history.reads)
        if recorded_reads < times:
            raise VerificationFailed(
                f"the seed of the round {round_id} was read {times} times, of which {recorded_reads} are recorded"
            )
    commitments = [history.terms.seed_commitment for history in recorded.rounds.values()]
    if len(set(commitments)) != len(commitments):
        raise VerificationFailed("two rounds have the same seed commitment")


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
            raise VerificationFailed(f"two receipts of {receipt.analyst!a} have the same time; neither is newer")
        newest[key] = max(before, receipt, key=lambda each: each.accept_time)
    for (round_id, analyst), receipt in newest.items():
        history = recorded.rounds.get(round_id)
        if history is None or analyst not in history.analysts:
            raise VerificationFailed(f"a receipt of {analyst!a} is of the round {round_id}, which is not recorded")
        if history.sealed is None:
            continue
        item = history.sealed.record.each(WorkloadItem)[history.analysts.index(analyst)]
        if item is None:
            removed.append(f"{analyst!a} in the round {round_id}")
        elif item.commitment != receipt.commitment:
            raise VerificationFailed(
                f"{history.sealed}: another workload of {analyst!a} was used than the newest receipt says"
            )
    return removed


def _charges(entries: Iterable[JournalEntry]) -> Charges:
    return {entry.account: entry.cost for entry in entries}


def _recorded_charges(charges: Iterable[AccountCharge | SettledCharge]) -> Charges:
    return {charge.account: charge.cost for charge in charges}
