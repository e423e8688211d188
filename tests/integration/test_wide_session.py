"""A session on a table of 2^39 possible records, which nobody can list, by a real server and the commands alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness.client_command import lines
from harness.dangers import LARGE_CAPS_TYPED
from harness.shop_commands import Run

from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements_file import statements_from_json
from equipoise.queries.workload_compiler import compile_workload
from equipoise_server.datasets.source import source_at

RECORDS = 20_000
SCHEMA = Schema(tuple(Attribute(f"a{place}", tuple("stuvwxyz")) for place in range(13)))
STATEMENTS: list[object] = [
    {"marginal": ["a0", "a12"]},
    {"all": [{"among": {"attribute": f"a{place}", "categories": ["s", "t", "u", "v"]}} for place in range(6)]},
    {"among": {"attribute": "a7", "categories": ["z"]}},
    {"marginal": ["a3", "a5", "a9"]},
]


def write_table(place: Path) -> None:
    """Write rows in which each attribute is mostly what the one before it is."""
    random = np.random.default_rng(8)
    columns = [random.integers(0, 8, RECORDS)]
    for _ in SCHEMA.names[1:]:
        other = np.minimum(random.geometric(0.4, RECORDS) - 1, 7)
        columns.append(np.where(random.random(RECORDS) < 0.6, columns[-1], other))
    rows = np.array(list("stuvwxyz"))[np.stack(columns, axis=1)]
    text = "\n".join([",".join(SCHEMA.names), *(",".join(row) for row in rows.tolist())])
    (place / "state" / "data" / "wide.csv").write_text(text + "\n")
    (place / "wide.json").write_text(SCHEMA.to_json())


@pytest.mark.full
def test_a_session_on_a_table_that_nobody_can_list(
    place: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    write_table(place)
    caps = ("--data-epsilon", 8, "--data-delta", "1e-9", "--analyst-epsilon", 8)
    table = ("--source", "wide.csv", "--schema", place / "wide.json")
    registered = run("operator", "operator", "dataset", "register", "wide", *table, *caps, *LARGE_CAPS_TYPED)
    assert registered["records"] == RECORDS
    run("operator", "operator", "analyst", "add", "ann", "--out", place / "ann")
    terms = ("wide", "--share", "ann=8/1000", "--mechanism", "online", "--prior", "own", "--beta", "1e-6")
    budget = ("--data-epsilon", 2, "--data-delta", "1e-10")
    opened = run("operator", "operator", "session", "open", *terms, *budget)
    session_id = opened["round"]["id"]
    statements = place / "wide-statements.json"
    statements.write_text(json.dumps({"version": 1, "statements": STATEMENTS}))
    told = lines(capsys, place / "ann", "ask", session_id, "--accept-unprotected", statements)
    assert lines(capsys, place / "ann", "ask", session_id, "--accept-unprotected", statements) == told

    workload = compile_workload(statements_from_json(statements.read_text()), SCHEMA)
    truths = source_at(place / "state" / "data" / "wide.csv").counts(SCHEMA).count(workload) / RECORDS
    answers = [answer for each in told for answer in each["answers"]]
    assert len(answers) == len(truths) == 8**2 + 1 + 1 + 8**3
    known = [(each, truth) for each, truth in zip(answers, truths.tolist(), strict=True) if each["low"] is not None]
    assert len(known) > 0.9 * len(answers)
    # The seed differs each time: by chance a truth lies outside in one run of a million.
    assert all(each["low"] <= truth + 1e-12 and truth - 1e-12 <= each["high"] for each, truth in known)
    assert np.mean([abs(each["value"] - truth) for each, truth in known]) < 0.01

    # The session is computed once more, and released only if every answer is the one that was told.
    run("operator", "operator", "session", "close", session_id)
    run("operator", "operator", "round", "run", session_id)
    run("operator", "operator", "round", "release", session_id)
    run("ann", "wait", session_id)
    results = run("ann", "results", session_id)["answers"]
    assert [each["value"] for each in results] == [each["value"] for each in answers]
