"""The two changes of accounts that no round makes: an operator sets a cap, or writes off a loss.

An operator requests both explicitly, and the journal records both. Every function works in the transaction of the
connection it is given and commits nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from sqlalchemy import Connection

from equipoise.accounting import DELTA_UNIT, OUTWARD, RHO_UNIT, Cost
from equipoise.errors import BudgetExhausted, InvalidArgument, WrongState
from equipoise.model.accounts import Danger
from equipoise.records.public_facts import ACCEPTED
from equipoise_server.conversion import epsilon_at
from equipoise_server.ledger import journal
from equipoise_server.ledger.accounts import (
    Account,
    account,
    all_accounts,
    change,
    columns,
    order_field,
    total_with,
    widened,
)
from equipoise_server.ledger.caps import (
    Cap,
    Composition,
    at_order,
    combined,
    counted,
    epsilon_under,
    fits,
    limits,
    saturated,
    worst,
)
from equipoise_server.ledger.charges import live_costs
from equipoise_server.ledger.guard_comparison import Finding
from equipoise_server.ledger.guard_snapshot import Snapshot
from equipoise_server.ledger.losses import SHARED, Loss, largest, of_lost_accounts, shared_accounts

NAMED_ROUNDS = 5  # in an error


@dataclass(frozen=True)
class WrittenOff:
    """The amount that was marked as spent on one account."""

    account: str
    cost: Cost


def set_cap(
    connection: Connection,
    name: str,
    cap: Cap,
    time: datetime,
    pending: Mapping[str, Cost],
    accepted: tuple[Danger, ...] = (),
) -> None:
    """Give an account another cap. The account keeps its composition and its Renyi order.

    Args:
        connection: of the transaction.
        name: the account.
        cap: the new epsilon and delta; its order is ignored.
        time: of the journal entry.
        pending: what each open round will reserve on the account, by the round's id, oldest first.
        accepted: the dangers of the cap that the operator has named, which the journal keeps.

    Raises:
        NotFound: there is no such account.
        InvalidArgument: the cap is below what is committed already.
        WrongState: an open round could no longer be sealed.
    """
    standing = account(connection, name, locked=True)
    if standing.cap.order is not None:
        cap = at_order("cap", cap, standing.cap.order)
    spent, committed = standing.spent, standing.committed
    if standing.composition is Composition.PARALLEL:
        # Which round is the worst depends on the cap's delta.
        spent = worst(live_costs(connection, standing, spent_only=True), cap)
        committed = worst(live_costs(connection, standing), cap)
    limit = limits(cap)
    if not fits(committed, cap, limit):
        reached = epsilon_under(cap, committed)
        problem = f"is below what is spent or reserved: epsilon {reached:.6g} at its delta"
        raise InvalidArgument(
            "cap", problem if cap.order is None else f"{problem}, {counted(cap, committed).in_words}"
        )
    _check_pending(replace(standing, cap=cap, limit=limit, committed=committed), pending)
    change(
        connection,
        name,
        {
            "cap_epsilon": cap.epsilon,
            "cap_delta": cap.delta,
            **columns("limit", limit),
            **columns("spent", spent),
            **columns("committed", committed),
        },
    )
    pair = {"epsilon": cap.epsilon, "delta": cap.delta}
    events = json.dumps({"cap": pair, "accepted": ACCEPTED.encode(accepted)})
    journal.append(connection, time, "set-cap", account=name, cost=Cost(), events=events)


def _check_pending(standing: Account, pending: Mapping[str, Cost]) -> None:
    """Check that every open round still fits, each beside those before it. Nothing is reserved."""
    for cost in pending.values():
        try:
            standing = replace(standing, committed=total_with(standing, cost))
        except BudgetExhausted:
            newest = ", ".join([*pending][-NAMED_ROUNDS:])
            raise WrongState(
                f"the cap is below what is spent or reserved and what the {len(pending)} open rounds of this "
                f"account will reserve when they are sealed: abort some of them first (the newest: {newest})"
            ) from None


def write_off(
    connection: Connection, snapshot: Snapshot | None, finding: Finding, time: datetime
) -> list[WrittenOff]:
    """Mark as spent everything that may have been spent without the store's knowledge. In doubt means spent.

    A store that is behind the snapshot lacks what the snapshot counts beyond it: that difference is added. A forked
    store shares an unknown part with the snapshot: the whole snapshot is added. Without a snapshot nothing is
    known: everything that is left on every account is added.

    The caller must have spent every reservation before, as `rounds.recovery` does. Releasing a reservation
    afterwards would also remove the loss that it covered.

    Args:
        connection: of the transaction.
        snapshot: the guard's snapshot; None where there is no guard.
        finding: how the store compares to that snapshot.
        time: of the journal entries.

    Returns:
        The amount that was added to each account, without accounts to which nothing was added.
    """
    header = {
        "sequence": 0 if snapshot is None else snapshot.sequence,
        "digest": "" if snapshot is None else snapshot.digest.hex(),
        "finding": finding,
    }
    # An entry without an account names the snapshot that was written off, even if nothing was missing.
    shared = {} if snapshot is None else dict(snapshot.shared.items() - shared_accounts(connection).items())
    first = json.dumps(header | ({SHARED: shared} if shared else {}))
    journal.append(connection, time, "write-off", account="", cost=Cost(), events=first)
    standings, lost = {account.name: account for account in all_accounts(connection)}, of_lost_accounts(connection)
    known = {} if snapshot is None else snapshot.committed
    orders = {} if snapshot is None else snapshot.orders
    done = []
    for name in sorted(standings.keys() | known.keys()):
        order, cost = orders.get(name), known.get(name, Cost())
        missing = (
            _missing(standings[name], cost, order, finding)
            if name in standings
            else _missing_of_lost(lost.get(name), cost, order, finding)
        )
        if missing == Cost():
            continue
        if name in standings:
            order = standings[name].cap.order
            _add(connection, standings[name], missing)
        # An account that was lost is not opened here: `open_account` will add this entry to it.
        events = json.dumps(header | order_field(order))
        journal.append(connection, time, "write-off", account=name, cost=missing, events=events)
        done.append(WrittenOff(name, missing))
    return done


def _missing(standing: Account, known: Cost, order: float | None, finding: Finding) -> Cost:
    """Return the amount that the store lacks on an account that it has."""
    if finding is Finding.MISSING:
        return _rest(standing)
    if known != Cost() and order != standing.cap.order:
        # Both copies may have been used. So nothing is left, and no less counts than what the other copy spent.
        return largest(_rest(standing), _at_own_order(known, order, standing.cap))
    if finding is Finding.FORKED:
        return known
    if standing.composition is Composition.PARALLEL:
        return Cost() if worst([standing.committed, known], standing.cap) == standing.committed else known
    return _difference(known, standing.committed)


def _missing_of_lost(lost: Loss | None, known: Cost, order: float | None, finding: Finding) -> Cost:
    """Return the amount that the store lacks on an account that is not in it. `lost`: its earlier write-offs."""
    if lost is None or lost.order != order or finding is Finding.FORKED:
        return known
    if order is None:
        return Cost() if largest(lost.cost, known) == lost.cost else known
    return _difference(known, lost.cost)


def _rest(standing: Account) -> Cost:
    """Return everything that is left. What was really spent, together with what is known, was within the cap."""
    whole = Cost(epsilon=standing.limit.epsilon, delta=standing.limit.delta, divergence=standing.limit.divergence)
    return whole if standing.composition is Composition.PARALLEL else _difference(whole, standing.committed)


def _at_own_order(known: Cost, order: float | None, cap: Cap) -> Cost:
    """Bound, at the account's own order, what another copy counted at `order`; zero where either has no order.

    `D_a` grows with `a`, so a divergence at a larger order bounds the divergence at a smaller one. A divergence at
    a smaller order than the account's is converted to an (epsilon, delta) pair, with a quarter of the cap's delta.
    That epsilon bounds the divergence at every order.
    """
    if cap.order is None or order is None:
        return Cost()
    if cap.order <= order:
        return Cost(delta=known.delta, divergence=known.divergence)
    epsilon = epsilon_at(known.divergence, order, cap.delta / 4 / OUTWARD) * OUTWARD
    converted = Cost(
        delta=known.delta + math.ceil(cap.delta / 4 * DELTA_UNIT),
        divergence=math.ceil(Fraction(epsilon) * RHO_UNIT),
    )
    return saturated(converted)


def _add(connection: Connection, standing: Account, missing: Cost) -> None:
    spent, committed = (
        combined([amount, missing], standing.composition, standing.cap)
        for amount in (standing.spent, standing.committed)
    )
    limit = widened(standing.limit, committed)
    values = {**columns("limit", limit), **columns("spent", spent), **columns("committed", committed)}
    change(connection, standing.name, values)


def _difference(total: Cost, part: Cost) -> Cost:
    """Return how far `total` exceeds `part`, amount by amount; 0 where it does not."""
    return Cost(
        max(0, total.rho - part.rho),
        max(0, total.epsilon - part.epsilon),
        max(0, total.delta - part.delta),
        max(0, total.divergence - part.divergence),
    )
