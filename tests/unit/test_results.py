"""Results as columns, rows, files; a stream that is not whole is refused."""

from __future__ import annotations

import csv
import io
import math
from importlib import import_module

import duckdb
import numpy as np
import pytest
from harness.answers import some_answers

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.results import AnswerMethod, ResultColumns
from equipoise.queries.csv_labels import csv_label
from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.results import COLUMNS, Answer, Labels, Results
from equipoise.v1 import types_pb2
from equipoise.wire.results import chunk_from_bytes, results_to_chunks

SCHEMA = Schema((Attribute("sex", ("f", "m")), Attribute("smokes", ("no", "yes"))))
STATEMENTS: tuple[Statement, ...] = (Marginal(("sex", "smokes")), attribute("sex") == "f")
ROUND = "r1"


def columns(count: int = 5) -> list[ResultColumns]:
    values = np.arange(count, dtype=np.int64) << 38
    methods = np.array([1 + i % 5 for i in range(count)], dtype=np.uint8)
    answers = some_answers(values, methods, 1 << 30)
    return [chunk_from_bytes(chunk) for chunk in results_to_chunks(ROUND, answers)]


def test_the_ways_of_answering_are_the_wire_s() -> None:
    wire = {
        name.removeprefix("ANSWER_METHOD_"): number for name, number in types_pb2.AnswerMethod.items() if number
    }
    assert {method.name: method.value for method in AnswerMethod} == wire


def test_rows_carry_statement_and_cell() -> None:
    rows = list(Results.collect(ROUND, columns(), Labels(SCHEMA, STATEMENTS)))
    assert rows[1] == Answer(
        0.25, 0.25 - 2.0**-10, 0.25 + 2.0**-10, 2.0**-11, AnswerMethod.LAPLACE, 0, ("f", "yes")
    )
    assert rows[0] == Answer(0.0, 0.0, 2.0**-10, None, AnswerMethod.SYNOPSIS, 0, ("f", "no"))
    assert rows[4] == Answer(1.0, None, None, None, AnswerMethod.UNCERTIFIED, 1, ())


def test_a_marginal_of_some_records_has_the_cells_of_the_whole_one() -> None:
    some = Labels(SCHEMA, (Marginal(("sex", "smokes"), attribute("sex") == "f"), attribute("sex") == "f"))
    assert list(some) == list(Labels(SCHEMA, STATEMENTS))
    assert some.queries == 5


def test_rows_without_statements() -> None:
    assert {(row.statement, row.cell) for row in Results.collect(ROUND, columns())} == {(-1, ())}


def test_values_are_exact() -> None:
    results = Results.collect(ROUND, columns())
    assert (results.values * 2.0**40 == results.answers.values).all()
    assert results.counted()[AnswerMethod.SYNOPSIS] == 1


@pytest.mark.parametrize("label", ["=1+2", "@sum", "+x", "-x", "-inf", "-1_0", "\uff1d1+2", "\uff20sum"])
def test_no_label_of_a_csv_file_is_a_formula(label: str) -> None:
    schema = Schema((Attribute("a", (label, "-5", "x")),))
    answers = some_answers(np.zeros(3, dtype=np.int64), AnswerMethod.GAUSSIAN)
    text = io.StringIO()
    Results("r", answers, Labels(schema, (Marginal(("a",)),))).to_csv(text)
    assert [row["cell"] for row in csv.DictReader(io.StringIO(text.getvalue()))] == [f"'{label}", "-5", "x"]
    assert all(csv_label(number) == number for number in ("-5", "+0.25", "-.5", "-1e-7", "-3.", "5"))
    assert all(csv_label(before + label) == f"'{before}{label}" for before in "\t\r\n")


def test_csv_and_arrow_hold_the_same() -> None:
    results = Results.collect(ROUND, columns(), Labels(SCHEMA, STATEMENTS))
    text = io.StringIO()
    results.to_csv(text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    table = results.to_arrow().to_pylist()
    assert [row["method"] for row in rows] == [row["method"] for row in table]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in table]
    assert rows[1]["cell"] == table[1]["cell"] == "f / yes"
    assert list(rows[0]) == list(table[0]) == list(COLUMNS)
    for name in ("low", "high", "standard_error"):
        numbers = [row[name] for row in table]
        assert numbers == [row[name] for row in results.to_dicts()]
        assert [row[name] for row in rows] == ["" if number is None else str(number) for number in numbers]
        assert numbers[4] is None
        column = getattr(results, f"{name}s")
        assert [None if math.isnan(number) else number for number in column.tolist()] == numbers


def test_data_frames_take_results_as_they_are_as_fractions_or_counts() -> None:
    results = Results.collect(ROUND, columns(), Labels(SCHEMA, STATEMENTS))
    rows = results.to_dicts()
    polars, pandas = import_module("polars"), import_module("pandas")  # seldom wanted, and slow to load
    assert polars.DataFrame(results).to_dicts() == results.to_polars().to_dicts() == rows
    assert pandas.DataFrame.from_arrow(results).equals(results.to_pandas())
    assert duckdb.from_arrow(results.to_arrow()).fetchall() == [tuple(row.values()) for row in rows]
    counts = results.frame(400).to_dicts()
    for name in ("value", "low", "high", "standard_error"):
        assert [row[name] for row in counts] == [None if row[name] is None else 400 * row[name] for row in rows]  # type: ignore[operator]
    assert "uncertified" in results._repr_html_()


def test_wide_cells_and_many_statements_keep_their_places() -> None:
    statements = (*STATEMENTS, Marginal(("smokes",)), attribute("sex") == "m", *STATEMENTS)
    results = Results(
        "r", some_answers(np.zeros(13, dtype=np.int64), AnswerMethod.GAUSSIAN), Labels(SCHEMA, statements)
    )
    frame = results.frame()
    assert frame["cell"] == [" / ".join(answer.cell) for answer in results]
    assert np.asarray(frame["statement"]).tolist() == [answer.statement for answer in results]


def test_many_messages_are_joined() -> None:
    parts = columns(3000)
    assert len(parts) == 3
    assert len(Results.collect(ROUND, parts)) == 3000


@pytest.mark.parametrize("kept", [[0, 2], [1, 2], [0, 1], [0, 1, 1, 2], [], [0, 1, 2, 2]])
def test_a_stream_with_a_gap_is_refused(kept: list[int]) -> None:
    parts = columns(3000)
    with pytest.raises(DataLoss):
        Results.collect(ROUND, [parts[i] for i in kept])


def test_another_round_s_message_is_refused() -> None:
    with pytest.raises(DataLoss):
        Results.collect("r2", columns())


def test_statements_that_were_not_submitted_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="statements: stand for 4 queries, but there are 5"):
        Results.collect(ROUND, columns(), Labels(SCHEMA, STATEMENTS[:1]))
