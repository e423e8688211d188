"""Rounds of `pooled` through the real service: one synthetic table for all, and refusals that cost nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness.rounds_bench import ANN, BOB, COLOUR, SALT, SCHEMA, SIZE, TERMS, Bench

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod
from equipoise.queries.fixed_point import on_grid
from equipoise.queries.statements import Marginal
from equipoise.queries.workload_compiler import compile_workload
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.rpc.services.synopsis_stream import Synopses

POOLED = replace(TERMS, mechanism="pooled", options={"synopsis": 4096, "summed": 2})


def test_every_analyst_downloads_the_table_that_the_answers_are_counted_from(bench: Bench) -> None:
    record = bench.released(POOLED)
    assert record.plan.mechanism == "pooled"
    assert record.plan.max_uncertified == 0
    tables = []
    for analyst, asked in (("ann", ANN), ("bob", BOB)):
        pages = list(
            Synopses(bench.rounds.analyst_views, bench.rounds.datasets, bench.store).pages(analyst, record.id, 0)
        )
        categories = np.concatenate([np.array(page.cells).reshape(-1, len(SCHEMA.sizes)) for page in pages])
        cells = np.ravel_multi_index(tuple(categories.T), SCHEMA.sizes).astype(np.int64)
        tables.append(cells)
        counted = on_grid(compile_workload(asked, SCHEMA).record_counts(cells), len(cells))
        chunks = [
            chunk_from_bytes(chunk) for chunk in bench.rounds.analyst_views.results(analyst, record.id, 0, 100)
        ]
        values = np.concatenate([chunk.answers.values for chunk in chunks])
        served = np.concatenate([chunk.answers.methods for chunk in chunks]) == AnswerMethod.FITTED
        assert served.any()
        np.testing.assert_array_equal(values[served], counted[served])
    np.testing.assert_array_equal(tables[0], tables[1])
    assert len(tables[0]) == 4096


def test_a_table_larger_than_the_family_s_limit_is_refused_and_nothing_is_charged(bench: Bench) -> None:
    round_id = bench.opened(replace(POOLED, options={"ways": 1}))
    small, large = Marginal(("size",)), Marginal(("colour", "size"))
    for refused in ((small, large), (small, (COLOUR == "red") & (SIZE == "s"))):
        workload = workload_to_bytes(refused)
        for attempt in (
            lambda own=workload: bench.rounds.submissions.dry_run("ann", round_id, own),
            lambda own=workload: bench.rounds.submissions.submit("ann", round_id, "1", own, SALT),
        ):
            with pytest.raises(InvalidArgument, match=r"^statements\[1\]: .*larger than the family's limit"):
                attempt()
    assert all(amounts == (0.0, 0.0) for amounts in bench.charged().values())
    # What either attribute alone decides is within the family, also where both are mentioned.
    kept = workload_to_bytes((small, (COLOUR == "red") & ((SIZE == "s") | ~(SIZE == "s"))))
    assert bench.rounds.submissions.submit("ann", round_id, "1", kept, SALT).statements == 2
