"""Rounds of `pooled` through the real service: one synthetic table for all, and refusals that cost nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from harness.rounds_bench import ANN, BOB, SALT, SCHEMA, TERMS, Bench

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
        pages = list(Synopses(bench.rounds.analyst_views, bench.store).pages(analyst, record.id, 0))
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


def test_a_table_larger_than_the_family_s_limit_is_taken_and_answered_without_an_interval(bench: Bench) -> None:
    """Whatever a share allows is answered; a dry run says how many answers may have no interval."""
    round_id = bench.opened(replace(POOLED, options={"ways": 1}))
    workload = workload_to_bytes((Marginal(("size",)), Marginal(("colour", "size"))))
    told = bench.rounds.submissions.dry_run("ann", round_id, workload)
    assert told.max_uncertified >= told.queries
    assert bench.rounds.submissions.submit("ann", round_id, "1", workload, SALT).statements == 2
