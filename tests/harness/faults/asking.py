"""A deployment on a disk of its own, all that clients ask of it, and what its store must then contain."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.waiting import pauses

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share, Terms
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise_server.admin.checks import check_state
from equipoise_server.admin.new_state import create_state

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
RUN_SECONDS = 120

RELEASED = (
    "SELECT id, analyst, sequence, chunk FROM rounds JOIN result_chunks USING (run_id) "
    "ORDER BY position, analyst, sequence"
)
# What a request leaves in the journal.
JOURNALED = {
    "register": "open-account",
    "cap": "set-cap",
    "seal": "reserve",
    "run": "run",
    "release": "spend",
    "abort": "release",
}

# A request's id and how it is sent; what is sent back into the generator is its answer.
Requests = Generator[tuple[str, Callable[[], Any]], Any, None]


def make_deployment(state: Path) -> None:
    """A state directory with a table, and a port that stays the same over restarts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    create_state(state, listen=f"127.0.0.1:{port}", release_grid_seconds=1)
    rows = [f"{('red', 'green')[row % 3 % 2]},{('s', 'm', 'l', 'xl')[row * row % 7 % 4]}" for row in range(400)]
    (state / "data" / "shop.csv").write_text("\n".join(["colour,size", *rows]) + "\n")


def requests(state: Path, profiles: Path) -> Requests:
    """Every call that changes something, in the order of a round's life."""
    with Operator.from_profile(state / "profiles" / "operator") as operator:
        for name in ASKED:
            yield f"admit {name}", partial(operator.add_analyst, name, profiles / name, f"admit {name}")
        yield (
            "register",
            lambda: operator.register_dataset(
                "shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS
            ),
        )
        yield "cap", lambda: operator.set_cap("data/shop", LARGER, "cap", LARGE_CAPS)
        with Client.from_profile(profiles / "ann") as ann, Client.from_profile(profiles / "bob") as bob:
            first = (yield "open", lambda: operator.open(TERMS, "open")).round.id
            yield "ann 1", lambda: ann.submit(first, ASKED["bob"], "ann 1")
            yield "ann 2", lambda: ann.withdraw(first, "ann 2")
            yield "ann 3", lambda: ann.submit(first, ASKED["ann"], "ann 3")
            yield "bob 1", lambda: bob.submit(first, ASKED["bob"], "bob 1")
            yield "seal", lambda: operator.seal(first, "seal")
            yield "run", lambda: operator.run(first, "run")
            _wait(operator, first)
            yield "release", lambda: operator.release(first, "release")
            ann.wait(first)
            assert len(list(ann.results(first, ASKED["ann"]))) == 9
            second = (yield "open again", lambda: operator.open(TERMS, "open again")).round.id
            yield "bob 2", lambda: bob.submit(second, ASKED["bob"], "bob 2")
            yield "seal again", lambda: operator.seal(second, "seal again")
            yield "abort", lambda: operator.abort(second, "a public reason", "abort")
            yield "retire", lambda: operator.retire_dataset("shop", "retire")


def _wait(operator: Operator, round_id: str) -> None:
    """Until the round is computed; where the disk failed meanwhile, it is run again."""
    pause = pauses(RUN_SECONDS)
    while not (progress := operator.round(round_id).progress).complete:
        if progress.phase.startswith("failed"):
            operator.run(round_id)
        time.sleep(next(pause))


@dataclass(frozen=True)
class Contents:
    """What can be found in a store: requests with their answers, the journal, workloads, released messages."""

    answers: dict[str, str]
    journal: list[tuple[Any, ...]]
    submissions: set[tuple[str, str, bytes]]
    messages: list[tuple[str, str, int, bytes]]

    @classmethod
    def of(cls, state: Path) -> Contents:
        """Those of a deployment that no server uses."""
        with closing(sqlite3.connect(state / "equipoise.db")) as connection:
            return cls(
                dict(connection.execute("SELECT request_id, answer FROM requests")),
                list(connection.execute("SELECT * FROM journal ORDER BY sequence")),
                set(connection.execute("SELECT round_id, analyst, digest FROM submissions")),
                list(connection.execute(RELEASED)),
            )


def check_image(image: Path, acknowledged: list[str], final: Contents) -> None:
    """A server would start on what the power loss left, and finds everything that it had acknowledged.

    `final` is what the store held in the end: nothing of it was ever taken back.
    """
    # As at a start: settings, migration, guard, the journal's chain, and every account against it.
    check_state(image)
    found = Contents.of(image)
    for request in acknowledged:
        assert found.answers.get(request) == final.answers[request], f"the answer to {request!r} is missing"
    # What a request did is in the transaction of its answer, so what the answers promise is here, too.
    assert found.journal == final.journal[: len(found.journal)]
    actions = [entry[2] for entry in found.journal]
    for request in found.answers.keys() & JOURNALED.keys():
        assert JOURNALED[request] in actions, f"{request!r} was answered without {JOURNALED[request]!r}"
    if "seal" in found.answers:
        first = json.loads(found.answers["seal"])["round"]
        assert {each for each in final.submissions if each[0] == first} <= found.submissions
    assert found.messages == (final.messages if "release" in found.answers else [])
