"""What a server writes while it is used in every way: nothing of what was asked, of the table, or of any key.

2-service.md, section 2: no query content, and nothing that tells what or how much any analyst asked. So no line has
a number but those named here; whoever adds a field reads that section first.
"""

from __future__ import annotations

import base64
import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.rounds_bench import SALT
from harness.server_process import SEED, Credentials, ServerProcess, make_state, running
from harness.waiting import PATIENCE

from equipoise.clients.analyst import Client
from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.errors import EquipoiseError, InternalError, InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import Share, Terms
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.v1 import analyst_pb2, analyst_pb2_grpc
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.admin.state_directory import open_deployment
from equipoise_server.clock import system_clock

# Words and numbers that are found wherever they come up; the numbers count statements, queries and records.
WORDS = ("grapecolour", "chartreuse", "vermilion", "cellarsize", "jeroboam", "magnum")
CHARTREUSE, VERMILION = 2711, 1301
SCHEMA = Schema((Attribute(WORDS[0], WORDS[1:3]), Attribute(WORDS[3], WORDS[4:])))
ASKED: dict[str, list[Statement]] = {
    "ann": [attribute(WORDS[0]) == "chartreuse", Marginal((WORDS[0], WORDS[3]))] * 37,
    "bob": [attribute(WORDS[3]) == "magnum"] * 41,
}
COUNTS = (74, 37 + 4 * 37, 41, CHARTREUSE, VERMILION, CHARTREUSE - 1, CHARTREUSE + VERMILION - 1)
CAP = Budget(40.0, 1e-3)
NUMBERS = {"port", "seconds", "exit_code"}
SECRET = "grapecolour_is_chartreuse"  # what an exception of the program quotes


def test_the_log_tells_nothing_of_questions_data_or_keys(tmp_path: Path) -> None:
    state = make_state(tmp_path / "state", ['log_level = "debug"'])
    with running(state) as server:
        _use(server, tmp_path)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        assert server.process.stdout is not None
        assert server.process.stdout.read() == ""
        written = server.log()
    lines = [json.loads(line) for line in written.splitlines()]
    events = [line["event"] for line in lines]
    assert {"serving", "refused", "unexpected", "stopping", "stopped"} <= set(events)
    for line in lines:
        told = {name: value for name, value in line.items() if name not in NUMBERS | {"timestamp"}}
        assert not [value for value in told.values() if isinstance(value, int | float)], line
        told.pop("places", None)  # of the program
        for number in COUNTS:
            assert not re.search(rf"\b{number:,}\b|\b{number}\b", json.dumps(told)), line
    for word in (*WORDS, SECRET, *_secrets(state, tmp_path)):
        assert word not in written, word


def _use(server: ServerProcess, profiles: Path) -> None:
    """Everything that the server can be asked, well and badly."""
    table = server.state / "data" / "cellar.csv"
    _write(table, CHARTREUSE)
    operator = Operator(Connection(server.blocking_channel(server.operator())))
    odd = Schema((Attribute(WORDS[0], ("chartreuse", "other")),))
    with pytest.raises(InvalidArgument, match="grapecolour"):
        operator.register_dataset("odd", table.name, odd, CAP, CAP, accepted=LARGE_CAPS)
    operator.register_dataset("cellar", table.name, SCHEMA, CAP, CAP, accepted=(*LARGE_CAPS, Danger.DELTA))
    clients = {}
    for name in ASKED:
        credentials = Credentials.of_profile(operator.add_analyst(name, profiles / name))
        clients[name] = Client(Connection(server.blocking_channel(credentials)))
    released = _open(operator, "pooled")
    for name, client in clients.items():
        client.dry_run(released, ASKED[name])
        client.submit(released, ASKED[name])
        for wrong in (ASKED[name] * 2, [attribute(WORDS[0]) == "vermilion-2"], [Marginal(("magnum",))]):
            with pytest.raises(EquipoiseError):
                client.submit(released, wrong)
    clients["bob"].withdraw(released)
    clients["bob"].submit(released, ASKED["bob"])
    _malformed(server, profiles / "ann", released)
    failing = _open(operator, "equilibrium")
    clients["ann"].submit(failing, ASKED["ann"])
    operator.seal(released)
    operator.run_to_completion(released)
    operator.release(released)
    for name, client in clients.items():
        client.wait(released)
        assert len(client.results(released, ASKED[name]).values) in COUNTS
        assert len(client.synopsis(released))
    operator.seal(failing)
    _write(table, CHARTREUSE - 1)
    with pytest.raises(InvalidArgument, match="has changed since it was registered"):
        operator.run_to_completion(failing)
    operator.abort(failing, "the table has changed")
    _damaged(server, clients["ann"], _open(operator, "gaussian"))
    operator.close()
    for client in clients.values():
        client.close()


def _write(table: Path, chartreuse: int) -> None:
    rows = ["chartreuse,magnum"] * chartreuse + ["vermilion,jeroboam"] * VERMILION
    table.write_text("\n".join(["grapecolour,cellarsize", *rows]) + "\n")


def _open(operator: Operator, mechanism: str) -> str:
    shares, budget = tuple(Share(name, 80, 200) for name in ASKED), Budget(8.0, 1e-4)
    return operator.open(
        Terms("cellar", shares, budget, budget, "query", mechanism=mechanism, accepted=SMALL_TABLE)
    ).round.id


def _malformed(server: ServerProcess, profile: Path, round_id: str) -> None:
    """A workload that ends in the middle of a word."""
    asked = workload_to_bytes(ASKED["ann"])[:-3]

    def pieces() -> Iterator[analyst_pb2.SubmitWorkloadRequest]:
        header = analyst_pb2.SubmitHeader(
            round_id=round_id, request_id="m", commitment_salt=SALT, workload_bytes=len(asked)
        )
        yield analyst_pb2.SubmitWorkloadRequest(header=header)
        yield analyst_pb2.SubmitWorkloadRequest(piece=asked)

    with server.blocking_channel(Credentials.of_profile(profile)) as channel:
        stub = analyst_pb2_grpc.AnalystServiceStub(channel)
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            stub.SubmitWorkload(pieces())


def _damaged(server: ServerProcess, client: Client, round_id: str) -> None:
    """An error of the program whose own text quotes what is stored."""
    store = open_deployment(server.state, system_clock()).open_store()
    with store.write() as connection:
        # SQLite puts any text into a column of numbers, and adding to it is what nobody has expected.
        connection.exec_driver_sql("UPDATE shares SET queries = ? WHERE round_id = ?", (SECRET, round_id))
    store.close()
    for _ in range(2):
        with pytest.raises(InternalError):
            client.submit(round_id, ASKED["ann"])


def _secrets(state: Path, profiles: Path) -> Iterator[str]:
    """Keys, seeds, workloads, answers: as text, in base64 and in hexadecimal."""
    files = [*state.glob("**/*.key"), *state.glob("**/key.pem"), *profiles.glob("*/key.pem")]
    assert len(files) >= 3 + 2 + 2
    for file in files:
        yield from (word for word in file.read_text().split() if len(word) > 30 and "-" not in word[:5])
    store = open_deployment(state, system_clock()).open_store()
    with store.read() as connection:
        found = [SEED]
        for query in (
            "SELECT workload FROM submissions",
            "SELECT digest FROM submissions",
            "SELECT chunk FROM result_chunks",
            "SELECT cells FROM synopses",
        ):
            rows = connection.exec_driver_sql(query).scalars().all()
            assert rows, query
            found += [bytes(row) for row in rows]
    store.close()
    for secret in found:
        yield secret[:32].hex()
        yield base64.b64encode(secret[:30]).decode()
