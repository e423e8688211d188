"""A9: what plans cost is within their rounds' budgets, charged to all analysts alike, and no danger is unnamed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from equipoise.accounting import Cost, in_rho
from equipoise.auditing.accounts import Accounts
from equipoise.auditing.charge_parts import is_cost_of_events, is_spent
from equipoise.auditing.rounds import Charges, Recorded, RecordedRound, recorded_charges
from equipoise.auditing.session_checks import check_session_terms
from equipoise.auditing.standing_checks import check_measurement
from equipoise.errors import VerificationFailed
from equipoise.model.accounts import COUNTED_FOR, Budget
from equipoise.model.dangers import Dangers, dangers_of_round, not_accepted
from equipoise.model.rounds import GRANT
from equipoise.records.dataset_items import DataItem, DatasetItem
from equipoise.records.item_parts import NOTHING_CHARGED
from equipoise.records.items import ChargeItem, ReservationItem, ResultItem, SpendingItem
from equipoise.verification.conversion import TOLERANCE, epsilon_of


def check_budgets(recorded: Recorded, accounts: Accounts) -> None:
    """A9: what a plan costs is within its round's budgets, and each share was charged just that, all alike."""
    for history in recorded.rounds.values():
        terms, plan = history.terms, history.plan.plan
        parameters = history.plan.terms
        planned = (parameters.unit, parameters.data_budget, parameters.analyst_budget, parameters.beta)
        same = parameters.release_grid_seconds == terms.release_grid_seconds
        same = same and parameters.accepted == terms.accepted
        if planned != (terms.unit, terms.data_budget, terms.analyst_budget, terms.beta) or not same:
            raise VerificationFailed(f"{history.opened}: the terms differ from the public parameters")
        stated = (plan.mechanism, plan.max_half_width, plan.max_uncertified, plan.analyst_cost)
        public = (terms.mechanism, terms.max_half_width, terms.max_uncertified, terms.analyst_cost)
        if stated != public or json.loads(plan.analyst_events) != terms.analyst_events:
            raise VerificationFailed(f"{history.opened}: the plan differs from the public parameters")
        missing = terms.analyst_budget is None
        alone = history.session is None and history.analysts
        if missing != (terms.analyst_cost is None) or (missing and alone):
            raise VerificationFailed(
                f"{history.opened}: analysts have a cost without a budget, or a budget without a cost"
            )
        if history.session is not None:
            check_session_terms(history)
        check_measurement(history, recorded)
        if unnamed := not_accepted(dangers_of(history), terms.accepted):
            raise VerificationFailed(
                f"{history.opened}: nobody has accepted its dangers: {'; '.join(unnamed.values())}"
            )
        _check_cost(history, "data", terms.data_budget, plan.data_cost, plan.data_events)
        if plan.analyst_cost is not None:
            _check_cost(history, "analyst", terms.analyst_budget, plan.analyst_cost, plan.analyst_events)
        _check_charged(history, accounts)
        _check_spent(history, accounts)
        used = (
            None
            if history.ended is None or history.release is None
            else history.ended.one(SpendingItem).data_digest
        )
        if used not in (None, history.registered.one(DataItem).digest):
            raise VerificationFailed(f"{history.ended}: its data differ from those of {history.registered}")


def dangers_of(history: RecordedRound) -> Dangers:
    """Return what the operator had to accept by name before the round was opened, by what is on record of it."""
    terms, plan = history.terms, history.plan
    persons = history.registered.one(DatasetItem).persons
    return dangers_of_round(
        terms.data_budget,
        terms.analyst_budget,
        terms.unit,
        plan.shares,
        plan.plan,
        terms.records,
        persons.records,
    )


def accepted_dangers(recorded: Recorded) -> list[str]:
    """Remarks on rounds whose budgets or plans have dangers that were accepted."""
    return [
        f"the round {round_id} ({history.terms.mechanism}) was opened with the danger {danger}: {said}"
        for round_id, history in recorded.rounds.items()
        for danger, said in dangers_of(history).items()
        if danger in history.terms.accepted
    ]


def _check_cost(history: RecordedRound, side: str, budget: Budget | None, cost: Cost, events: str) -> None:
    if not is_cost_of_events(events, cost, None):
        raise VerificationFailed(f"{history.opened}: the {side} cost is not the sum of its parts")
    if budget is None:
        raise VerificationFailed(f"{history.opened}: the plan has a cost of {side}s, for whom there is no budget")
    epsilon = epsilon_of(cost, budget.delta, None)
    if epsilon > budget.epsilon * (1 + TOLERANCE):
        raise VerificationFailed(
            f"{history.opened}: the plan costs epsilon {epsilon:.6g} at delta {budget.delta:g}, beyond the round's "
            f"{side} budget of {budget.epsilon:g}"
        )


def _check_charged(history: RecordedRound, accounts: Accounts) -> None:
    """The data account of the dataset's people and those of each share, by what the plan costs as each counts.

    A round that protects all that an analyst asks protects each statement, and is counted for both. Where a session
    does not protect its analysts, the data account alone is charged.
    """
    charging = history.sealed if history.session is None else history.opened
    if charging is None:
        return
    terms, plan = history.terms, history.plan.plan
    charged_analysts = history.analysts if terms.analyst_budget is not None else []
    wanted = {f"data/{history.account}": plan.data_events}
    prefix = f"analyst/{history.account}/{terms.unit}/"
    wanted |= {
        f"analyst/{history.account}/{unit}/{analyst}": plan.analyst_events
        for analyst in charged_analysts
        for unit in COUNTED_FOR.get(terms.unit, ())
    }
    charged = _charged_until_sealed(history, accounts)
    if charged.keys() != wanted.keys():
        raise VerificationFailed(f"{charging}: it charges other accounts than the data's and those of its shares")
    for name, events in wanted.items():
        account = accounts.by_name.get(name)
        if account is None or not is_cost_of_events(events, charged[name], account.order):
            raise VerificationFailed(f"{charging}: what {name} is charged differs from the plan's cost")
        if name.startswith(prefix) and account.order != terms.analyst_order:
            raise VerificationFailed(f"{history.opened}: {name} counts at another order than the record says")
    if len({charged[prefix + analyst] for analyst in charged_analysts}) > 1:
        raise VerificationFailed(f"{charging}: does not charge all analysts alike")
    _check_announced_charges(history, {analyst: charged[prefix + analyst] for analyst in charged_analysts})


def _check_spent(history: RecordedRound, accounts: Accounts) -> None:
    """A released grant is charged just what its release names and its analyst counts again; others name nothing."""
    if history.release is None:
        return
    spent, of_grant = history.release.spent, history.terms.mechanism == GRANT
    if (spent is not None) is not of_grant:
        raise VerificationFailed(
            f"{history.ended}: does not say what a grant has spent, or says it of another round"
        )
    account = f"data/{history.account}"
    if spent is not None and not is_spent(accounts.by_name[account].charges[history.terms.round_id].parts, spent):
        raise VerificationFailed(
            f"{history.ended}: says that rho {in_rho(spent)} was spent, and {account} is charged another sum"
        )


def _charged_until_sealed(history: RecordedRound, accounts: Accounts) -> Charges:
    """By the record of the seal, which is the journal's (A8); of a session that is not sealed, by the journal."""
    if history.sealed is not None:
        return recorded_charges(history.sealed.one(ReservationItem).charges)
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
            raise VerificationFailed(
                f"{history.ended}: {item.analyst!a} is shown a charge that differs from the one made"
            )
