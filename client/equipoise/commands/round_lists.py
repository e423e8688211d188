"""The lists of rounds, sessions and grants: each column once, with title and format."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from equipoise.accounting import in_rho
from equipoise.commands.columns import shown_time
from equipoise.commands.printing import Columns
from equipoise.model.rounds import Grant, Round, RoundDetail, RoundState, Share, Terms


def _listed_time(time: datetime | None) -> str:
    """A time in a list, whose title says the zone: times sort as their texts do."""
    return "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def _protects(detail: RoundDetail) -> str:
    """Says whether a session protects its analysts from one another; one alone has nobody to be protected from."""
    if len(detail.round.terms.shares) == 1:
        return "there is one"
    return "no" if detail.round.terms.analyst_budget is None else "yes"


def _sum(terms: Terms, of: Callable[[Share], int]) -> str:
    return f"{sum(map(of, terms.shares)):,}"


def _own(shown: Round) -> Share:
    """The caller's share, the only one that an analyst is shown."""
    return shown.terms.shares[0]


ROUNDS: Columns[RoundDetail] = {
    "round": lambda each: each.round.id,
    "dataset": lambda each: each.round.terms.dataset,
    "version": lambda each: each.round.dataset_version,
    "state": lambda each: each.round.state,
    "opened (UTC)": lambda each: _listed_time(each.round.open_time),
    "closes (UTC)": lambda each: _listed_time(each.round.terms.close_time),
    "released (UTC)": lambda each: _listed_time(each.round.release_time),
    "mechanism": lambda each: each.plan.mechanism,
    "analysts": lambda each: len(each.round.terms.shares),
    "queries": lambda each: _sum(each.round.terms, lambda share: share.queries),
    "largest half-width": lambda each: f"{each.plan.max_half_width:.4g}",
}
SESSIONS: Columns[RoundDetail] = {
    "session": ROUNDS["round"],
    "dataset": ROUNDS["dataset"],
    "version": ROUNDS["version"],
    "state": ROUNDS["state"],
    "opened (UTC)": ROUNDS["opened (UTC)"],
    "closes (UTC)": ROUNDS["closes (UTC)"],
    "released (UTC)": ROUNDS["released (UTC)"],
    "mechanism": ROUNDS["mechanism"],
    "protects analysts": _protects,
    "analysts": ROUNDS["analysts"],
    "statements": lambda each: _sum(each.round.terms, lambda share: share.statements),
    "largest half-width": ROUNDS["largest half-width"],
}
GRANTS: Columns[RoundDetail] = {
    "grant": ROUNDS["round"],
    "dataset": ROUNDS["dataset"],
    "version": ROUNDS["version"],
    "state": ROUNDS["state"],
    "given (UTC)": ROUNDS["opened (UTC)"],
    "analyst": lambda each: each.round.terms.shares[0].analyst,
    "epsilon": lambda each: f"{each.round.terms.data_budget.epsilon:g}",
    "delta": lambda each: f"{each.round.terms.data_budget.delta:g}",
    "rho": lambda each: in_rho(each.plan.data_cost.rho),
    "statements": lambda each: f"{each.progress.done:,}" if each.round.state is RoundState.OPEN else "",
    "until": lambda each: shown_time(each.round.terms.close_time) or "it is ended",
}
OWN_ROUNDS: Columns[Round] = {
    "round": lambda each: each.id,
    "dataset": lambda each: each.terms.dataset,
    "version": lambda each: each.dataset_version,
    "state": lambda each: each.state,
    "opened (UTC)": lambda each: _listed_time(each.open_time),
    "closes (UTC)": lambda each: _listed_time(each.terms.close_time),
    "released (UTC)": lambda each: _listed_time(each.release_time),
    "your statements": lambda each: f"{_own(each).statements:,}",
    "your queries": lambda each: f"{_own(each).queries:,}",
}
OWN_SESSIONS: Columns[Round] = {
    "session": OWN_ROUNDS["round"],
    "dataset": OWN_ROUNDS["dataset"],
    "version": OWN_ROUNDS["version"],
    "state": OWN_ROUNDS["state"],
    "opened (UTC)": OWN_ROUNDS["opened (UTC)"],
    "closes (UTC)": OWN_ROUNDS["closes (UTC)"],
    "released (UTC)": OWN_ROUNDS["released (UTC)"],
    "mechanism": lambda each: each.mechanism,
    "protects you": lambda each: "no" if each.terms.analyst_budget is None else "yes",
    "answered": lambda each: f"{each.answered:,}",
    "your statements": OWN_ROUNDS["your statements"],
    "your queries": OWN_ROUNDS["your queries"],
}
OWN_GRANTS: Columns[tuple[Round, Grant]] = {
    "grant": lambda own: own[0].id,
    "dataset": lambda own: own[0].terms.dataset,
    "version": lambda own: own[0].dataset_version,
    "given (UTC)": lambda own: _listed_time(own[0].open_time),
    "rho": lambda own: in_rho(own[1].total),
    "spent": lambda own: in_rho(own[1].spent),
    "left": lambda own: in_rho(own[1].left),
    "statements": lambda own: f"{own[0].answered:,}",
    "until": lambda own: shown_time(own[0].terms.close_time) or "it is ended",
}
