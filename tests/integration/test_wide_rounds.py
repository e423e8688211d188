"""Rounds and sessions on a table whose possible records cannot be listed: a real server, from file to replay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import duckdb
import numpy as np
import pytest
from harness.client_command import answered
from harness.dangers import LARGE_CAPS, SMALL_TABLE
from harness.server_process import EACH_ITS_SEED, HURRIED, make_state, running
from numpy.typing import NDArray

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.results import AnswerMethod
from equipoise.model.rounds import AUTO, SessionTerms, Share, Terms
from equipoise.model.synopsis import Synopsis
from equipoise.profile.profile import Profile
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.cli import main as run_server_command
from equipoise_server.datasets.source import source_at

ATTRIBUTES, RECORDS = 9, 4_000
LETTERS = tuple("abcdefgh")
EDGES = tuple(float(edge) for edge in range(9))
SCHEMA = Schema(
    (
        Attribute("hour", tuple(f"[{edge}, {edge + 1})" for edge in range(8)), EDGES, ordered=True),
        *(Attribute(f"c{number}", LETTERS) for number in range(1, ATTRIBUTES)),
    )
)
BUDGET, CAP = Budget(2.0, 1e-5), Budget(40.0, 2e-4)
BETA = 1e-7  # The chance that a sound round has an interval that its truth lies outside of.
NEAR = attribute("hour").between(2, 6) & (attribute("c3") == "a")
FAR: Predicate = (attribute("c2") == "a") & (attribute("c4") == "b") & (attribute("c6") == "c")
FAR &= (attribute("c8") == "d") | (attribute("c7") == "e")
ASKED: dict[str, tuple[Statement, ...]] = {
    "ann": (Marginal(("c1", "c8")), NEAR, Marginal(("hour",))),
    "bob": (attribute("c5").isin(["a", "b"]), FAR, ~FAR),
}
SHARES = tuple(Share(name, 3, 80) for name in ASKED)
ALL_CERTIFIED = ("laplace", "standing", "projection", "online")
SESSIONS = {"online": SessionTerms(), "online_private": SessionTerms(length=60, turn_seconds=5)}
MECHANISMS = (AUTO, "laplace", "pooled", "standing", "projection", "equilibrium", "multiplicative_weights")
DEAR = ("laplace", "pooled", "multiplicative_weights", "online_private")


def cases(*names: str) -> list[Any]:
    """These mechanisms, of which the dear ones are played nightly."""
    return [pytest.param(name, marks=[pytest.mark.nightly] if name in DEAR else []) for name in names]


def rows() -> NDArray[np.int64]:
    """Records whose attributes depend on one another: int64[records, attributes]."""
    choose = np.random.default_rng(13)
    first = choose.integers(0, 8, RECORDS)
    other = np.minimum(7, choose.geometric(0.4, (RECORDS, ATTRIBUTES - 1)) - 1)
    return np.column_stack([first, (other + first[:, None] // 3) % 8])


def write_table(path: Path) -> None:
    lines = [",".join(SCHEMA.names)]
    lines += [",".join([f"{row[0]}.5", *(LETTERS[code] for code in row[1:])]) for row in rows().tolist()]
    path.write_text("\n".join(lines) + "\n")


@dataclass(frozen=True)
class Released:
    """A deployment with a standing measurement, which plays a mechanism's round when a test first asks for it."""

    directory: Path
    operator: Operator
    clients: dict[str, Client]
    rounds: dict[str, str]  # that were released, by mechanism

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def round(self, mechanism: str) -> str:
        """The id of the mechanism's released round."""
        if mechanism not in self.rounds:
            play = self._play_session if mechanism in SESSIONS else self._play_round
            self.rounds[mechanism] = play(mechanism)
        return self.rounds[mechanism]

    def _play_round(self, mechanism: str) -> str:
        round_id = self.operator.open(
            Terms("wide", SHARES, BUDGET, BUDGET, mechanism=mechanism, beta=BETA, accepted=SMALL_TABLE)
        ).round.id
        for name, asked in ASKED.items():
            self.clients[name].submit(round_id, asked[:1] if mechanism == "standing" else asked)
        self.operator.seal(round_id)
        return self._released(round_id)

    def _play_session(self, mechanism: str) -> str:
        session = SESSIONS[mechanism]
        own = BUDGET if session.turn_seconds else None
        terms = Terms(
            "wide", SHARES, BUDGET, own, mechanism=mechanism, session=session, beta=BETA, accepted=SMALL_TABLE
        )
        session_id = self.operator.open_session(terms).round.id
        for name, asked in ASKED.items():
            assert len(list(self.clients[name].ask(session_id, asked, accept_unprotected=own is None))) == len(
                asked
            )
        self.operator.close_session(session_id)
        return self._released(session_id)

    def _released(self, round_id: str) -> str:
        self.operator.run_to_completion(round_id)
        self.operator.release(round_id)
        self.clients["ann"].wait(round_id)
        return round_id


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Released]:
    directory = tmp_path_factory.mktemp("wide")
    state = make_state(directory / "state", HURRIED)
    write_table(state / "data" / "table.csv")
    with ExitStack() as stack:
        server = stack.enter_context(running(state, script=EACH_ITS_SEED))
        for name in ("operator", "auditor"):
            path = state / "profiles" / name / "profile.toml"
            path.write_text(path.read_text().replace(Profile.load(path.parent).target, f"127.0.0.1:{server.port}"))
        operator = stack.enter_context(Operator.from_profile(state / "profiles" / "operator"))
        assert (
            operator.register_dataset(
                "wide", "table.csv", SCHEMA, CAP, CAP, accepted=LARGE_CAPS
            ).schema.universe_size
            == 2**27
        )
        clients = {}
        for name in ASKED:
            operator.add_analyst(name, directory / name)
            clients[name] = stack.enter_context(Client.from_profile(directory / name))
        once = Terms(
            "wide",
            (),
            BUDGET,
            None,
            mechanism="measurement",
            options={"family": "pairs"},
            beta=BETA,
            accepted=SMALL_TABLE,
        )
        rounds = {"measurement": operator.open(once).round.id}
        *_, last = operator.watch(rounds["measurement"])  # the server does it all by itself
        assert last.round.release_time is not None
        sleep(max(0.0, (last.round.release_time - datetime.now(UTC)).total_seconds()))
        for mechanism, options in (("equilibrium", {"prior": "none"}), ("histogram", {})):
            with pytest.raises(
                InvalidArgument, match=r"134,217,728 possible records; .*; take projection, pooled, gaussian"
            ):
                operator.open(
                    Terms(
                        "wide",
                        SHARES,
                        BUDGET,
                        BUDGET,
                        mechanism=mechanism,
                        options=options,
                        beta=BETA,
                        accepted=SMALL_TABLE,
                    )
                )
        yield Released(directory, operator, clients, rounds)


