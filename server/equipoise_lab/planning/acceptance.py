"""Predicts whether a server would accept a planned round, and what it would count on accounts with given caps."""

from __future__ import annotations

import re
from dataclasses import dataclass

from equipoise.accounting import Cost, charge_at, events_from_json
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import AccountCharge
from equipoise.queries.schema import MAX_ATTRIBUTES
from equipoise.queries.schema_checks import MAX_CATEGORIES
from equipoise_lab.options import MAX_SHOWN
from equipoise_lab.planning.request import PlanRequest
from equipoise_server.ledger.caps import (
    Cap,
    account_charge,
    at_order,
    checked_cap,
    fits,
    limits,
    no_room_in_words,
)
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import Comparison

_DECIMAL = r"[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
_CAP = re.compile(rf"(?P<epsilon>{_DECIMAL})/(?P<delta>{_DECIMAL})(?:/(?P<order>{_DECIMAL}))?", re.ASCII)


@dataclass(frozen=True)
class Acceptance:
    """What a chosen plan counts on accounts of the caps that were given, and how many such rounds fit on each.

    `rounds`: beside each charge, None for any number. `refusal`: why no server would accept the round, or why an
    account that nothing is spent of would not; empty where both would.
    """

    charges: tuple[AccountCharge, ...]
    rounds: tuple[int | None, ...]
    refusal: str


def acceptance(request: PlanRequest, setting: PublicParameters, comparison: Comparison) -> Acceptance:
    """Return what a server and its accounts would say to the chosen plan.

    Args:
        request: What was typed, with the accounts' caps.
        setting: What mechanisms plan from.
        comparison: Of the mechanisms, with the chosen one.

    Raises:
        InvalidArgument: Naming an option.
    """
    data_cap = None if request.data_cap is None else cap_of("--data-cap", request.data_cap, adds=True)
    adds = request.unit == "analyst"
    analyst_cap = None if request.analyst_cap is None else cap_of("--analyst-cap", request.analyst_cap, adds=adds)
    plan = None if comparison.chosen is None else comparison.chosen.plan
    if plan is None:
        return Acceptance((), (), "no mechanism can serve this round")
    asked = []
    if data_cap is not None:
        asked.append(("data", data_cap, _counts(plan.data_cost, plan.data_events, data_cap)))
    if analyst_cap is not None and setting.protects_analysts:
        cost = _counts(plan.charged_analyst_cost, plan.analyst_events, analyst_cap)
        asked.append(("each analyst", analyst_cap, cost))
    charges = tuple(_charge(*each) for each in asked)
    refusals = [_refusal(request, setting), *(each.refusal for each in charges)]
    rounds = tuple(_rounds(cap, cost) for _, cap, cost in asked)
    return Acceptance(charges, rounds, next((each for each in refusals if each), ""))


def cap_of(option: str, text: str, *, adds: bool) -> Cap:
    """Read a cap such as 3/1e-11 or 3/1e-11/17.

    Args:
        option: What errors call it.
        text: As it was typed.
        adds: Whether rounds add on the account, so that it counts at an order.

    Raises:
        InvalidArgument: It is none, or has an order where only the worst round counts.
    """
    match = _CAP.fullmatch(text.strip())
    if match is None:
        raise InvalidArgument(option, f"must be EPSILON/DELTA[/ORDER], such as 3/1e-11, not {text[:MAX_SHOWN]!r}")
    cap = checked_cap(option, float(match["epsilon"]), float(match["delta"]))
    if adds:
        return at_order(option, cap, float(match["order"] or 0))
    if match["order"]:
        raise InvalidArgument(option, "has an order, but only the worst round counts where the unit is query")
    return cap


def _refusal(request: PlanRequest, setting: PublicParameters) -> str:
    """Why no server would accept such a round, whatever its accounts hold."""
    if len(setting.attributes) > MAX_ATTRIBUTES:
        return f"--universe: has {len(setting.attributes)} attributes, and a table has at most {MAX_ATTRIBUTES}"
    if max(setting.attributes, default=0) > MAX_CATEGORIES:
        return f"--universe: an attribute has at most {MAX_CATEGORIES:,} categories"
    if not setting.protects_analysts and (request.session is None or request.session.slotted):
        kind = "round" if request.session is None else "session by turns"
        return f"--eps-analyst: must be finite for a {kind}, which protects its analysts"
    return ""


def _counts(cost: Cost, events: str, cap: Cap) -> Cost:
    """Return what a charge counts on an account of this cap."""
    return cost if cap.order is None else charge_at(events_from_json(events), cap.order)


def _charge(account: str, cap: Cap, cost: Cost) -> AccountCharge:
    refusal = "" if fits(cost, cap, limits(cap)) else f"{account}: {no_room_in_words(cap, Cost(), cost)}"
    return account_charge(account, cap, cost, refusal)


def _rounds(cap: Cap, cost: Cost) -> int | None:
    """Return how many such rounds fit on an account of which nothing is spent; None for any number."""
    limit = limits(cap)
    if cap.order is None:
        return None if fits(cost, cap, limit) else 0
    amounts = (limit.divergence, cost.divergence), (limit.delta, cost.delta)
    return min((most // each for most, each in amounts if each), default=None)
