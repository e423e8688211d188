"""The program of the process that runs Spark: one question in, its answers out.

    python -P -m equipoise_server.datasets.spark.reader < request > answers

Spark starts a Java that writes to its standard output and error what it likes. Here both lead nowhere. The process
ends with its parent, and its Java with the process.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlalchemy import Select, Table

from equipoise.errors import InvalidArgument
from equipoise_server.datasets.persons.groups import (
    BLOCK,
    PersonColumn,
    RowsAPerson,
    Settled,
    Unsettled,
    whole_persons,
)
from equipoise_server.datasets.spark.messages import (
    Advance,
    Answer,
    ByPersons,
    ByRecords,
    Columns,
    Contents,
    Ended,
    Facts,
    Groups,
    Refused,
    Request,
    RowNumbers,
    State,
    Told,
)
from equipoise_server.datasets.spark.session import asked, open_table, start, told
from equipoise_server.datasets.sql.columns import columns_of
from equipoise_server.datasets.sql.persons import PersonStatements, person_statements, rows_a_person_statement
from equipoise_server.datasets.sql.snapshot import snapshot_statement
from equipoise_server.datasets.sql.statement import grouping

REPORT_SECONDS = 0.5
REPLACED = "\ufffd"  # what Java makes of bytes that are no text

Tell = Callable[[Answer], None]


def main() -> None:
    """Answer the question that is on standard input."""
    os.environ["TZ"] = "UTC"  # in which Spark gives times to Python
    time.tzset()
    answers = _standard_output_to_nowhere()
    request: Request = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    turn = threading.Lock()

    def tell(answer: Answer) -> None:
        with turn:
            pickle.dump(answer, answers)
            answers.flush()

    try:
        with told():
            _answer(request, tell)
        tell(Ended())
    except InvalidArgument as error:
        tell(Refused(error.field, error.problem))


def _answer(request: Request, tell: Tell) -> None:
    session = start(request.place)
    try:
        threading.Thread(target=_report, args=(session, tell), daemon=True).start()
        for part in _answers(session, request, open_table(session, request.place)):
            tell(part)
    finally:
        session.stop()


def _answers(session: SparkSession, request: Request, table: Table) -> Iterator[Told]:
    match request.question:
        case ByRecords(schema):
            *words, counts = _numbers(session, grouping(table, schema))
            yield Groups(words, counts)
        case ByPersons(schema, column):
            yield from _persons(session, person_statements(table, schema, column), column)
        case RowNumbers(column):
            yield RowsAPerson.of(asked(session, rows_a_person_statement(table, column)).collect())
        case Contents():
            yield Columns(tuple(columns_of(lambda statement: asked(session, statement).collect(), table)))
        case State(schema, person):
            (facts,) = asked(session, snapshot_statement(table, schema, person)).collect()
            yield Facts(tuple(int(fact or 0) for fact in facts))


def _persons(
    session: SparkSession, statements: PersonStatements, column: PersonColumn
) -> Iterator[Settled | Unsettled]:
    ((count, nameless),) = asked(session, statements.totals).collect()
    *words, rows, persons = _numbers(session, statements.settled)
    yield Settled(words, rows, persons, int(count), int(nameless or 0))
    found = asked(session, statements.unsettled).toLocalIterator()
    for block in whole_persons(iter(lambda: list(islice(found, BLOCK)), [])):
        # Two ids that are no text would look alike here, and be one person for some of the statements only.
        if any(REPLACED in each for each in block.ids):
            raise InvalidArgument("person", f"column {column.name!r} has an id that is not UTF-8 text")
        yield block


def _numbers(session: SparkSession, statement: Select[Any]) -> list[NDArray[np.int64]]:
    """Return the columns of a statement of whole numbers, int64 each."""
    result = asked(session, statement).toArrow()
    return [np.asarray(column.to_numpy(), dtype=np.int64) for column in result.columns]


def _report(session: SparkSession, tell: Tell) -> None:
    """Tell how many tasks are done, of the stages that have begun, until Spark stops."""
    tracker = session.sparkContext.statusTracker()
    with suppress(Py4JError, PySparkException, OSError):
        while True:
            time.sleep(REPORT_SECONDS)
            stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
            if total := sum(info.numTasks for info in stages):
                tell(Advance(sum(info.numCompletedTasks for info in stages), total))


def _standard_output_to_nowhere() -> BinaryIO:
    """Return the standard output, which from now on belongs to the answers alone."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return answers


def _end_with_parent() -> None:
    """Wait for the end of standard input, which comes when the parent has died, and end."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
