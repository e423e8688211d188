"""What it costs that a cap holds against operators who choose rounds by what they have seen.

    python benchmarks/filter_cost.py

How many rounds of a kind fit under a cap by the ledger's rule, and how many by the best order for their sum, which
holds only for rounds that were all fixed beforehand. Then what the share of a cap's delta that is kept for deltas
costs, and what rounds charge in delta. Everything comes from the planner: no table is read and nothing is run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle

from equipoise.accounting import (
    DELTA_UNIT,
    ORDERS,
    RHO_UNIT,
    Cost,
    PrivacyEvent,
    charge_at,
    charge_of,
    events_from_json,
)
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_lab.demo.play import DATA_BUDGET
from equipoise_lab.demo.table import AIRLINES, RECORDS, SCHEMA
from equipoise_lab.demo.workloads import query_count, workload_of
from equipoise_server.conversion import epsilon_for, epsilon_of_rho, largest_divergence, largest_rho
from equipoise_server.ledger.caps import Cap, at_order, fits, limits
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.registry import MECHANISMS

CAPS = (Cap(3.0, 1e-11), Cap(1.0, 1e-6), Cap(3.0, 1e-6), Cap(10.0, 1e-6))
SHARES = (1 / 2, 1 / 4, 1 / 8, 0.0)
LARGE_ORDER = 100_000.0
Rounds = Sequence[Sequence[PrivacyEvent]]


def main() -> None:
    """Prints three tables in Markdown."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "").parse_args()
    cap = CAPS[0]
    orders = at_order("cap", cap), at_order("cap", cap, LARGE_ORDER)
    told = " | ".join(f"order {each.order:g}" for each in orders)
    print(f"| the demo's round, under a cap of ({cap.epsilon:g}, {cap.delta:g}) | fixed beforehand | {told} |")
    print("|---|---|---|---|")
    for name, rounds in kinds().items():
        row = [beforehand(rounds, cap), *(held(rounds, each) for each in orders)]
        print("|", " | ".join([name, *map(str, row)]), "|", flush=True)
    shares = " | ".join(f"share {each:g}" for each in SHARES)
    print(f"\n| cap | usual order | divergence | most epsilon of one round | zCDP that is kept: {shares} |")
    print("|---" * (4 + len(SHARES)) + "|")
    for cap in CAPS:
        print("|", " | ".join(row_of(cap)), "|", flush=True)
    print("\n| mechanism | unit | part of its delta that a round charges: data | analysts |")
    print("|---|---|---|---|")
    for setting in (demo(), whole_analysts()):
        for name, mechanism in MECHANISMS.items():
            try:
                plan = mechanism.plan(setting)
            except (InvalidArgument, BudgetExhausted):
                continue
            data = delta_of(plan.data_events) / setting.data_budget.delta
            analysts = delta_of(plan.analyst_events) / setting.analyst_budget.delta
            print(f"| {name} | {setting.unit} | {data:.1g} | {analysts:.2g} |", flush=True)


def row_of(cap: Cap) -> list[str]:
    """One cap's figures: by shares of its delta that are kept for deltas, how much of all its zCDP is kept."""
    adding = at_order("cap", cap)
    order, most = adding.order or 0, limits(adding).divergence
    alone = epsilon_of_rho(most / RHO_UNIT / order, cap.delta)
    rho = largest_rho(cap.epsilon, cap.delta)
    kept = [
        max(largest_divergence(each, cap.epsilon, cap.delta * (1 - share)) / each for each in ORDERS) / rho
        for share in SHARES
    ]
    told = f"({cap.epsilon:g}, {cap.delta:g})"
    return [told, f"{order:g}", f"{most / RHO_UNIT:.3f}", f"{alone:.3f}", *(f"{each:.1%}" for each in kept)]


def delta_of(events: str) -> float:
    """What the parts of a charge cost in delta at an order of 20."""
    return charge_at(events_from_json(events), 20).delta / DELTA_UNIT


def demo() -> PublicParameters:
    """The demo's round."""
    asked = {airline: workload_of(airline) for airline in AIRLINES}
    return PublicParameters(
        records=RECORDS,
        universe_size=SCHEMA.universe_size,
        shares=tuple(Share(name, len(each), query_count(each)) for name, each in asked.items()),
        unit="query",
        data_budget=Budget(DATA_BUDGET.epsilon, DATA_BUDGET.delta),
        analyst_budget=Budget(1.0, 1e-6),
        beta=0.05,
        options={},
        attributes=tuple(attribute.size for attribute in SCHEMA.attributes),
    )


def whole_analysts() -> PublicParameters:
    """400 analysts of four statements each, all of which are protected."""
    return replace(
        demo(),
        records=200_000,
        universe_size=1024,
        attributes=(),
        shares=tuple(Share(f"analyst-{number}", 4, 4) for number in range(400)),
        unit="analyst",
        analyst_budget=Budget(4.0, 1e-6),
    )


def kinds() -> dict[str, Rounds]:
    """The parts of the demo's round by some mechanisms; two kinds are played by turns."""
    game, gaussian, laplace = (
        events_from_json(MECHANISMS[name].plan(demo()).data_events)
        for name in ("equilibrium", "gaussian", "laplace")
    )
    return {
        "equilibrium": [game],
        "gaussian": [gaussian],
        "laplace": [laplace],
        "equilibrium and laplace by turns": [game, laplace],
    }


def held(rounds: Rounds, cap: Cap) -> int:
    """How many fit on an account, as the ledger counts them."""
    costs, limit = [charge_at(parts, cap.order or 0) for parts in rounds], limits(cap)
    return count(costs, lambda total: fits(total, cap, limit))


def beforehand(rounds: Rounds, cap: Cap) -> int:
    """How many fit where rhos and pairs add, and their sum is converted at the order that is best for it."""
    return count([charge_of(parts) for parts in rounds], lambda total: epsilon_for(total, cap.delta) <= cap.epsilon)


def count(costs: Sequence[Cost], fitting: Callable[[Cost], bool]) -> int:
    """How many rounds fit, by turns."""
    total, found = Cost(), 0
    for cost in cycle(costs):
        total += cost
        if not fitting(total):
            return found
        found += 1
    return found


if __name__ == "__main__":
    main()
