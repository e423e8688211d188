"""A kill at every named point, with clients that ask again: as if nothing had happened."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from harness.answers import flat
from harness.crash.dying_server import KILLED, SECONDS, DyingServer, Persisting, dying_server, kept_alive
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.preloaded import start
from harness.rounds_bench import Bench, HandClock
from harness.server_process import make_state
from harness.stores import back_up, restore
from harness.waiting import until
from sqlalchemy import select

from equipoise.clients.analyst import Client
from equipoise.clients.auditor import Auditor
from equipoise.clients.operator import Operator
from equipoise.clients.statement_answer import StatementAnswer
from equipoise.errors import NotAuthenticated
from equipoise.model.accounts import Account, Budget
from equipoise.model.calendar import Period
from equipoise.model.datasets import DatasetState
from equipoise.model.rounds import RoundState, SessionTerms, Share, Terms
from equipoise.model.synopsis import Synopsis
from equipoise.profile.enrolment import begin, install
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.results import Results
from equipoise_server.admin.ledger_repair import verify
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock
from equipoise_server.storage.crash_points import CrashPoint
from equipoise_server.storage.tables.transparency import records

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
ASKED: dict[str, list[Statement]] = {
    "ann": [attribute("colour") == "red", Marginal(("colour", "size"))],
    "bob": [Marginal(("size",))],
}
CAP, LARGER = Budget(20.0, 1e-3), Budget(25.0, 1e-3)
TERMS = Terms(
    "shop",
    tuple(Share(name, 3, 12) for name in ASKED),
    Budget(8.0, 1e-4),
    Budget(8.0, 1e-4),
    mechanism="equilibrium",  # which charges everybody and makes a synopsis
    accepted=SMALL_TABLE,
)
SESSION = replace(TERMS, mechanism="online", shares=TERMS.shares[:1], session=SessionTerms())
SEED = bytes(range(32))
AUDITOR = "/equipoise.v1.AuditorService"
# These are reached while no server runs, by the command that writes off, in this order; then the guard's.
OFFLINE = (CrashPoint.WRITE_OFF_WRITTEN, CrashPoint.WRITE_OFF_COMMITTED)
GUARD = (CrashPoint.GUARD_DIGESTS_KEPT, CrashPoint.GUARD_PREPARED, CrashPoint.GUARD_ADVANCED)
# Of the authority: tests/unit/admin/test_authority_exchange.py cuts off each.
EXCHANGING = (
    CrashPoint.PAIR_PREPARED,
    CrashPoint.PAIR_EXCHANGED,
    CrashPoint.REISSUE_WRITTEN,
    CrashPoint.REISSUE_COMMITTED,
    CrashPoint.RETIRE_AUTHORITY_WRITTEN,
    CrashPoint.RETIRE_AUTHORITY_COMMITTED,
)
# And these by commands that exchange keys: unit/app/test_rotating.py crashes there.
ROTATING = (CrashPoint.KEY_MADE, CrashPoint.KEY_WRITTEN, CrashPoint.KEY_COMMITTED)
# The command is run once for each of the points, which kills it, and once more; tells how each run ended.
WRITING_OFF = """
import os, signal, sys
from equipoise_server.cli import main
from equipoise_server.storage.crash_points import install_hook

for deadly in (*sys.argv[2:], None):
    def die(point):
        if point.value == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    if (child := os.fork()) == 0:
        with install_hook(die):
            main(["ledger", "write-off", "--state", sys.argv[1], "--json"])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class Played:
    """All that came of a scenario."""

    results: dict[str, Results]
    synopsis: Synopsis
    accounts: list[Account]
    journal: list[tuple[str, str]]
    recorded: list[str]


