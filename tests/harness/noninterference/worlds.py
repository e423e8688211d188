"""Worlds that differ in what ann does: a real server each, with the same rounds, seeds and times.

The server's clock stands still but where the test moves it, so times are compared to the microsecond. How long a
run takes is seen as the point of the public grid at which its results open, and as nothing else.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
from cryptography.hazmat.primitives.asymmetric import ec
from google.protobuf.timestamp_pb2 import Timestamp
from harness.dangers import LARGE_CAPS_SENT, SMALL_TABLE_SENT
from harness.noninterference.conducts import (
    QUERIES,
    SENSITIVITY,
    STATEMENTS,
    Ann,
    Conduct,
)
from harness.noninterference.looking import OWN, VIEWERS, Viewers, Watched, Watcher
from harness.noninterference.wire_view import PATIENCE
from harness.rounds_bench import SCHEMA, write_table
from harness.server_process import (
    HURRIED,
    Credentials,
    ServerProcess,
    key_to_pem,
    make_state,
    running,
    signing_request,
)
from harness.standing_rounds import MEASURE
from harness.waiting import until
from sqlalchemy import select

from equipoise.v1 import operator_pb2, operator_pb2_grpc, types_pb2
from equipoise.wire.terms import terms_to_message
from equipoise.wire.workloads import schema_to_message
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.storage.tables.transparency import records

# Seeds count up from the number that the server is given, one a round. `fault`: a statement that breaks the server.
SCRIPT = """
import asyncio, datetime, itertools, pathlib, sys
from equipoise_server.app import serve

if __name__ == "__main__":
    state, numbers = pathlib.Path(sys.argv[1]), itertools.count(int(sys.argv[2], 16))
    {fault}
    asyncio.run(serve(
        state,
        seeds=lambda: next(numbers).to_bytes(32, "big"),
        clock=lambda: datetime.datetime.fromisoformat((state / "clock").read_text()),
        ready=lambda port: print(port, flush=True),
    ))
