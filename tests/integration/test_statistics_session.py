"""A session of statistics on a real store: refused by name before anything is charged, answered, and released."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.answers import flat
from harness.rounds_bench import COLOUR, RECORDS, SCHEMA, Bench
from harness.session_terms import BY_TURNS, answered, attached
from harness.waiting import PATIENCE, until

from equipoise.errors import InvalidArgument
from equipoise.model.results import Answers
from equipoise.queries.statements import CountDistinct, Marginal, Statement, Variance
from equipoise.wire.results import answers_from_chunk, chunk_from_bytes
from equipoise.wire.statements import statement_to_bytes

CANDIDATES = [
    {"cells": list(range(SCHEMA.universe_size)), "counts": [1] * SCHEMA.universe_size},
    {"cells": [0, 5], "counts": [30, 10]},
]
STATISTICS = replace(
    BY_TURNS, mechanism="low_sensitivity", options={"candidates": CANDIDATES, "sensitivity": f"1/{RECORDS}"}
)


@pytest.fixture
def bench(on_sqlite: Bench) -> Bench:
    return on_sqlite


def test_a_session_answers_statistics_and_is_released_as_it_was_answered(bench: Bench) -> None:
    for options, field in (
        ({"candidates": [], "sensitivity": "1/400"}, "options.candidates"),
        ({"candidates": [{"cells": [8], "counts": [1]}], "sensitivity": "1/400"}, "options.candidates[0].cells[0]"),
        ({"candidates": CANDIDATES}, "options.sensitivity"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            bench.sessions.open(replace(STATISTICS, options=options), "refused")
        assert refused.value.field == field
    assert bench.charged() == {"data/shop": (0.0, 0.0)}

    session_id = bench.sessions.open(STATISTICS, "open").id
    charged = bench.charged()
    stream = attached(bench, "ann", session_id)
    unanswerable: dict[str, Statement] = {
        "is a table": Marginal(("size",)),
        "'size' has no bins": Variance("size"),
        "no attribute 'shape'": CountDistinct(("size", "shape")),
    }
    for problem, statement in unanswerable.items():
        with pytest.raises(InvalidArgument, match=problem):
            stream.ask(1, statement_to_bytes(statement))
    asked: list[Statement] = [CountDistinct(("colour", "size")), COLOUR == "red"]
    assert bench.sessions.loops.process_id(session_id) is not None
    waiting = [stream.ask(i, statement_to_bytes(each)) for i, each in enumerate(asked, start=1)]
    for turn in range(len(asked)):
        bench.clock.move(10)
        until(lambda: len(answered(bench)) > turn)  # noqa: B023 - called before the next turn
    bench.clock.move(10)
    told = [answers_from_chunk(each.result(PATIENCE).chunk) for each in waiting]
    assert bench.charged() == charged

    bench.sessions.close(session_id, "close")
    bench.rounds.lifecycle.run(session_id, "run")
    assert bench.wait(session_id).complete
    bench.rounds.lifecycle.release(session_id, "release")
    bench.clock.move(60)
    (released,) = (chunk_from_bytes(each) for each in bench.rounds.analyst_views.results("ann", session_id, 0, 10))
    assert flat(released.answers) == flat(Answers.join(each.answers for each in told))


def test_a_delta_above_the_declared_one_is_refused_and_nothing_is_charged_for_it(bench: Bench) -> None:
    session_id = bench.sessions.open(
        replace(STATISTICS, options={"candidates": CANDIDATES, "sensitivity": "1/500"}), "open"
    ).id
    charged, stream = bench.charged(), attached(bench, "ann", session_id)
    with pytest.raises(InvalidArgument, match=r"Delta = 0\.0025 .* 400 records .* declared sensitivity is 0\.002"):
        stream.ask(1, statement_to_bytes(CountDistinct(("size",))))
    assert bench.charged() == charged
    assert attached(bench, "ann", session_id).answered == 0
