"""A kill at every named point, with clients that ask again: as if nothing had happened."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from crash.dying_server import SECONDS, DyingServer, dying_server, persisting
from numpy.typing import NDArray

from equipoise.client import Client
from equipoise.operator_client import Operator
from equipoise.queries import Marginal, Statement, attribute
from equipoise.results import Results
from equipoise.schema import Attribute, Schema
from equipoise.views import Account, Budget, RoundState, Share, Terms
from equipoise_server.repairing import verify
from equipoise_server.storage.crash_points import CrashPoint

SCHEMA = Schema((Attribute("colour", ("red", "green")), Attribute("size", ("s", "m", "l", "xl"))))
ASKED: dict[str, list[Statement]] = {
    "ann": [attribute("colour") == "red", Marginal(("colour", "size"))],
    "bob": [Marginal(("size",))],
}
CAP, LARGER = Budget(20.0, 1e-3), Budget(25.0, 1e-3)
TERMS = Terms("shop", tuple(Share(name, 3, 12) for name in ASKED), Budget(8.0, 1e-4), Budget(8.0, 1e-4))
# These are reached while no server runs.
OFFLINE = {CrashPoint.WRITE_OFF_WRITTEN, CrashPoint.WRITE_OFF_COMMITTED}


@dataclass(frozen=True)
class Played:
    """All that came of a scenario."""

    results: dict[str, Results]
    synopsis: NDArray[np.int64]
    accounts: list[Account]
    journal: list[tuple[str, str]]


def play(server: DyingServer, profiles: Path) -> Played:
    """Everything that anybody can ask for, one thing after the other, each until it is answered."""
    rows = [f"{('red', 'green')[row % 3 % 2]},{('s', 'm', 'l', 'xl')[row * row % 7 % 4]}" for row in range(400)]
    (server.state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")
    with Operator.from_profile(server.state / "profiles" / "operator") as operator:
        for name in ASKED:
            persisting(lambda name=name: operator.add_analyst(name, profiles / name))  # type: ignore[misc]
        persisting(lambda: operator.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register"))
        persisting(lambda: operator.set_cap("data/shop", LARGER, "cap"))
        first = persisting(lambda: operator.open(TERMS, "open")).round.id
        ann, bob = Client.from_profile(profiles / "ann"), Client.from_profile(profiles / "bob")
        with ann, bob:
            persisting(lambda: ann.submit(first, ASKED["bob"], "1"))
            persisting(lambda: ann.withdraw(first, "2"))
            persisting(lambda: ann.submit(first, ASKED["ann"], "3"))
            persisting(lambda: bob.submit(first, ASKED["bob"], "1"))
            persisting(lambda: operator.seal(first, "seal"))
            persisting(lambda: operator.run(first, "run"))
            end = time.monotonic() + SECONDS
            while not persisting(lambda: operator.round(first)).progress.complete:
                assert time.monotonic() < end
                time.sleep(0.1)
            persisting(lambda: operator.release(first, "release"))
            assert persisting(lambda: ann.wait(first)).state is RoundState.RELEASED
            second = persisting(lambda: operator.open(TERMS, "open again")).round.id
            persisting(lambda: bob.submit(second, ASKED["bob"], "4"))
            persisting(lambda: operator.seal(second, "seal again"))
            persisting(lambda: operator.abort(second, "a public reason", "abort"))
            persisting(lambda: operator.retire_dataset("shop", "retire"))
            results = {
                "ann": persisting(lambda: ann.results(first, ASKED["ann"])),
                "bob": persisting(lambda: bob.results(first, ASKED["bob"])),
            }
            synopsis = persisting(lambda: ann.synopsis(first))
        accounts = persisting(lambda: list(operator.accounts("shop")))
        journal = [
            (entry.action, entry.account)
            for account in accounts
            for entry in persisting(lambda account=account: list(operator.account_history(account.name)))  # type: ignore[misc]
        ]
    return Played(results, synopsis, accounts, journal)


def test_a_kill_at_every_point_changes_nothing(tmp_path: Path) -> None:
    for name in ("calm", "dying"):
        (tmp_path / name).mkdir()
    with dying_server(tmp_path / "calm", []) as server:
        calm = play(server, tmp_path / "calm")
        assert server.deaths == 0
    points = [point.value for point in CrashPoint if point not in OFFLINE]
    with dying_server(tmp_path / "dying", points) as server:
        played = play(server, tmp_path / "dying")
        # Each point was reached, and survived.
        assert server.left() == []
        assert server.deaths == len(points)
    for name, expected in calm.results.items():
        for column in ("raw_values", "methods", "raw_bounds"):
            np.testing.assert_array_equal(getattr(played.results[name], column), getattr(expected, column))
    np.testing.assert_array_equal(played.synopsis, calm.synopsis)
    # Not under-counted, and not over-counted either; and nothing was done twice.
    assert played.accounts == calm.accounts
    assert played.journal == calm.journal
    assert verify(tmp_path / "dying" / "state")["accounts"] == len(calm.accounts)