"""
GRID_SECONDS = 60
CLOSING_SECONDS = 30  # after a world's begin: of rounds that close by themselves
SHARES = ("ann", *OWN)
CAP = types_pb2.Budget(epsilon=50.0, delta=1e-2)


@dataclass(frozen=True)
class RoundOf:
    """A round that every world has. `perfect`: its mechanism answers each analyst whatever the others ask."""

    mechanism: str
    unit: str
    perfect: bool
    options: str = ""
    closes: bool = False

    @property
    def name(self) -> str:
        """What the test calls it."""
        return f"{self.mechanism}, unit = {self.unit}"

    def terms(self, begin: datetime) -> types_pb2.RoundTerms:
        """What the operator opens."""
        close = Timestamp()
        close.FromDatetime(begin + timedelta(seconds=CLOSING_SECONDS))
        share = {"statements": STATEMENTS, "queries": QUERIES, "sensitivity": SENSITIVITY}
        return types_pb2.RoundTerms(
            dataset="shop",
            unit=types_pb2.ProtectionUnit.Value(f"PROTECTION_UNIT_{self.unit.upper()}"),
            data_budget=types_pb2.Budget(epsilon=1.0, delta=1e-4),
            analyst_budget=types_pb2.Budget(epsilon=8.0, delta=1e-4),
            beta=0.05,
            mechanism=self.mechanism,
            shares=[types_pb2.Share(analyst=name, **share) for name in SHARES],
            options=self.options,
            close_time=close if self.closes else None,
            release_grid_seconds=GRID_SECONDS,
            accepted=SMALL_TABLE_SENT,
        )


@dataclass
class World:
    """One server and all who talk to it, from the opening of its rounds to their release."""

    server: ServerProcess
    begin: datetime
    operator: operator_pb2_grpc.OperatorServiceStub
    ann: grpc.Channel
    viewers: Viewers
    rounds: Sequence[RoundOf]
    watchers: Sequence[Watcher] = ()

    def open(self) -> None:
        """The operator opens every round; bob watches each; bob and cyd submit."""
        self._move(0)
        opened = []
        for each in self.rounds:
            request = operator_pb2.OpenRoundRequest(terms=each.terms(self.begin), request_id=fresh())
            shown = self.operator.OpenRound(request).detail.round
            opened.append(Watched(each.name, shown.id, shown.seed_commitment, each.perfect))
        self.viewers.rounds = opened
        self.watchers = [Watcher(self.viewers, each) for each in opened]
        self._watched(1)
        self.viewers.submit()

    def measure(self) -> None:
        """The server makes a standing measurement and releases it: later grants are combined with it."""
        terms = terms_to_message(replace(MEASURE, release_grid_seconds=GRID_SECONDS))
        request = operator_pb2.OpenRoundRequest(terms=terms, request_id="measure")
        self.viewers.measurement = self.operator.OpenRound(request).detail.round.id
        self._released(self.viewers.measurement)
        self._move(GRID_SECONDS)

    def ask(self, conducts: Sequence[Conduct]) -> None:
        """Ann acts, in one way in each round; the others look, go and come back."""
        for each, conduct in zip(self.viewers.rounds, conducts, strict=True):
            conduct(Ann(self.ann, each.round_id))
        self.viewers.look("open")
        self.viewers.withdraw()

    def seal(self) -> None:
        """By the operator, or by the closing time."""
        self._move(CLOSING_SECONDS)
        for round_id in self._led():
            self.operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id=fresh()))
        self._watched(2)
        self.viewers.look("sealed")

    def release(self) -> None:
        """All rounds are computed and released; their streams open at the next point of the grid."""
        for round_id in self._led():
            self.operator.RunRound(operator_pb2.RunRoundRequest(round_id=round_id, request_id=fresh()))
        for round_id in self._led():
            wait_until_computed(self.operator, round_id)
            self.operator.ReleaseRound(operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id=fresh()))
        for each in self.viewers.rounds:
            self._released(each.round_id)
        self.viewers.look("released")
        self._move(GRID_SECONDS + CLOSING_SECONDS)
        for watcher in self.watchers:
            watcher.end()
        self.viewers.look("readable")

    def accounts(self) -> list[bytes]:
        """What stands on every account: what later rounds may cost, and so whether they are refused."""
        request = operator_pb2.ListAccountsRequest(dataset="shop")
        return [account.SerializeToString() for account in self.operator.ListAccounts(request).accounts]

    def log(self) -> list[bytes]:
        """What anybody may learn of the log: each leaf's kind and size, and since when it has been there.

        Not the order of those of one time: the server seals some of the rounds while the operator seals others.
        """
        columns = records.c.publish_time, records.c.leaf
        store = open_deployment(self.server.state, self.begin).open_store()
        try:
            with store.read() as connection:
                rows = connection.execute(select(*columns).where(records.c.log_index.is_not(None))).all()
        finally:
            store.close()
        shown = [(row.publish_time, json.loads(row.leaf) | {"root": ""}) for row in rows]
        return sorted(repr(each).encode() for each in shown)

    def _move(self, seconds: float) -> None:
        set_clock(self.server.state, self.begin + timedelta(seconds=seconds))

    def _led(self) -> list[str]:
        """The rounds whose steps the operator takes."""
        both = zip(self.rounds, self.viewers.rounds, strict=True)
        return [opened.round_id for each, opened in both if not each.closes]

    def _watched(self, messages: int) -> None:
        for watcher in self.watchers:
            watcher.wait(messages)

    def _released(self, round_id: str) -> None:
        """Where the server releases by itself, too."""
        request = operator_pb2.GetRoundRequest(round_id=round_id)
        released = types_pb2.ROUND_STATE_RELEASED
        until(lambda: self.operator.GetRound(request).detail.round.state == released, PATIENCE)


@contextmanager
def world(
    place: Path, begin: datetime, rounds: Sequence[RoundOf], fault: str = "pass", seed: int = 1
) -> Iterator[World]:
    """A new server with its dataset and its people; no round is open yet."""
    state = make_state(place, ['log_level = "debug"', *HURRIED], clock=lambda: begin)
    write_table(state / "data")
    set_clock(state, begin)
    with (
        running(state, seed.to_bytes(32, "big"), SCRIPT.format(fault=fault)) as server,
        ExitStack() as stack,
    ):

        def channel(credentials: Credentials) -> grpc.Channel:
            return stack.enter_context(server.blocking_channel(credentials))

        operator = operator_pb2_grpc.OperatorServiceStub(channel(server.operator()))
        channels = {name: channel(admitted(operator, name)) for name in ("ann", *VIEWERS)}
        operator.RegisterDataset(
            operator_pb2.RegisterDatasetRequest(
                name="shop",
                source="shop.csv",
                schema=schema_to_message(SCHEMA),
                data_cap=CAP,
                analyst_cap=CAP,
                request_id="register",
                accepted=[*LARGE_CAPS_SENT, types_pb2.DANGER_DELTA],
            )
        )
        yield World(server, begin, operator, channels.pop("ann"), Viewers(channels, ()), rounds)


def wait_until_computed(operator: operator_pb2_grpc.OperatorServiceStub, round_id: str) -> None:
    """Until a round that was started waits for its release."""
    for response in operator.WatchRound(operator_pb2.WatchRoundRequest(round_id=round_id), timeout=PATIENCE):
        progress = response.detail.progress
        assert not progress.phase.startswith("failed"), progress.phase
        if progress.complete:
            return


def admitted(operator: operator_pb2_grpc.OperatorServiceStub, name: str) -> Credentials:
    """A new analyst's way in."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = operator_pb2.AddAnalystRequest(
        name=name, signing_request=signing_request(key), request_id=f"admit {name}"
    )
    response = operator.AddAnalyst(request)
    return Credentials(response.authority, response.certificate, key_to_pem(key))


def fresh() -> str:
    """A request that was never made before."""
    return secrets.token_hex(8)


def set_clock(state: Path, now: datetime) -> None:
    """Replaced as a whole, so that the server never reads half of it."""
    (state / "clock.new").write_text(now.isoformat())
    (state / "clock.new").replace(state / "clock")


DAY = datetime.now(UTC).replace(microsecond=0)  # of every world; certificates are valid from then on


def nothing_of_analysts_is_logged(made: World) -> None:
    """What was asked is nowhere, at the level that tells most; who did something, in the audit trail only."""
    log = made.server.log()
    assert "refused" in log
    assert not re.findall(r"\b(colour|green|red|xl)\b", log)
    beside = [line for line in log.splitlines() if '"outcome"' not in line]
    assert not re.findall(r"\b(ann|bob|cyd|eve)\b", "\n".join(beside))
