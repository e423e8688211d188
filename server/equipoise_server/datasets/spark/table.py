"""Tables that a Spark counts. Spark and its Java run in a process of their own, which ends with the reading.

The data directory has a file for each, which ends in `.spark.toml` (`datasets.spark.description`). As a database,
Spark is asked how many rows have which categories of the schema's attributes; of persons, also by these.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Self

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise_server.datasets.columns import Column
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.packed_codes import counts_of
from equipoise_server.datasets.persons.groups import PersonColumn, RowsAPerson, Settled, Unsettled
from equipoise_server.datasets.progress import OnRead, unseen
from equipoise_server.datasets.snapshot import Snapshot, of_rows, of_version
from equipoise_server.datasets.spark.description import read_place
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
    Question,
    Refused,
    Request,
    RowNumbers,
    State,
    Told,
)

# -P: no module is taken from the directory where the server happens to run.
READER = (sys.executable, "-P", "-m", "equipoise_server.datasets.spark.reader")


@dataclass(frozen=True)
class SparkTable:
    """A table that a file describes. `datasets.source.Source` documents the methods."""

    path: Path
    title: ClassVar[str] = "Spark"
    suffixes: ClassVar[tuple[str, ...]] = (".spark.toml",)

    @classmethod
    def of(cls, path: Path, options: Mapping[str, str], field: str) -> Self:
        """Return the table that the file at a path describes. Raises `InvalidArgument` for options."""
        if options:
            raise InvalidArgument(f"{field}: {next(iter(options))}", "descriptions for Spark have no options")
        return cls(path)

    def exists(self) -> bool:
        return os.path.isfile(self.path)

    def counts(self, schema: Schema, progress: OnRead = unseen) -> Counts:
        (answer,) = self._ask(ByRecords(schema), progress)
        assert isinstance(answer, Groups)
        return counts_of(schema, answer.words, answer.counts)

    def snapshot(self, schema: Schema, person: str = "") -> Snapshot:
        place, _ = read_place(self.path)
        if place.path is not None and "://" not in place.path and not os.path.exists(place.path):
            raise InvalidArgument("table", "there is nothing at its path")
        if place.path is not None and place.snapshot is not None:
            return of_version(place.path, place.format, place.snapshot)
        (answer,) = self._ask(State(schema, person), unseen)
        assert isinstance(answer, Facts)
        return of_rows(answer.numbers)

    def persons(
        self, schema: Schema, column: PersonColumn, progress: OnRead = unseen
    ) -> Iterator[Settled | Unsettled]:
        for answer in self._ask(ByPersons(schema, column), progress):
            assert isinstance(answer, Settled | Unsettled)
            yield answer

    def rows_a_person(self, column: str) -> RowsAPerson:
        (answer,) = self._ask(RowNumbers(column), unseen)
        assert isinstance(answer, RowsAPerson)
        return answer

    def columns(self) -> tuple[Column, ...]:
        (answer,) = self._ask(Contents(), unseen)
        assert isinstance(answer, Columns)
        return answer.columns

    def same_table(self, other: object) -> bool:
        if not isinstance(other, SparkTable) or not other.exists():
            return False
        mine, theirs = read_place(self.path)[0], read_place(other.path)[0]
        return (mine.path, mine.table, mine.snapshot) == (theirs.path, theirs.table, theirs.snapshot)

    def _ask(self, question: Question, progress: OnRead) -> Iterator[Told]:
        """Yield what a process that reads tells. Raises `InvalidArgument` where it refuses, or ends early."""
        if importlib.util.find_spec("pyspark") is None:
            raise InvalidArgument("table", "needs PySpark, which is not installed; see docs/tables.md")
        place, properties = read_place(self.path)
        with _reading(properties) as (questions, answers):
            answer = _first(questions, answers, Request(place, question))
            while not isinstance(answer, Ended):
                match answer:
                    case Refused(field, problem):
                        raise InvalidArgument(field, problem)
                    case Advance(done, total):
                        progress(done, total)
                    case _:
                        yield answer
                answer = _next(answers)


def _first(questions: IO[bytes], answers: IO[bytes], request: Request) -> Answer:
    with suppress(OSError):  # a process that has ended gives no answer
        pickle.dump(request, questions)
        questions.flush()
    return _next(answers)


def _next(answers: IO[bytes]) -> Answer:
    try:
        answer: Answer = pickle.load(answers)
    except (EOFError, OSError, pickle.UnpicklingError):
        raise InvalidArgument("table", "Spark's process has ended while it read") from None
    return answer


@contextmanager
def _reading(properties: Path | None) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Start a process that reads, and end it. Yields where it takes the question, and where its answers are."""
    environment = dict(os.environ)
    if properties is not None:
        # The list of processes shows the file's name and none of the settings in it.
        environment["PYSPARK_SUBMIT_ARGS"] = f"--properties-file {shlex.quote(str(properties))} pyspark-shell"
    with (
        tempfile.TemporaryDirectory(prefix="equipoise-spark-", ignore_cleanup_errors=True) as directory,
        subprocess.Popen(
            READER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=environment,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdin, process.stdout
        finally:
            process.kill()
            with suppress(OSError):  # what it has not taken
                process.stdin.close()
