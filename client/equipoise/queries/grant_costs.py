"""What statements would cost of a grant as it stands, and in which order they would cost least. Nothing is asked.

Costs are functions of what was asked and paid before, so an analyst computes from its own spending what the server
would charge, to the last unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from equipoise.accounting import RHO_UNIT
from equipoise.queries.grant_account import GrantAccount, Wanted
from equipoise.queries.grant_reach import WAYS, grown, joint_reach, paid_reach

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True)
class StatementCost:
    """One statement of a dry run.

    `rho`: it is wanted as precisely as that alone would buy. `cost`: what is missing to that after all before it;
    both in units of 10^-12 of rho. `standard_error`: of its least precise count once it is paid, in records.
    `half_width`: about how far its intervals will reach to either side at most, in records; None where noise was
    never drawn for just this meaning, so that its interval follows from those of other answers. `measured`: the
    standard error of its least precise count by the dataset's standing measurement alone, in records; None where
    that does not tell it.
    """

    rho: int
    cost: int
    standard_error: float
    half_width: float | None
    measured: float | None = None


@dataclass(frozen=True)
class GrantCosts:
    """A dry run: what statements would cost in their order, what is left, and what is cheaper.

    `at_most`: what they would cost together in this order, `left`: what is left of the grant, and `cheapest`: what
    they would cost in `cheapest_order`, the places of the statements, from 0; all in units of 10^-12 of rho. The
    order is the cheapest of three: as given, small tables first, and large tables first.
    """

    statements: tuple[StatementCost, ...]
    at_most: int
    left: int
    cheapest: int
    cheapest_order: tuple[int, ...]


def account_after(spent: Sequence[Wanted]) -> GrantAccount:
    """Return the account of a grant after all that was answered, without a limit.

    Args:
        spent: what was asked and answered, in order.
    """
    account = GrantAccount(UNLIMITED)
    for each in spent:
        account.pay(each)
    return account


def grant_costs(
    account: GrantAccount, left: int, wanted: Sequence[Wanted], person_records: int, beta: float
) -> GrantCosts:
    """Return what statements would cost as a grant stands, and the cheapest of three orders.

    Args:
        account: of the grant, without a limit; it is not changed.
        left: what is left of the grant, in units of 10^-12 of rho.
        wanted: the statements, in the order in which they would be asked.
        person_records: how many records each person has, M.
        beta: the probability that any interval of the grant fails.
    """
    given = list(range(len(wanted)))
    small = sorted(given, key=lambda place: wanted[place].meaning.counts)
    orders = (given, small, small[::-1])
    runs = [_run(account, [wanted[place] for place in order], person_records, beta) for order in orders]
    totals = [sum(each.cost for each in run) for run in runs]
    best = totals.index(min(totals))
    return GrantCosts(tuple(runs[0]), totals[0], left, totals[best], tuple(orders[best]))


SHOWN = ("standard error in records", "interval in records", "by the measurement")


def shown_errors(cost: StatementCost) -> tuple[str, str, str]:
    """Return what a table shows of a statement's errors, below `SHOWN`.

    Args:
        cost: of the statement.
    """
    reach = "by other answers" if cost.half_width is None else f"+- {cost.half_width:.4g}"
    return f"{cost.standard_error:.4g}", reach, "-" if cost.measured is None else f"{cost.measured:.4g}"


def _run(account: GrantAccount, wanted: Sequence[Wanted], person_records: int, beta: float) -> list[StatementCost]:
    own, costs = account.copy(), []
    for each in wanted:
        cost = own.pay(each)
        scale = person_records**2 * Fraction(RHO_UNIT, 2)
        error = math.sqrt(scale / own.precision.known(each.meaning, each.measured))
        half_width = _half_width(own, each, beta)
        if half_width is not None:
            half_width *= math.sqrt(scale)
        told = (
            None
            if each.measured is None or not all(each.measured.precisions)
            else math.sqrt(scale / min(each.measured.precisions))
        )
        costs.append(StatementCost(each.rho, cost, error, half_width, told))
    return costs


def _half_width(own: GrantAccount, asked: Wanted, beta: float) -> float | None:
    """Return about how far an interval reaches at most, in the root of one over a precision."""
    noise, measured, reaches = own.noises.get(asked.meaning.key), asked.measured, []
    if noise is not None:
        reaches.append(paid_reach(noise, asked.meaning.counts, beta) / math.sqrt(noise.precision))
    drawn = Fraction(0) if noise is None else noise.precision
    if measured is not None and all(measured.precisions) and not own.precision.fits(asked.meaning, drawn):
        spread = grown(Fraction(1)) + (0.0 if noise is None else grown(noise.precision / noise.first))
        precision = min(measured.precisions) + drawn
        reaches.append(joint_reach(measured.bits + WAYS, beta, spread) / math.sqrt(precision))
    return min(reaches, default=None)
