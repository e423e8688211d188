"""A trial of a round or session without a server: the same questions, answers of the same form, nothing spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from equipoise.errors import VerificationFailed
from equipoise.frames import Frame
from equipoise.local.noise import Noise, exact_answers
from equipoise.local.tables import records_of
from equipoise.model.submissions import DryRun
from equipoise.queries.compiled_workload import CompiledWorkload
from equipoise.queries.schema import Schema
from equipoise.queries.schema_file import read_schema_file
from equipoise.queries.statements import Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.questions.builder import Table
from equipoise.questions.question import Question
from equipoise.questions.questions import Questions
from equipoise.questions.sql_extra import questions_of
from equipoise.results import Labels, Results


class LocalClient:
    """Asks a table on one's own disk as `Client` asks a custodian's; made by `Client.local`.

    The methods are those of `Client` by the same names, and frames have the same columns. Any name will do for the
    round. What was submitted to it decides what may be read of it, as in a real one; in a round
    to which nothing was submitted, questions are answered when they are asked, as in a session.

    Args:
        table: a CSV or Parquet file, columns by name, or a data frame, as `equipoise.local.tables` reads it.
        schema: of the table, or its file.
        noise: how much is added to the answers.
    """

    def __init__(self, table: object, schema: Schema | str | Path, noise: Noise) -> None:
        self._schema = schema if isinstance(schema, Schema) else read_schema_file(Path(schema))
        self._table = records_of(table, self._schema)
        self._noise = noise
        self._submitted: dict[str, tuple[Statement, ...]] = {}

    @property
    def schema(self) -> Schema:
        """The table's."""
        return self._schema

    @property
    def records(self) -> int:
        """How many the table has."""
        return len(self._table)

    def sql(self, round_id: str, text: str) -> Questions:  # noqa: ARG002 - as `Client.sql`
        """Translates SQL; FROM may name any table. Raises as `Client.sql`."""
        return questions_of(text, self._schema)

    def table(self, round_id: str) -> Table:  # noqa: ARG002 - as `Client.table`
        """Returns the table, to put questions together in Python."""
        return Table(self._schema, "table")

    def dry_run(self, round_id: str, statements: Sequence[Statement]) -> DryRun:  # noqa: ARG002 - as `Client.dry_run`
        """Returns what a workload comes to. Raises `InvalidArgument` naming what is malformed."""
        workload = compile_workload(statements, self._schema)
        return DryRun(
            workload.statement_count,
            workload.query_count,
            min(1.0, self._noise.half_width(workload) / self.records),
            0,
            workload.l1_sensitivity,
            workload.support,
            self._noise.mean_error(workload) / self.records,
        )

    def explain(self, round_id: str, questions: Questions) -> Frame:
        """Returns the error that each statement is expected to have. Raises as `dry_run`."""
        dry = self.dry_run(round_id, questions.statements)
        return questions.expected(dry.expected_error, dry.max_half_width, self.records)

    def explain_numbers(self, round_id: str, questions: Questions) -> Frame:
        """Returns the error that each number which is shown is expected to have. Raises as `dry_run`."""
        dry = self.dry_run(round_id, questions.statements)
        return questions.expected_numbers(dry.expected_error, dry.max_half_width, self.records)

    def submit(self, round_id: str, asked: Sequence[Statement] | Questions) -> None:
        """Submits statements, or those of questions, to a round of this trial, in place of any. As `dry_run`."""
        statements = tuple(asked.statements if isinstance(asked, Questions) else asked)
        compile_workload(statements, self._schema)
        self._submitted[round_id] = statements

    def wait(self, round_id: str) -> None:
        """Returns at once: a trial's answers are there when they are asked for."""

    def results(self, round_id: str, statements: Sequence[Statement] = ()) -> Results:
        """Returns the answers to what was submitted, or else to these statements. Raises as `Client.results`."""
        asked = self._submitted.get(round_id, tuple(statements))
        workload = compile_workload(asked, self._schema)
        labels = Labels(self._schema, tuple(statements)) if statements else None
        results = Results(round_id, self._noise.answers(workload, self._table), labels)
        results.check_labels()
        return results

    def frames(self, round_id: str, questions: Questions, *, fractions: bool = False) -> tuple[Frame, ...]:
        """Returns a table for each question. Raises as `Client.frames`."""
        asked = self._submitted.get(round_id, questions.statements)
        if asked != questions.statements:
            raise VerificationFailed("these are not the questions that were submitted to this round")
        results = self.results(round_id, asked) if asked else None
        return questions.answers(results, self.records, fractions=fractions)

    def truth(self, questions: Questions, *, fractions: bool = False) -> tuple[Frame, ...]:
        """Returns the same tables without noise, to compare: the table is one's own.

        Args:
            questions: any.
            fractions: whether counts are shown as fractions of the records.
        """
        workload: CompiledWorkload = compile_workload(questions.statements, self._schema)
        results = Results("truth", exact_answers(workload, self._table)) if questions.statements else None
        frames = questions.answers(results, self.records, fractions=fractions)
        return tuple(map(_without_noise, frames, questions))


def _without_noise(frame: Frame, question: Question) -> Frame:
    """The frame of exact answers, whose method is none of a round's."""
    methods = {f"{each.name}_method" for each in question.outputs} & frame.columns.keys()
    exact = {name: ["exact"] * len(frame) for name in methods}
    return replace(frame, columns=dict(frame.columns) | exact)