def play(server: DyingServer, profiles: Path) -> Played:
    """Everything that anybody can ask for, one thing after the other, each until it is answered."""
    rows = [f"{('red', 'green')[row % 3 % 2]},{('s', 'm', 'l', 'xl')[row * row % 7 % 4]}" for row in range(400)]
    (server.state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    operator = Persisting(server, lambda: Operator.from_profile(server.state / "profiles" / "operator"))
    ann = Persisting(server, lambda: Client.from_profile(profiles / "ann"))
    bob = Persisting(server, lambda: Client.from_profile(profiles / "bob"))
    auditor = Persisting(server, lambda: Auditor.from_profile(server.state / "profiles" / "auditor"))
    for name in (*ASKED, "cyd"):
        operator.ask(lambda it, name=name: it.add_analyst(name, profiles / name))  # type: ignore[misc]
    renewal = begin(profiles / "cyd")
    renewed = operator.ask(lambda it: it.renew_analyst("cyd", renewal))
    assert operator.ask(lambda it: it.renew_analyst("cyd", renewal)) == renewed
    install(profiles / "cyd", renewed)
    cyd = Persisting(server, lambda: Client.from_profile(profiles / "cyd"))
    assert cyd.ask(lambda it: it.identity()).name == "cyd"
    operator.ask(lambda it: it.revoke_analyst("cyd", "revoke"))
    with pytest.raises(NotAuthenticated):
        cyd.ask(lambda it: it.identity())
    operator.ask(lambda it: it.delete_analyst("cyd", "delete"))
    assert [each.name for each in operator.ask(lambda it: list(it.analysts()))] == list(ASKED)
    operator.ask(
        lambda it: it.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS)
    )
    operator.ask(lambda it: it.set_cap("data/shop", LARGER, "cap", LARGE_CAPS))
    ask_for_a_grant(operator, ann)
    make_a_schedule_and_stop_it(operator)
    first = operator.ask(lambda it: it.open(TERMS, "open")).round.id
    ann.ask(lambda it: it.submit(first, ASKED["bob"], "1"))
    ann.ask(lambda it: it.withdraw(first, "2"))
    ann.ask(lambda it: it.submit(first, ASKED["ann"], "3"))
    bob.ask(lambda it: it.submit(first, ASKED["bob"], "1"))
    auditor.ask(lambda it: it.set_nonce(first, SEED, "nonce"))
    operator.ask(lambda it: it.seal(first, "seal"))
    operator.ask(lambda it: it.run(first, "run"))
    until(lambda: operator.ask(lambda it: it.round(first)).progress.complete, SECONDS)
    operator.ask(lambda it: it.release(first, "release"))
    assert ann.ask(lambda it: it.wait(first)).state is RoundState.RELEASED
    second = operator.ask(lambda it: it.open(TERMS, "open again")).round.id
    bob.ask(lambda it: it.submit(second, ASKED["bob"], "4"))
    operator.ask(lambda it: it.seal(second, "seal again"))
    operator.ask(lambda it: it.abort(second, "a public reason", "abort"))
    told = ask_in_a_session(operator, ann)
    update_and_retire(operator, server.state / "data", rows)
    results = {
        "ann": ann.ask(lambda it: it.results(first, ASKED["ann"])),
        "bob": bob.ask(lambda it: it.results(first, ASKED["bob"])),
        **{f"ann's {each.sequence}": each.results for each in told},
    }
    synopsis = ann.ask(lambda it: it.synopsis(first))
    assert len(auditor.ask(lambda it: it.sealed_seeds(first))) == 1
    accounts = operator.ask(lambda it: list(it.accounts("shop")))
    journal = [
        (entry.action, entry.account)
        for account in accounts
        for entry in operator.ask(lambda it, account=account: list(it.account_history(account.name)))  # type: ignore[misc]
    ]
    assert operator.ask(lambda it: it.delete_dataset("shop", "forget")).state is DatasetState.DELETED
    for caller in (operator, ann, bob, cyd, auditor):
        caller.close()
    return Played(results, synopsis, accounts, journal, recorded(server.state))


def ask_for_a_grant(operator: Persisting[Operator], ann: Persisting[Client]) -> None:
    """A request, which is declined."""
    wish = ann.ask(lambda it: it.request_grant("shop", "For the report.", request_id="wish"))
    declined = operator.ask(
        lambda it: it.decide_grant_request("ann", wish.number, answer="Not now.", request_id="decline")
    )
    assert [declined] == ann.ask(lambda it: list(it.grant_requests()))


def make_a_schedule_and_stop_it(operator: Persisting[Operator]) -> None:
    """A schedule, of which nothing is due."""
    far = datetime(2999, 1, 1, tzinfo=UTC)
    made = operator.ask(lambda it: it.schedule(TERMS, Period.MONTHLY, far, CAP, request_id="schedule"))
    stopped = operator.ask(lambda it: it.stop_schedule(made.id, "stop"))
    assert [stopped] == operator.ask(lambda it: list(it.schedules()))


