"""The life of a table of 13 attributes, and what can happen to it, as an operator sees it through a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness.abuse.place import admitted, connection
from harness.dangers import ANY_BUDGET
from harness.server_process import HURRIED, make_state, running
from harness.stores import Cluster
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from equipoise.clients.analyst import Client
from equipoise.clients.operator import Operator
from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.accounts import Account, Budget
from equipoise.model.datasets import DatasetState
from equipoise.model.rounds import Share, Terms
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.schema_checks import bin_labels
from equipoise.queries.statements import Marginal

pytestmark = [pytest.mark.full, pytest.mark.slow]

RECORDS, LETTERS = 500, tuple("abcdefgh")
EDGES = tuple(float(edge) for edge in range(9))
NAMES = tuple(f"a{place}" for place in range(13))
SCHEMA = Schema(
    (Attribute("a0", bin_labels(EDGES), EDGES), *(Attribute(name, LETTERS) for name in NAMES[1:]))
)  # 2^39 possible records
BUDGET, CAP = Budget(1.0, 1e-6), Budget(20.0, 1e-4)
Columns = dict[str, list[object]]


def columns(seed: int, records: int = RECORDS) -> Columns:
    codes = np.random.default_rng(seed).integers(0, 8, (RECORDS + 1, len(NAMES)))[:records].T.tolist()
    return {
        name: [code + 0.5 for code in own] if name == "a0" else [LETTERS[code] for code in own]
        for name, own in zip(NAMES, codes, strict=True)
    }


@dataclass(frozen=True)
class Place:
    """Where tables of one kind are written; `write` replaces the table, and `vanish` takes it away."""

    source: str
    write: Callable[[Columns], None]
    vanish: Callable[[], None]


def in_file(path: Path) -> Place:
    def write(table: Columns) -> None:
        if path.suffix == ".parquet":
            pq.write_table(pa.table(table), path)
            return
        rows = zip(*table.values(), strict=True)
        path.write_text("\n".join(",".join(map(str, row)) for row in (table, *rows)) + "\n")

    return Place(path.name, write, path.unlink)


def in_database(path: Path, url: str, engine: Engine) -> Place:
    def write(table: Columns) -> None:
        kinds = (
            f"{name} {'text' if (isinstance(own[0], str) if own else name != 'a0') else 'double precision'}"
            for name, own in table.items()
        )
        with engine.begin() as made:
            made.execute(text("DROP TABLE IF EXISTS wide"))
            made.execute(text(f"CREATE TABLE wide ({', '.join(kinds)})"))
            rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            if rows:
                made.execute(text(f"INSERT INTO wide VALUES ({', '.join(f':{name}' for name in table)})"), rows)

    def vanish() -> None:
        with engine.begin() as made:
            made.execute(text("DROP TABLE wide"))

    path.write_text(f'url = "{url}"\ntable = "wide"\n')
    return Place(path.name, write, vanish)


@dataclass(frozen=True)
class Deployment:
    """A server with an operator, an analyst and a place for tables of each kind."""

    operator: Operator
    analyst: Client
    places: dict[str, Place]

    def spent(self, dataset: str) -> list[Account]:
        return list(self.operator.accounts(dataset))


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory, postgresql: Cluster) -> Iterator[Deployment]:
    directory = tmp_path_factory.mktemp("lives")
    state = make_state(directory / "state", HURRIED)
    data = state / "data"
    with ExitStack() as stack:
        url = stack.enter_context(postgresql.database(directory))
        server = stack.enter_context(running(state))
        ann = admitted(server, "ann")
        places = {
            "csv": in_file(data / "wide.csv"),
            "parquet": in_file(data / "wide.parquet"),
            "database": in_database(data / "wide.database.toml", url, create_engine(url, poolclass=NullPool)),
        }
        operator = Operator(stack.enter_context(connection(server, server.operator())))
        yield Deployment(operator, Client(stack.enter_context(connection(server, ann))), places)
        assert "Traceback" not in server.log()


@pytest.mark.parametrize("kind", ["csv", "parquet", "database"])
def test_a_table_lives_and_ends_and_what_happens_to_it_is_said_and_costs_nothing(
    deployment: Deployment, kind: str
) -> None:
    operator, place, name = deployment.operator, deployment.places[kind], f"wide-{kind}"
    seed = len(kind)  # no two datasets have one table
    whole = columns(seed)
    place.write(whole)
    registered = operator.register_dataset(name, place.source, SCHEMA, CAP, CAP, people="new", accepted=ANY_BUDGET)
    assert (registered.records, registered.schema.universe_size) == (RECORDS, 2**39)
    terms = Terms(name, (Share("ann", 1, 64),), BUDGET, BUDGET, mechanism="gaussian", accepted=ANY_BUDGET)
    round_id = operator.open(terms).round.id
    deployment.analyst.submit(round_id, [Marginal(("a0", "a5"))])
    operator.seal(round_id)
    before = deployment.spent(name)

    def happens(said: str, table: Columns | None = None) -> None:
        """The round is not run, no version is registered, and the message says this; then all is as before."""
        place.vanish() if table is None else place.write(table)
        with pytest.raises(InvalidArgument, match=r"^(table|source): ") as stopped:
            operator.run(round_id)
        assert "has changed" in stopped.value.problem or said in stopped.value.problem
        with pytest.raises(InvalidArgument, match=r"^(table|source): ") as refused:
            operator.update_dataset(name)
        assert said in refused.value.problem
        assert deployment.spent(name) == before
        place.write(whole)

    def with_values(name: str, values: list[object]) -> Columns:
        return {**whole, name: values}

    happens("there is no such")
    happens("has no column named 'a7'", {each: own for each, own in whole.items() if each != "a7"})
    happens("has no records", columns(seed, 0))
    unfit = "a4" if kind == "database" else "attribute a4: 500 unknown categories"
    happens(unfit, with_values("a4", [float(ord(str(label))) for label in whole["a4"]]))
    unfit = "a0" if kind == "database" else "attribute a0: 500 not numbers"
    happens(unfit, with_values("a0", [f"some {number}" for number in whole["a0"]]))
    operator.run_to_completion(round_id)
    operator.release(round_id)
    assert deployment.spent(name) != before

    place.write(columns(seed, RECORDS + 1))
    assert [operator.update_dataset(name).version, operator.dataset_history(name).standing.dataset.records] == [
        2,
        RECORDS + 1,
    ]
    with pytest.raises(InvalidArgument, match="holds what version 2 of"):
        operator.update_dataset(name)
    assert operator.update_dataset(name, schema=Schema(SCHEMA.attributes[:5])).version == 3
    (charged,) = operator.dataset_charges(name)
    assert charged.charge == "spent"
    assert operator.retire_dataset(name).name == name
    with pytest.raises(WrongState, match="retired"):
        operator.open(terms)
    deployment.analyst.wait(round_id)
    operator.delete_dataset(name)
    listed = {each.dataset.name: each for each in operator.datasets()}
    assert listed[name].state is DatasetState.DELETED
    assert listed[name].data.spent != Budget(0.0, 0.0)
