"""A state directory that is restored whole, as a virtual machine's snapshot is: no noise is used for two questions.

Store, guard and keys are those of one moment, so nothing inside tells that the server had gone on.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from harness.rounds_bench import COLOUR, RECORDS, SALT, SIZE, TERMS, Bench
from harness.session_terms import ONLINE, ask, attached
from harness.waiting import PATIENCE

from equipoise.model.accounts import Budget
from equipoise.model.grants import grant_terms
from equipoise.model.results import AnswerMethod
from equipoise.queries.predicates import Predicate
from equipoise.queries.statements import Marginal
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.sessions.answer_store import StoredAnswer

ONE = (COLOUR == "red", SIZE.isin(["s", "m"]), (COLOUR == "red") & (SIZE == "s"), SIZE == "xl")
# Each holds for just the records for which the other does not: the same noise would show in the sum of both.
OTHER = tuple(~each for each in ONE)
NOISY = replace(TERMS, mechanism="gaussian", data_budget=Budget(1.0, 1e-4), options={})
GRANT = grant_terms("shop", "ann", Budget(1.0, 1e-4), None, 0.05)
PRICE = 10**9  # units of 10^-12 of rho, which buy a standard deviation of 22 records
FULL = 1 << 40  # what a fraction of 1 is on the grid of answers


class Snapshot:
    """A server that can be set back to one moment, with all that it knows."""

    def __init__(self, directory: Path) -> None:
        self.state, self.copy = directory / "state", directory / "copy"
        self.state.mkdir()
        self.bench = Bench(self.state, f"sqlite:///{self.state / 'equipoise.db'}")

    def take(self) -> None:
        """Copy the whole state directory of a server that is stopped."""
        self.bench.stop()
        shutil.copytree(self.state, self.copy)
        self.begin()

    def restore(self) -> None:
        """Put the copy in the directory's place."""
        self.bench.stop()
        shutil.rmtree(self.state)
        shutil.copytree(self.copy, self.state)
        self.begin()

    def begin(self) -> None:
        """Start the server."""
        self.bench.start()
        self.bench.rounds.lifecycle.recover()


def answers(bench: Bench, round_id: str, statements: tuple[Predicate, ...]) -> list[int]:
    """The answers to ann's workload in a round that is open."""
    bench.rounds.submissions.submit("ann", round_id, "submit", workload_to_bytes(statements), SALT)
    bench.rounds.lifecycle.seal(round_id, "seal")
    bench.rounds.lifecycle.run(round_id, "run")
    assert bench.wait(round_id).complete
    bench.rounds.lifecycle.release(round_id, "release")
    bench.clock.move(60)
    (chunk,) = bench.rounds.analyst_views.results("ann", round_id, 0, 10)
    return [int(value) for value in chunk_from_bytes(chunk).answers.values]


def noise_of_both(ones: list[int], others: list[int]) -> list[int]:
    """The sums of the noise of answers to statements and to their opposites, in records: 0 where it cancels."""
    return [round(((one + other) / FULL - 1) * RECORDS) for one, other in zip(ones, others, strict=True)]


@pytest.mark.sparse(2)
@pytest.mark.thin(4)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "pooled"])
def test_another_workload_draws_other_noise_and_the_same_one_gets_the_same_answers(
    tmp_path: Path, mechanism: str
) -> None:
    snapshot = Snapshot(tmp_path)
    round_id = snapshot.bench.opened(replace(NOISY, mechanism=mechanism))
    snapshot.take()
    first = answers(snapshot.bench, round_id, ONE)
    snapshot.restore()
    other = answers(snapshot.bench, round_id, OTHER)
    snapshot.restore()
    assert answers(snapshot.bench, round_id, ONE) == first
    snapshot.bench.stop()
    truth = [counted(snapshot.state, each) for each in ONE]
    noise = [round(value * RECORDS / FULL) - count for value, count in zip(first, truth, strict=True)]
    repeated = [round(value * RECORDS / FULL) - RECORDS + count for value, count in zip(other, truth, strict=True)]
    assert any(noise)
    assert any(repeated)
    # Independent noise agrees in a place now and then, and never in all of them but by a rare chance.
    assert noise != repeated
    assert any(noise_of_both(first, other))