def update_and_retire(operator: Persisting[Operator], tables: Path, rows: list[str]) -> None:
    """Another version of the table, which takes no rounds any more."""
    (tables / "newer.csv").write_text("\n".join(["colour,size", *rows, rows[0]]) + "\n")
    newer = operator.ask(lambda it: it.update_dataset("shop", "newer.csv", request_id="update"))
    assert (newer.version, newer.account) == (2, "shop")
    operator.ask(lambda it: it.retire_dataset("shop", "retire"))


def ask_in_a_session(operator: Persisting[Operator], ann: Persisting[Client]) -> list[StatementAnswer]:
    """All that is answered in a session, which is charged for good, also where it comes to nothing."""
    session = operator.ask(lambda it: it.open_session(SESSION, "open a session")).round.id
    told, again = (ann.ask(lambda it: list(it.ask(session, ASKED["ann"], after=0))) for _ in range(2))
    # Asked for once more, all is told from the store.
    assert [each.receipt for each in again] == [each.receipt for each in told]
    operator.ask(lambda it: it.close_session(session, "close"))
    operator.ask(lambda it: it.abort(session, "a public reason", "abort the session"))
    return told


def recorded(state: Path) -> list[str]:
    """The kinds of all records, in their order."""
    store = open_deployment(state, system_clock()).open_store()
    try:
        with store.read() as connection:
            return list(connection.execute(select(records.c.kind).order_by(records.c.position)).scalars())
    finally:
        store.close()


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """What comes of it undisturbed; on whatever store, as the comparison shows."""
    directory = tmp_path_factory.mktemp("calm")
    with dying_server(directory, "sqlite", seed=SEED) as server, kept_alive(server):
        played = play(server, directory)
    assert server.deaths == 0
    return played


@pytest.mark.full
def test_a_kill_at_every_point_changes_nothing(calm: Played, tmp_path: Path, store_url: str) -> None:
    points = [point.value for point in CrashPoint if point not in (*OFFLINE, *EXCHANGING, *ROTATING)]
    with dying_server(tmp_path, store_url, points, SEED) as server:
        with kept_alive(server):
            played = play(server, tmp_path)
        # Each point was reached, and survived.
        assert server.left() == []
        assert server.deaths == len(points)
    for name, expected in calm.results.items():
        assert flat(played.results[name].answers) == flat(expected.answers)
    np.testing.assert_array_equal(played.synopsis.cells, calm.synopsis.cells)
    # Not under-counted, and not over-counted either; and nothing was done twice.
    assert played.accounts == calm.accounts
    assert played.journal == calm.journal
    # But that a seed was given is said each time that it may have been.
    assert list(dict.fromkeys(played.recorded)) == list(dict.fromkeys(calm.recorded))
    assert len(played.recorded) == len(calm.recorded) + 1
    assert verify(tmp_path / "state")["accounts"] == len(calm.accounts)


@pytest.mark.full
def test_a_write_off_killed_at_every_point_and_run_again_counts_nothing_twice(
    tmp_path: Path, store_url: str
) -> None:
    state, sqlite = tmp_path / "state", store_url.startswith("sqlite")
    make_state(state, store="sqlite:///equipoise.db" if sqlite else store_url)
    url = f"sqlite:///{state / 'equipoise.db'}" if sqlite else store_url
    bench = Bench(state, url, HandClock(datetime.now(UTC)))
    bench.stop()
    copy = back_up(url)
    bench.restart()
    bench.sealed()
    before = bench.charged()
    bench.stop()
    restore(url, copy)
    points = [*OFFLINE, *GUARD]
    log = tmp_path / "writing_off.log"
    with (
        log.open("w") as errors,
        start(WRITING_OFF, state, *points, stderr=errors, stdout=subprocess.PIPE, workers=False) as program,
    ):
        assert program.stdout is not None
        *killed, told, code = program.stdout.read().splitlines()
        assert program.wait() == 0, log.read_text()
    assert (killed, code) == ([str(KILLED)] * len(points), "0"), log.read_text()
    assert json.loads(told)["finding"] == "contained"
    verify(state)
    bench.restart()
    bench.sealed()
    # What was reserved is spent, once. The analysts' accounts, which the copy did not know, begin with it.
    assert {name: spent for name, (spent, _) in bench.charged().items()} == {
        name: committed for name, (_, committed) in before.items()
    }
    bench.stop()
