"""A server with a released round of long result streams, and what its monitoring tells, for tests of its limits."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc import aio

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import analyst_pb2, operator_pb2, operator_pb2_grpc, types_pb2
from equipoise.wire.workloads import schema_to_message, workload_to_bytes
from equipoise_server.config import Config
from harness.dangers import LARGE_CAPS_SENT, SMALL_TABLE_SENT
from harness.rounds_bench import SALT
from harness.server_process import SCRIPT, Credentials, ServerProcess, make_state, running
from harness.waiting import eventually

SIDE = 128
SCHEMA = Schema(tuple(Attribute(name, tuple(str(i) for i in range(SIDE))) for name in ("row", "column")))
# 16,384 answers: a stream several times as long as what a connection takes without being read.
TABLE: tuple[Statement, ...] = (Marginal(("row", "column")),)
ANALYSTS = ("bob", "eve")
CALLS_AT_ONCE: int = Config.model_fields["streams_per_connection"].default


@contextmanager
def serving(state: Path, settings: Sequence[str], script: str = SCRIPT) -> Iterator[ServerProcess]:
    """A server that offers metrics, on a small table."""
    made = make_state(state, ['metrics_listen = "127.0.0.1:0"', *settings])
    rows = [f"{i * i % SIDE},{7 * i % SIDE}" for i in range(300)]
    (made / "data" / "grid.csv").write_text("\n".join(["row,column", *rows]) + "\n")
    with running(made, script=script) as server:
        yield server


async def opened(operator: operator_pb2_grpc.OperatorServiceAsyncStub, request_id: str = "open") -> str:
    """A round with a share for each analyst, answered by plain noise, which takes no time."""
    cap = types_pb2.Budget(epsilon=20.0, delta=1e-3)
    budget = types_pb2.Budget(epsilon=8.0, delta=1e-4)
    await operator.RegisterDataset(
        operator_pb2.RegisterDatasetRequest(
            name="grid",
            source="grid.csv",
            schema=schema_to_message(SCHEMA),
            data_cap=cap,
            analyst_cap=cap,
            request_id="register",
            accepted=LARGE_CAPS_SENT,
        )
    )
    terms = types_pb2.RoundTerms(
        dataset="grid",
        unit=types_pb2.PROTECTION_UNIT_QUERY,
        data_budget=budget,
        analyst_budget=budget,
        beta=0.05,
        mechanism="gaussian",
        shares=[types_pb2.Share(analyst=name, statements=1, queries=SIDE**2) for name in ANALYSTS],
        accepted=SMALL_TABLE_SENT,
    )
    response = await operator.OpenRound(operator_pb2.OpenRoundRequest(terms=terms, request_id=request_id))
    return str(response.detail.round.id)


async def released(operator: operator_pb2_grpc.OperatorServiceAsyncStub, round_id: str) -> None:
    """The round, sealed, run and released; returns when its streams are open."""
    await operator.SealRound(operator_pb2.SealRoundRequest(round_id=round_id, request_id="seal"))
    await operator.RunRound(operator_pb2.RunRoundRequest(round_id=round_id, request_id="run"))
    watch = operator.WatchRound(operator_pb2.WatchRoundRequest(round_id=round_id))
    async for shown in watch:
        if shown.detail.progress.complete:
            break
    watch.cancel()
    await operator.ReleaseRound(operator_pb2.ReleaseRoundRequest(round_id=round_id, request_id="release"))


def uploaded(
    round_id: str, request_id: str, statements: Sequence[Statement] = TABLE
) -> Iterator[analyst_pb2.SubmitWorkloadRequest]:
    """The requests of a submit."""
    workload = workload_to_bytes(statements)
    header = analyst_pb2.SubmitHeader(
        round_id=round_id, request_id=request_id, commitment_salt=SALT, workload_bytes=len(workload)
    )
    yield analyst_pb2.SubmitWorkloadRequest(header=header)
    yield analyst_pb2.SubmitWorkloadRequest(piece=workload)


def narrow_channel(server: ServerProcess, credentials: Credentials) -> aio.Channel:
    """A connection of its own that takes no more of a stream than 64 KiB without being read."""
    tls = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0)]
    return aio.secure_channel(f"127.0.0.1:{server.port}", tls, options=options)


class Monitor:
    """What Prometheus would see of a server."""

    def __init__(self, server: ServerProcess) -> None:
        watched = [json.loads(line) for line in server.log().splitlines() if '"watched"' in line]
        self._address = f"http://127.0.0.1:{watched[-1]['metrics_port']}/metrics"

    async def text(self) -> str:
        """All metrics."""
        return await asyncio.to_thread(self._fetched)

    async def value(self, name: str) -> float:
        """One of them, named with its labels; 0 where it is not there."""
        found = re.search(rf"^{re.escape(name)} (\S+)$", await self.text(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    async def reaches(self, name: str, value: float, seconds: float = 60) -> None:
        """Waits until a metric has a value."""

        async def there() -> bool:
            await asyncio.sleep(0.05)
            return await self.value(name) == value

        await eventually(there, seconds)

    def _fetched(self) -> str:
        with urllib.request.urlopen(self._address, timeout=60) as answer:
            return str(answer.read().decode())
