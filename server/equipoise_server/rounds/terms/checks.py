"""Derives from terms the public parameters of a plan and the charges of accounts. No I/O."""

from __future__ import annotations

import math

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import COUNTED_FOR, Budget
from equipoise.model.dangers import Dangers, dangers_of_round
from equipoise.model.rounds import MechanismPlan, Terms
from equipoise.queries.schema import Schema
from equipoise_server.ledger.account_names import analyst_account, data_account, holder
from equipoise_server.ledger.caps import Composition
from equipoise_server.ledger.charges import Charge
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.rounds.records import DatasetRecord

UNITS = {"query": Composition.PARALLEL, "analyst": Composition.SEQUENTIAL}
MAX_REASON = 500
UNPROTECTED = Budget(math.inf, 0.0)


def setting_of(
    terms: Terms, records: int, universe_size: int, schema: Schema, person_records: int = 1
) -> PublicParameters:
    """Return all public parameters on which a plan may depend.

    Args:
        terms: the terms; a session's length becomes one of the options.
        records: the number of records.
        universe_size: the number of universe cells.
        schema: the dataset's; the attributes' sizes, and which of them are ordered.
        person_records: how many of the records are each person's.
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
        attributes=schema.sizes,
        ordered=schema.ordered,
        person_records=person_records,
    )


def dangers(terms: Terms, plan: MechanismPlan, dataset: DatasetRecord) -> Dangers:
    """Return what an operator must accept by name before a round with these terms and this plan is opened."""
    return dangers_of_round(
        terms.data_budget,
        terms.analyst_budget,
        terms.unit,
        terms.shares,
        plan,
        dataset.records,
        dataset.persons.records,
    )


def adds(unit: str) -> bool:
    """Return whether the costs of rounds add up on analyst accounts of this unit, or only the worst one counts."""
    return UNITS[unit] is Composition.SEQUENTIAL


def charges_of(account: str, terms: Terms, plan: MechanismPlan) -> list[Charge]:
    """Return the charges of a round on `account`: on its data account, and on those of the round's analysts.

    Every share is charged alike, whether or not it is used.

    Without an analyst budget nothing bounds the analysts' privacy loss, and the round charges no analyst account.
    """
    return [charge_on(name, plan) for name in (data_account(account), *analyst_accounts(account, terms))]


def analyst_accounts(account: str, terms: Terms) -> dict[str, str]:
    """Return the analysts' accounts that a round charges, in the order of the shares, each with its unit."""
    if terms.analyst_budget is None:
        return {}
    units = COUNTED_FOR[terms.unit]
    return {analyst_account(account, unit, share.analyst): unit for share in terms.shares for unit in units}


def charge_on(account: str, plan: MechanismPlan) -> Charge:
    """Return the charge of a round on one of its accounts."""
    if holder(account) is None:
        return Charge(account, plan.data_cost, plan.data_events)
    return Charge(account, plan.charged_analyst_cost, plan.analyst_events)


def check_reason(reason: str) -> None:
    """Raise `InvalidArgument` for a reason that is empty, too long, or has characters that are not printable."""
    if not reason.strip() or len(reason) > MAX_REASON or not reason.isprintable():
        raise InvalidArgument("reason", f"must have 1 to {MAX_REASON} characters, all of them printable")
