"""A server that is killed while an analyst asks of a grant: nothing is charged twice, and no answer changes."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.answers import flat
from harness.crash.dying_server import DyingServer, Persisting, dying_server, kept_alive

from equipoise.clients.analyst import Client
from equipoise.clients.giving import Offer, Renewal
from equipoise.clients.operator import Operator
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.model.accounts import Account, Budget
from equipoise.model.calendar import Period
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.storage.crash_points import CrashPoint

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
ROWS = [f"{('red', 'green')[row % 3 % 2]},{('s', 'm', 'l', 'xl')[row * row % 7 % 4]}" for row in range(400)]
CAP, GIVEN = Budget(10.0, 1e-3), Budget(1.0, 1e-6)
RED, TABLE = attribute("colour") == "red", Marginal(("colour", "size"))
# What is asked one after the other, each for how much; then the same question for more, and what is told already.
COURSE: list[tuple[Statement, float]] = [
    (RED, 1e-3),
    (TABLE, 2e-3),
    (RED, 1e-3),
    (RED, 3e-3),
    (Marginal(("size",)), 5e-4),
    (TABLE, 5e-3),
]
SEED = bytes(range(32))
NAMED = (
    CrashPoint.OPEN_WRITTEN,
    CrashPoint.OPEN_COMMITTED,
    CrashPoint.ANSWERS_WRITTEN,
    CrashPoint.ANSWERS_COMMITTED,
    CrashPoint.SEAL_WRITTEN,
    CrashPoint.SEAL_COMMITTED,
    CrashPoint.RUN_WRITTEN,
    CrashPoint.RUN_COMMITTED,
    CrashPoint.RUN_STARTED,
    CrashPoint.RESULTS_WRITTEN,
    CrashPoint.RESULTS_COMMITTED,
    CrashPoint.RELEASE_WRITTEN,
    CrashPoint.RELEASE_COMMITTED,
)

RENEWED = (
    CrashPoint.SCHEDULE_ROUNDS_WRITTEN,
    CrashPoint.SCHEDULE_ROUNDS_COMMITTED,
    CrashPoint.OPEN_WRITTEN,
    CrashPoint.OPEN_COMMITTED,
)


@dataclass(frozen=True)
class Lived:
    """All that came of a grant."""

    told: list[tuple[int, ...]]
    spent: int
    accounts: list[Account]
    journal: list[tuple[str, str]]


def live(server: DyingServer, profiles: Path, times: int = 1, deaths: int = 0) -> Lived:
    """A grant from its giving to its end; what is asked of it, so many times over, and until so many deaths."""
    (server.state / "data" / "shop.csv").write_text("\n".join(["colour,size", *ROWS]) + "\n")
    operator = Persisting(server, lambda: Operator.from_profile(server.state / "profiles" / "operator"))
    ann = Persisting(server, lambda: Client.from_profile(profiles / "ann"))
    operator.ask(lambda it: it.add_analyst("ann", profiles / "ann"))
    operator.ask(lambda it: it.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register"))
    grant = operator.ask(lambda it: it.give_grant("shop", "ann", GIVEN, request_id="give")).round.id

    def asked(statement: Statement, rho: float) -> StatementAnswer:
        return ann.ask(lambda it: list(it.ask(grant, [statement], rho=rho)))[0]

    told: list[tuple[int, ...]] = []
    while len(told) < times * len(COURSE) or server.deaths < deaths:
        told += [flat(asked(statement, rho).results.answers) for statement, rho in COURSE]
    (shown,) = ann.ask(lambda it: it.grants())
    assert shown.grant is not None
    operator.ask(lambda it: it.end_grant(grant))
    accounts = operator.ask(lambda it: list(it.accounts("shop")))
    history = operator.ask(lambda it: list(it.account_history("data/shop")))
    for caller in (operator, ann):
        caller.close()
    return Lived(
        told,
        shown.grant.spent,
        accounts,
        [(entry.action, entry.events) for entry in history if entry.action != "run"],
    )


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """What comes of it undisturbed."""
    directory = tmp_path_factory.mktemp("calm")
    with dying_server(directory, "sqlite", seed=SEED) as server, kept_alive(server):
        return live(server, directory)


@pytest.mark.full
def test_a_kill_while_a_renewed_grant_is_given_leaves_one_grant(tmp_path: Path, store_url: str) -> None:
    offer = Offer(dataset="shop", analyst="ann", budget=GIVEN, renewal=Renewal(Period.MONTHLY, Budget(5.0, 1e-4)))
    with dying_server(tmp_path, store_url, [point.value for point in RENEWED], SEED) as server, kept_alive(server):
        (server.state / "data" / "shop.csv").write_text("\n".join(["colour,size", *ROWS]) + "\n")
        operator = Persisting(server, lambda: Operator.from_profile(server.state / "profiles" / "operator"))
        operator.ask(lambda it: it.add_analyst("ann", tmp_path / "ann"))
        operator.ask(lambda it: it.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register"))
        given = operator.ask(lambda it: offer.give(it, "renewed")).round
        (schedule,) = operator.ask(lambda it: list(it.schedules()))
        grants = operator.ask(lambda it: list(it.rounds()))
        history = operator.ask(lambda it: list(it.account_history("data/shop")))
        assert server.left() == []
        operator.close()
    assert [each.round.id for each in grants] == [given.id] == list(schedule.round_ids)
    assert given.terms.close_time == schedule.next_time
    assert [entry.action for entry in history].count("reserve") == 1


@pytest.mark.full
def test_a_kill_at_every_point_of_a_grant_changes_nothing(calm: Lived, tmp_path: Path, store_url: str) -> None:
    with dying_server(tmp_path, store_url, [point.value for point in NAMED], SEED) as server:
        with kept_alive(server):
            lived = live(server, tmp_path)
        assert server.left() == []
        assert server.deaths == len(NAMED)
    assert lived == calm
    assert [action for action, _ in lived.journal][-3:] == ["reserve", "reduce", "spend"]
    verify(tmp_path / "state")


@pytest.mark.nightly
def test_random_kills_charge_a_grant_nothing_twice(calm: Lived, tmp_path: Path, store_url: str) -> None:
    """Lives of a second or so, while the same is asked again and again: the first time counts, and only that."""
    drawn, done = random.Random(2026), threading.Event()
    with dying_server(tmp_path, store_url, seed=SEED) as server:

        def killed() -> None:
            while not done.is_set():
                server.live(1.0 + 2 * drawn.random() if server.deaths < 12 else None)

        with ThreadPoolExecutor(1) as pool:
            killing = pool.submit(killed)
            try:
                lived = live(server, tmp_path, times=8, deaths=3)
            finally:
                done.set()
                server.stop()
            killing.result()
    assert lived.told[: len(COURSE)] == calm.told
    # From the second time on, what was asked for less and for more has the answer to the larger offer.
    for place in range(len(COURSE)):
        later = lived.told[place + len(COURSE) :: len(COURSE)]
        assert later == [lived.told[place - len(COURSE)]] * len(later)
    assert (lived.spent, lived.accounts, lived.journal) == (calm.spent, calm.accounts, calm.journal)
