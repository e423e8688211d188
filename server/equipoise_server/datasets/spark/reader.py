"""The program of the process that runs Spark: one question in, its answer out.

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
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

import numpy as np
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlalchemy import Table

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.spark.messages import Advance, Answer, Columns, Groups, Refused, Request
from equipoise_server.datasets.spark.session import asked, open_table, start, told
from equipoise_server.datasets.sql.columns import columns_of
from equipoise_server.datasets.sql.statement import grouping

REPORT_SECONDS = 0.5

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
            tell(_answer(request, tell))
    except InvalidArgument as error:
        tell(Refused(error.field, error.problem))


def _answer(request: Request, tell: Tell) -> Answer:
    session = start(request.place)
    try:
        threading.Thread(target=_report, args=(session, tell), daemon=True).start()
        table = open_table(session, request.place)
        if request.schema is None:
            return Columns(tuple(columns_of(lambda statement: asked(session, statement).collect(), table)))
        return _groups(session, request.schema, table)
    finally:
        session.stop()


def _groups(session: SparkSession, schema: Schema, table: Table) -> Groups:
    result = asked(session, grouping(table, schema)).toArrow()
    *words, counts = (np.asarray(column.to_numpy(), dtype=np.int64) for column in result.columns)
    return Groups(words, counts)


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
