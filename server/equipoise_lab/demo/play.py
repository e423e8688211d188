"""The demo's round, played by the operator and the airlines through a real server."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import WrongState
from equipoise.model.accounts import Account, Budget
from equipoise.model.rounds import AUTO, Plan, RoundDetail, RoundState, Terms
from equipoise.queries.statements import Statement
from equipoise.results import Results
from equipoise_lab.demo.table import RECORDS, SCHEMA
from equipoise_lab.demo.workloads import query_count, share_of

DATASET = "flights"
TABLE_FILE = "flights.csv"
DATA_BUDGET = Budget(1.0, 1 / RECORDS**2)
ANALYST_BUDGET = Budget(1.0, 1e-6)
BETA = 0.05
CAP_EPSILON = 3.0  # of both ledgers: something is left to try things with
CUT_AFTER = 1  # messages that arrive before one airline's connection is cut

Workloads = Mapping[str, tuple[Statement, ...]]
Report = Callable[[str], None]


@dataclass(frozen=True)
class Played:
    """What came of the round, as those who took part saw it.

    `seconds` from sealing until results could be read; `cut` is the airline
    whose connection was closed after `CUT_AFTER` messages and whose stream another connection resumed.
    """

    detail: RoundDetail
    results: Mapping[str, Results]
    data_account: Account
    analyst_accounts: Mapping[str, Account]
    seconds: float
    cut: str


def play(
    operator: Operator,
    profiles: Path,
    workloads: Workloads,
    report: Report,
    follow: Callable[[RoundDetail], None],
) -> Played:
    """Play a round from registration to the last result; `report` hears of its steps, `follow` of the run."""
    report("The operator registers the table and admits the airlines.")
    operator.register_dataset(
        DATASET,
        TABLE_FILE,
        SCHEMA,
        Budget(CAP_EPSILON, DATA_BUDGET.delta),
        Budget(CAP_EPSILON, ANALYST_BUDGET.delta),
    )
    for airline in workloads:
        operator.add_analyst(airline, profiles / airline)
    opened = operator.open(_terms(workloads))
    round_id = opened.round.id
    report(f"Round {round_id} is open. {_choice(opened.plan)}")
    with ThreadPoolExecutor(len(workloads)) as airlines:
        list(airlines.map(lambda airline: _submit(profiles / airline, round_id, workloads[airline]), workloads))
        report(f"{len(workloads)} airlines have submitted {sum(map(query_count, workloads.values())):,} queries.")
        start = time.monotonic()
        operator.seal(round_id)
        report("Sealed: both budgets are reserved. The worker process starts.")
        ran = operator.run_to_completion(round_id, follow)
        operator.release(round_id)
        for ended in airlines.map(lambda airline: _wait(profiles / airline, round_id), workloads):
            if ended is not RoundState.RELEASED:
                raise WrongState("the round was not released")
        seconds = time.monotonic() - start
        report("Released: every airline's stream opens at the same moment.")
        cut = next(iter(workloads))
        streams = {
            airline: airlines.submit(_read_cut if airline == cut else _read, profiles / airline, round_id)
            for airline in workloads
        }
        results = {airline: stream.result() for airline, stream in streams.items()}
        report(f"All results are in. {cut}'s connection was cut in the middle and its stream resumed.")
    accounts = {account.name: account for account in operator.accounts(DATASET)}
    return Played(
        detail=ran,
        results=results,
        data_account=accounts[f"data/{DATASET}"],
        analyst_accounts={airline: accounts[f"analyst/{DATASET}/query/{airline}"] for airline in workloads},
        seconds=seconds,
        cut=cut,
    )


def _terms(workloads: Workloads) -> Terms:
    return Terms(
        dataset=DATASET,
        shares=tuple(share_of(airline, asked) for airline, asked in workloads.items()),
        data_budget=DATA_BUDGET,
        analyst_budget=ANALYST_BUDGET,
        unit="query",
        beta=BETA,
        mechanism=AUTO,
    )


def _choice(plan: Plan) -> str:
    """Return what is known of the answers before any question."""
    return f"auto chose {plan.mechanism}, which is expected to err by {plan.expected_error:.5f} in the mean."


def _submit(profile: Path, round_id: str, statements: tuple[Statement, ...]) -> None:
    with Client.from_profile(profile) as client:
        client.submit(round_id, statements)


def _wait(profile: Path, round_id: str) -> RoundState:
    with Client.from_profile(profile) as client:
        return client.wait(round_id).state


def _read(profile: Path, round_id: str) -> Results:
    with Client.from_profile(profile) as client:
        return client.results(round_id)


def _read_cut(profile: Path, round_id: str) -> Results:
    """Reads the first messages, closes the connection under the stream, and resumes over another connection."""
    with Client.from_profile(profile) as client:
        stream = client.stream(round_id)
        first = [next(stream) for _ in range(CUT_AFTER)]
    with Client.from_profile(profile) as client:
        rest = client.stream(round_id, after=first[-1].sequence)
        return Results.collect(round_id, [*first, *rest])
