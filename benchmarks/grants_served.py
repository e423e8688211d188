"""A day of grants on the flights through a real server: what it costs by the journal, and how quick answers are.

    python benchmarks/grants_served.py [--analysts 20] [--long 100000]

Analysts ask at once, each one question after the other, and chosen by the answers so far. What they were told that
they paid is compared with the journal, and what that comes to with `dp_accounting`. Beside the time on the clock is
what the server's processes have computed, which another load on the machine does not change much. `--long` asks so
often in one grant, and prints each tenth as it is there: with 100,000, one answer takes some 10 ms.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
from dp_accounting import ZCDpEvent
from dp_accounting.rdp import RdpAccountant

from equipoise import Client
from equipoise.accounting import RHO_UNIT, Cost, ZcdpEvent, events_from_json
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal, Statement
from equipoise.verification.conversion import epsilon_of
from equipoise_lab.demo.process import free_address, serving
from equipoise_lab.demo.table import SCHEMA, unpack_table
from equipoise_server.admin.new_state import create_state

HUNDRED = Marginal(("month", "dep_delay"))  # 96 cells
GIVEN, CAP, DELTA = Budget(0.9, 1e-6), Budget(10.0, 1e-6), 1e-6
TIMES = 200


def course(client: Client, grant: str) -> Iterator[int]:
    """Asks as one analyst, who chooses each question by the answers so far. Yields what each question has cost."""
    (by_carrier,) = client.ask(grant, [Marginal(("carrier",))], error=300)
    yield by_carrier.cost
    values = [each.value for each in by_carrier.results]
    largest = sorted(range(len(values)), key=values.__getitem__)[-4:]
    names = SCHEMA.attribute("carrier").categories
    for place in largest:
        (answer,) = client.ask(grant, [Marginal(("month",), where=attribute("carrier") == names[place])], error=200)
        yield answer.cost
        if max(each.value for each in answer.results) > 0.01:
            (closer,) = client.ask(grant, [attribute("carrier") == names[place]], error=100)
            yield closer.cost
    for error in (400, 200, 200):
        (answer,) = client.ask(grant, [Marginal(("origin", "dep_delay"))], error=error)
        yield answer.cost


def served(analysts: int, long: int, place: Path) -> None:
    """Print the figures of a day of so many analysts."""
    state = place / "state"
    create_state(state, listen=free_address(), release_grid_seconds=1)
    unpack_table(state / "data" / "flights.csv")
    with serving(state, place / "log"), Operator.from_profile(state / "profiles" / "operator") as operator:
        operator.register_dataset("flights", "flights.csv", SCHEMA, CAP, CAP)
        names = [f"analyst-{number}" for number in range(analysts)]
        for name in names:
            operator.add_analyst(name, place / name)
        grants = {name: operator.give_grant("flights", name, GIVEN).round.id for name in names}
        waited: list[float] = []

        def day(name: str) -> int:
            paid, begin = 0, time.perf_counter()
            with Client.from_profile(place / name) as client:
                for cost in course(client, grants[name]):
                    paid += cost
                    now = time.perf_counter()
                    waited.append(now - begin)
                    begin = now
            return paid

        begin, computed = time.perf_counter(), processor_seconds()
        with ThreadPoolExecutor(analysts) as pool:
            paid = dict(zip(names, pool.map(day, names), strict=True))
        took, computed = time.perf_counter() - begin, processor_seconds() - computed
        print(f"{analysts} analysts at once, adaptively: {len(waited)} answers in {took:.1f} s, ", end="")
        print(f"of which the server computes {computed:.1f}")
        print(
            f"an answer took {statistics.median(waited):.2f} s in the median, at most {max(waited):.1f}", flush=True
        )
        with Client.from_profile(place / names[0]) as client:
            paid[names[0]] += quickness(client, grants[names[0]])
            if long:
                paid[names[0]] += length(client, grants[names[0]], long)
        begin = time.perf_counter()
        for name in names:
            operator.end_grant(grants[name])
        print(f"ended, computed again and released in {time.perf_counter() - begin:.1f} s", flush=True)
        history = list(operator.account_history("data/flights"))
    told = {entry.round_id: rho_of(entry.events) for entry in history if entry.action == "reduce"}
    assert {told[grants[name]] - Fraction(paid[name], RHO_UNIT) for name in names} == {0}, "the journal differs"
    total = sum(paid.values())
    ours = epsilon_of(Cost(rho=total), DELTA, None)
    print(f"spent in all: {total} units of 10^-12, in the journal the same for each analyst")
    print(f"epsilon {ours:.6f} at delta {DELTA:g}, by dp_accounting {theirs(total):.6f}")


def quickness(client: Client, grant: str) -> int:
    """Print how long answers to a marginal of 96 cells take, each for more than the last; return their cost."""
    alone, costs, begin, computed = [], 0, time.perf_counter(), processor_seconds()
    for number in range(TIMES):
        begin = time.perf_counter()
        costs += sum(answer.cost for answer in client.ask(grant, [HUNDRED], rho=1e-5 + number * 1e-6))
        alone.append(time.perf_counter() - begin)
    each = (processor_seconds() - computed) / TIMES
    together, computed = [time.perf_counter()], processor_seconds()
    for answer in client.ask(grant, [HUNDRED] * TIMES, rho=1e-5 + TIMES * 1e-6):
        together.append(time.perf_counter())
        costs += answer.cost
    known = (processor_seconds() - computed) / TIMES
    print(f"96 cells: the server computes {each * 1e3:.1f} ms if it is paid, {known * 1e3:.1f} ms if it is known")
    print(
        f"96 cells: median {statistics.median(alone) * 1e3:.1f} ms, asked one by one and paid; ",
        end="",
    )
    print(f"{statistics.median(np.diff(together)) * 1e3:.1f} ms in one stream, known already", flush=True)
    return costs


def length(client: Client, grant: str, long: int) -> int:
    """Print what the server computes for each of many answers in one grant, tenth by tenth; return their cost.

    No two questions are alike, and each is paid.
    """
    cost = 0
    tenth, marks = long // 10, [(time.perf_counter(), processor_seconds())]
    for number, answer in enumerate(client.ask(grant, different(tenth * 10), rho=1e-9, window=32), start=1):
        cost += answer.cost
        if number % tenth == 0:
            marks.append((time.perf_counter(), processor_seconds()))
            took, computed = (1e3 * (now - then) / tenth for then, now in zip(*marks[-2:], strict=True))
            print(f"{number:>9,} answers: {took:.1f} ms each, computed {computed:.1f} ms each", flush=True)
    clock, computed = (np.diff([mark[of] for mark in marks]) / tenth * 1e3 for of in (0, 1))
    print(f"{long} answers in one grant, by tenths: ", end="")
    print(", ".join(f"{each:.1f}" for each in clock), "ms each; ", end="")
    print("computed", ", ".join(f"{each:.1f}" for each in computed), "ms each", flush=True)
    return cost


def different(count: int) -> Iterator[Statement]:
    """Yields so many conditions: sets of carriers, in one month."""
    carriers, months = SCHEMA.attribute("carrier").categories, SCHEMA.attribute("month").categories
    for number in range(count):
        month, chosen = number % len(months), number // len(months) + 1
        among = [name for place, name in enumerate(carriers) if chosen >> place & 1]
        yield (attribute("carrier").isin(among)) & (attribute("month") == months[month])


def processor_seconds() -> float:
    """Return the processor time of all processes that this one has begun and that still run, in seconds."""
    parents, times = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(stat.parent.name)] = int(fields[1])
        times[int(stat.parent.name)] = int(fields[11]) + int(fields[12])
    own, found = {os.getpid()}, 0
    while grown := {each for each, parent in parents.items() if parent in own} - own:
        own |= grown
        found += sum(times[each] for each in grown)
    return found / os.sysconf("SC_CLK_TCK")


def rho_of(events: str) -> Fraction:
    """The rho of a journal entry."""
    return sum(
        (each.rho * each.times for each in events_from_json(events) if isinstance(each, ZcdpEvent)), Fraction(0)
    )


def theirs(total: int) -> float:
    """Returns the epsilon of a rho, as another accountant computes it."""
    # The less is spent, the larger the best order is.
    accountant = RdpAccountant(orders=[*(1 + number / 50 for number in range(1, 5000)), *range(101, 10_000)])
    return float(accountant.compose(ZCDpEvent(rho=total / RHO_UNIT)).get_epsilon(DELTA))


def main() -> None:
    """Print the figures of docs/grants.md."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--analysts", type=int, default=20)
    parser.add_argument("--long", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        served(options.analysts, options.long, Path(place))


if __name__ == "__main__":
    main()
