"""What a round computes of its job: the same bytes again, streams in parts, of the registered table alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from harness.answers import flat, some_answers
from harness.round_job import TABLE, round_job

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.results import AnswerMethod
from equipoise.model.synopsis import Synopsis
from equipoise.queries.predicates import attribute
from equipoise.queries.statements import Marginal
from equipoise.wire.results import chunk_from_bytes
from equipoise.wire.workloads import workload_to_bytes
from equipoise_server.computation.round import Job, compute_round
from equipoise_server.computation.streams import StreamPart, stream_parts
from equipoise_server.mechanisms.interface import Outcome
from equipoise_server.mechanisms.registry import MECHANISMS, SEPARATE, mechanism
from equipoise_server.randomness.stream import KeyedStream


def silent(*_: object) -> None:
    """Hears no progress."""


def parts(job: Job, outcome: Outcome) -> list[StreamPart]:
    """What the worker sends of an outcome."""
    return list(stream_parts(job.round_id, outcome, silent))


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return round_job(tmp_path)


@pytest.mark.slow
def test_the_same_job_gives_the_same_bytes_and_another_seed_others(job: Job) -> None:
    phases: list[str] = []
    first = compute_round(job, lambda phase, *_: phases.append(phase))
    again = compute_round(job, silent)
    other = compute_round(replace(job, seed=b"\1" * 32), silent)
    assert parts(job, first) == parts(job, again)
    assert first.synopsis.cells.tolist() != other.synopsis.cells.tolist()  # the three answers may agree by chance
    np.testing.assert_array_equal(first.synopsis.cells, again.synopsis.cells)
    assert phases[:2] == ["load", "load"]
    (part,) = parts(job, first)
    assert (part.analyst, part.first_sequence) == ("ann", 1)
    chunk = chunk_from_bytes(part.chunks[-1])
    assert (chunk.round_id, len(chunk.answers), chunk.last) == ("r", 3, True)


@pytest.mark.slow
def test_streams_are_sent_some_messages_at_a_time(job: Job) -> None:
    """However long a stream is, at most 64 of its messages exist at once."""
    columns = {
        name: some_answers(np.arange(count), AnswerMethod.SYNOPSIS)
        for name, count in (("ann", 100 * 1024 + 1), ("bob", 1))
    }
    sent = parts(job, Outcome(columns, Synopsis()))
    assert [(part.analyst, part.first_sequence, len(part.chunks)) for part in sent] == [
        ("ann", 1, 64),
        ("ann", 65, 37),
        ("bob", 1, 1),
    ]
    read = [chunk_from_bytes(chunk) for part in sent[:2] for chunk in part.chunks]
    assert [chunk.sequence for chunk in read] == list(range(1, 102))
    np.testing.assert_array_equal(np.concatenate([chunk.answers.values for chunk in read]), columns["ann"].values)


def test_another_number_of_records_is_refused(job: Job, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text("colour\n" + "red\n" * 99)
    with pytest.raises(DataLoss, match="99 records, but had 100"):
        compute_round(job, lambda *_: None)


def test_records_that_the_schema_refuses_stop_the_run(job: Job, tmp_path: Path) -> None:
    (tmp_path / TABLE).write_text("colour\n" + "red\n" * 99 + "blue\n")
    with pytest.raises(InvalidArgument, match="colour"):
        compute_round(job, lambda *_: None)


def drawn(job: Job) -> set[tuple[bytes, tuple[str, ...]]]:
    """Every stream that a round draws from: its seed and its labels."""
    found = set()
    derive = KeyedStream.derive

    def noted(seed: bytes, *labels: str) -> KeyedStream:
        found.add((seed, labels))
        return derive(seed, *labels)

    with patch.object(KeyedStream, "derive", noted):
        compute_round(job, silent)
    return found


@pytest.mark.thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_two_workloads_of_an_analyst_share_a_stream(job: Job, name: str) -> None:
    """The same bytes do, and so does what any workload may look at: the table of `histogram`, a prior's tables."""
    options: dict[str, dict[str, object]] = {
        "small_db": {"database_size": 3},
        "multiplicative_weights": {"prior": "none"},
    }
    setting = replace(job.setting, options=options.get(name, {}), attributes=(2,))
    job = replace(job, setting=setting, plan=mechanism(name).plan(setting))
    red = attribute("colour") == "red"
    other = replace(job, workloads={"ann": workload_to_bytes((~red, Marginal(("colour",))))})
    streams = drawn(job)
    assert streams
    assert streams == drawn(replace(job))
    assert (streams & drawn(other) == set()) == (name != "histogram")


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SEPARATE))
def test_where_each_analyst_is_answered_alone_no_other_workload_moves_its_noise(job: Job, name: str) -> None:
    options = {"small_db": {"database_size": 3}}
    setting = replace(job.setting, options=options.get(name, {}), attributes=(2,))
    job = replace(job, setting=setting, plan=mechanism(name).plan(setting))
    beside = replace(job, workloads={**job.workloads, "bob": workload_to_bytes((attribute("colour") == "green",))})
    one, two = (compute_round(each, silent).answers["ann"] for each in (job, beside))
    assert flat(one) == flat(two)
