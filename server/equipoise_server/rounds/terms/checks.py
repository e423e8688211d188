"""Checks what an operator wants of a round, and turns it into what a mechanism plans from. No I/O."""

from __future__ import annotations

import math

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import COUNTED_FOR, Budget
from equipoise.model.rounds import SessionTerms, Terms
from equipoise_server.ledger.accounts import analyst_account, data_account, holder
from equipoise_server.ledger.caps import Composition
from equipoise_server.ledger.charges import Charge
from equipoise_server.mechanisms.interface import Plan, PublicParameters
from equipoise_server.mechanisms.online.interface import MAX_SESSION
from equipoise_server.rounds.store.rounds import canonical

UNITS = {"query": Composition.PARALLEL, "analyst": Composition.SEQUENTIAL}
MAX_SHARE = 1 << 40  # queries of one analyst: far beyond any memory, far within every integer column
MAX_REASON = 500
MAX_GRID_SECONDS = 7 * 86_400
MAX_TURN_SECONDS = 86_400
UNPROTECTED = Budget(math.inf, 0.0)


def check_terms(terms: Terms) -> None:
    """Raises `InvalidArgument` naming the first field that no mechanism could accept."""
    if terms.unit not in UNITS:
        raise InvalidArgument("unit", 'must be "query" or "analyst"')
    _check_budget("data_budget", terms.data_budget)
    if terms.analyst_budget is not None:
        _check_budget("analyst_budget", terms.analyst_budget)
    elif terms.session is None:
        raise InvalidArgument("analyst_budget", "must be set: a round protects its analysts")
    if not 0 < terms.beta < 1:
        raise InvalidArgument("beta", "must be above 0 and below 1")
    if not terms.shares:
        raise InvalidArgument("shares", "must name at least one analyst")
    names: set[str] = set()
    for index, share in enumerate(terms.shares):
        if share.analyst in names:
            raise InvalidArgument(f"shares[{index}].analyst", f"{share.analyst!r} is named twice")
        names.add(share.analyst)
        if not 1 <= share.statements <= share.queries <= MAX_SHARE:
            raise InvalidArgument(
                f"shares[{index}]", "must have at least 1 statement, and at least as many queries"
            )
        if not 0 <= share.sensitivity <= 2 * share.statements:
            raise InvalidArgument(
                f"shares[{index}].sensitivity", "must lie between 0 (not declared) and 2 for each statement"
            )
    if not 0 <= terms.release_grid_seconds <= MAX_GRID_SECONDS:
        raise InvalidArgument("release_grid_seconds", f"must be at most {MAX_GRID_SECONDS:,}")
    _check_options(terms)
    if terms.session is not None:
        _check_session(terms.session)


def setting_of(
    terms: Terms, records: int, universe_size: int, attributes: tuple[int, ...] = ()
) -> PublicParameters:
    """Everything public that a plan may depend on. `attributes`: the schema's sizes.

    Of a session its length is among the options.
    """
    length = {} if terms.session is None else {"length": terms.session.length}
    return PublicParameters(
        records=records,
        universe_size=universe_size,
        shares=terms.shares,
        unit=terms.unit,
        data_budget=terms.data_budget,
        analyst_budget=terms.analyst_budget or UNPROTECTED,
        beta=terms.beta,
        options={**terms.options, **length},
        attributes=attributes,
    )


def adds(unit: str) -> bool:
    """Whether rounds add on analysts' accounts of this unit; otherwise the worst of them counts."""
    return UNITS[unit] is Composition.SEQUENTIAL


def charges_of(terms: Terms, plan: Plan) -> list[Charge]:
    """What a round will cost each account. Every share is charged alike, whether or not it is used.

    Without an analyst budget there is nothing that bounds what analysts lose, and no account of theirs counts it.
    """
    return [charge_on(account, plan) for account in (data_account(terms.dataset), *analyst_accounts(terms))]


def analyst_accounts(terms: Terms) -> dict[str, str]:
    """The accounts of analysts that a round charges, in the order of the shares, each with the unit it is for."""
    if terms.analyst_budget is None:
        return {}
    units = COUNTED_FOR[terms.unit]
    return {analyst_account(terms.dataset, unit, share.analyst): unit for share in terms.shares for unit in units}


def charge_on(account: str, plan: Plan) -> Charge:
    """What a round will cost one of its accounts."""
    if holder(account) is None:
        return Charge(account, plan.data_cost, plan.data_events)
    return Charge(account, plan.charged_analyst_cost, plan.analyst_events)


def check_reason(reason: str) -> None:
    """Raises `InvalidArgument` for an abort without words, with too many, or with what disturbs a terminal."""
    if not reason.strip() or len(reason) > MAX_REASON or not reason.isprintable():
        raise InvalidArgument("reason", f"must have 1 to {MAX_REASON} characters, all of them printable")


def _check_options(terms: Terms) -> None:
    try:
        canonical(dict(terms.options))
    except (TypeError, ValueError):
        raise InvalidArgument("options", "must be JSON values without NaN or infinity") from None
    if terms.session is not None and "length" in terms.options:
        raise InvalidArgument("options", "must not name a length, which is one of the session's own terms")


def _check_session(session: SessionTerms) -> None:
    if not 0 <= session.length <= MAX_SESSION:
        raise InvalidArgument("session.length", f"must be at most {MAX_SESSION:,}")
    if not 0 <= session.turn_seconds <= MAX_TURN_SECONDS:
        raise InvalidArgument("session.turn_seconds", f"must be at most {MAX_TURN_SECONDS:,}")


def _check_budget(field: str, budget: Budget) -> None:
    if not (math.isfinite(budget.epsilon) and budget.epsilon > 0):
        raise InvalidArgument(f"{field}.epsilon", "must be above 0 and finite")
    if not 0 <= budget.delta < 1:
        raise InvalidArgument(f"{field}.delta", "must be at least 0 and below 1")