@pytest.mark.thin(8)
@pytest.mark.parametrize("mechanism", cases(*MECHANISMS, *SESSIONS))
def test_results_have_intervals_that_hold(released: Released, mechanism: str) -> None:
    data = source_at(released.state / "data" / "table.csv").counts(SCHEMA)
    records = rows()
    for name, asked in ASKED.items():
        with Client.from_profile(released.directory / name) as client:
            results = client.results(released.round(mechanism))
        own = asked[:1] if mechanism == "standing" else asked
        truths = data.count(compile_workload(own, SCHEMA))
        assert not results.answers.misses(truths / RECORDS).any()
        certified = results.answers.certified
        assert (results.methods[~certified] == AnswerMethod.UNCERTIFIED).all()
        if name == "ann" or mechanism in ALL_CERTIFIED:
            assert certified.all()
        elif mechanism in ("equilibrium", "multiplicative_weights"):
            assert certified[0]
        elif mechanism == "pooled":
            # What no table of up to three attributes tells has a value, and no interval.
            assert not certified[1:].any()
            assert results.answers.values[1] < results.answers.values[2]
    assert int(truths[0]) == int(np.isin(records[:, 5], [0, 1]).sum())


@pytest.mark.full
@pytest.mark.parametrize("mechanism", cases("standing", "pooled", "equilibrium"))
def test_the_synthetic_table_is_the_one_that_is_committed_to_and_resembles_the_table(
    released: Released, mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Downloaded as Parquet and as CSV, read as any table is, and verified without the server."""
    round_id, profile = released.round(mechanism), released.directory / "ann"
    read: list[dict[str, NDArray[np.object_]]] = []
    for name in ("table.parquet", "table.csv"):
        told = answered(capsys, profile, "synopsis", round_id, "--out", tmp_path / name)
        with duckdb.connect() as connection:
            read.append(connection.execute(f"FROM '{tmp_path / name}'").fetchnumpy())
        assert told["records"] == len(read[-1]["hour"])
    assert all((read[0][name] == read[1][name]).all() for name in SCHEMA.names)
    codes = [
        np.select([read[0][each.name] == label for label in each.categories], range(8), -1)
        for each in SCHEMA.attributes
    ]
    synopsis = Synopsis.from_categories(np.array(codes).T, SCHEMA.sizes)
    with Client.from_profile(profile) as client:
        bundle = client.bundle(round_id)
    data = synopsis.to_bytes()
    assert bundle.synopsis == data
    path = tmp_path / "bundle"
    path.write_bytes(bundle.to_bytes())
    assert answered(capsys, profile, "verify", path)["verified"]
    path.write_bytes(replace(bundle, synopsis=data[:-1] + bytes([data[-1] ^ 1])).to_bytes())
    with pytest.raises(AssertionError, match="synopsis is not the one that is committed to"):
        answered(capsys, profile, "verify", path)
    asked = compile_workload((Marginal(("c1",)),), SCHEMA)
    truths = np.bincount(rows()[:, 1], minlength=8) / RECORDS
    # A uniform table errs by 0.14 in a cell. Of 400 records, `pooled` would tell no more than its noise.
    assert np.abs(synopsis.counts(asked) / len(synopsis) - truths).max() < 0.1


@pytest.mark.thin(8)
@pytest.mark.parametrize("mechanism", cases(*MECHANISMS, *SESSIONS))
def test_analysts_verify_what_they_got(
    released: Released, mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ASKED:
        bundle = tmp_path / name
        with Client.from_profile(released.directory / name) as client:
            bundle.write_bytes(client.bundle(released.round(mechanism)).to_bytes())
        assert answered(capsys, released.directory / name, "verify", bundle)["verified"]


def test_an_auditor_finds_all_in_order(released: Released, capsys: pytest.CaptureFixture[str]) -> None:
    profile = released.state / "profiles" / "auditor"
    found = answered(capsys, profile, "audit", "verify")
    assert {each["outcome"] for each in found["checks"]} <= {"passed", "not checked"}


@pytest.mark.thin(9)
@pytest.mark.parametrize("mechanism", cases("measurement", *MECHANISMS, *SESSIONS))
def test_every_round_is_replayed_to_the_byte(
    released: Released, mechanism: str, capsys: pytest.CaptureFixture[str]
) -> None:
    state = str(released.state)
    with pytest.raises(SystemExit) as stopped:
        run_server_command(["audit", "replay", released.round(mechanism), "--state", state, "--json"])
    out = capsys.readouterr().out
    assert not stopped.value.code, out
    assert json.loads(out)["difference"] is None