def test_another_statement_of_a_session_draws_other_noise(tmp_path: Path) -> None:
    snapshot = Snapshot(tmp_path)
    terms = replace(ONLINE, data_budget=Budget(1.0, 1e-4), options={"updates": 4, "threshold": 0, "prior": "none"})
    session_id = snapshot.bench.sessions.open(terms, "open", "olga").id
    told = [ask(attached(snapshot.bench, "ann", session_id), 1, ONE[0])]
    snapshot.take()
    for statement in (ONE[1], OTHER[1], ONE[1]):
        stream = attached(snapshot.bench, "ann", session_id, after=1)
        told.append(ask(stream, 2, statement))
        snapshot.restore()
    stream = attached(snapshot.bench, "ann", session_id, after=1)
    assert stream.stored(0, 10) == told[:1]
    snapshot.bench.stop()
    one, other, again = (value_of(each) for each in told[1:])
    assert one == again
    count = counted(snapshot.state, ONE[1])
    assert round(one * RECORDS / FULL) - count != round(other * RECORDS / FULL) - RECORDS + count


def test_another_question_of_a_grant_and_another_price_draw_other_noise(tmp_path: Path) -> None:
    """All three cost the whole of their price; the two prices buy noise of one law, as variances are rounded."""
    snapshot = Snapshot(tmp_path)
    grant_id = snapshot.bench.sessions.open(GRANT, "give", "olga").id
    snapshot.take()
    tables = {}
    for name, colour, rho in (
        ("first", "red", PRICE),
        ("again", "red", PRICE),
        ("question", "green", PRICE),
        ("price", "red", PRICE + 1),
    ):
        stream = attached(snapshot.bench, "ann", grant_id)
        asked = statement_to_bytes(Marginal(("size",), where=COLOUR.isin([colour])), rho)
        told = answers_from_chunk(stream.ask(1, asked).result(PATIENCE).chunk).answers
        tables[name] = [round(value * RECORDS / FULL) for value in told.values.tolist()]
        snapshot.restore()
    snapshot.bench.stop()
    noise = {
        name: [told - count for told, count in zip(table, sizes_of(snapshot.state, colour), strict=True)]
        for (name, table), colour in zip(tables.items(), ("red", "red", "green", "red"), strict=True)
    }
    assert any(noise["first"])
    assert noise["first"] == noise["again"]
    # Independent noise agrees in a place now and then, and never in all four but by a rare chance.
    assert len({tuple(each) for each in noise.values()}) == 3
    assert noise["question"] != [-each for each in noise["first"]]


def sizes_of(state: Path, colour: str) -> list[int]:
    """How many records of a colour each size has, counted from the file."""
    rows = [line.split(",") for line in (state / "data" / "shop.csv").read_text().splitlines()[1:]]
    return [rows.count([colour, size]) for size in ("s", "m", "l", "xl")]


def value_of(answer: StoredAnswer) -> int:
    """The one value of an answer that has fresh noise."""
    chunk = answers_from_chunk(answer.chunk)
    assert chunk.answers.methods.tolist() == [AnswerMethod.GAUSSIAN]
    return int(chunk.answers.values[0])


def counted(state: Path, statement: Predicate) -> int:
    """How many records a statement holds for, counted from the file."""
    rows = [line.split(",") for line in (state / "data" / "shop.csv").read_text().splitlines()[1:]]
    holds = [
        sum(colour == "red" for colour, _ in rows),
        sum(size in ("s", "m") for _, size in rows),
        sum((colour, size) == ("red", "s") for colour, size in rows),
        sum(size == "xl" for _, size in rows),
    ]
    return holds[[each is statement for each in ONE].index(True)]
