"""The task of a simulated session: a table, and each analyst's statements in the order of asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equipoise.commands.person_options import PersonOptions
from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Share
from equipoise.queries.schema import Schema
from equipoise.queries.session_workload import SessionWorkload
from equipoise.queries.statements import Statement
from equipoise.queries.statistics import CompiledStatistic
from equipoise.queries.workload_compiler import CompiledStatement, compile_statement
from equipoise_lab.simulation.task import in_option, read_records, read_schema, read_statements
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.interface import GRID_BITS
from equipoise_server.mechanisms.low_sensitivity.database_question import database_of


@dataclass(frozen=True)
class SessionTask:
    """A table, and every analyst's statements in the order of asking.

    Analysts ask by turns: the first statement of each, then the second of each who has one, and so on.
    """

    schema: Schema
    data: Counts
    statements: Mapping[str, tuple[CompiledStatement, ...]]

    @property
    def records(self) -> int:
        """The number of records."""
        return self.data.records

    @property
    def shares(self) -> tuple[Share, ...]:
        """Just what each analyst asks."""
        return tuple(
            Share(analyst, len(own), sum(each.query_count for each in own))
            for analyst, own in self.statements.items()
        )

    def length(self, slotted: bool) -> int:
        """Return the turns, or statements in all, that are needed."""
        counts = [len(own) for own in self.statements.values()]
        return max(counts) if slotted else sum(counts)

    def asked(self, slotted: bool) -> dict[str, SessionWorkload]:
        """Return every analyst's statements in their slots: those of its turns, or by the order of asking."""
        slots: dict[str, list[int]] = {analyst: [] for analyst in self.statements}
        for place, (analyst, turn) in enumerate(self._by_turns()):
            slots[analyst].append(turn * len(slots) + list(slots).index(analyst) if slotted else place)
        return {
            analyst: SessionWorkload(np.array(slots[analyst], dtype=np.int64), own)
            for analyst, own in self.statements.items()
        }

    def truth(self) -> NDArray[np.float64]:
        """Return the true answers of all cells, float64[k], one analyst's after another's."""
        cells = [self._truth(statement) for own in self.statements.values() for statement in own]
        return np.concatenate(cells)

    def _by_turns(self) -> Iterator[tuple[str, int]]:
        for turn in range(self.length(slotted=True)):
            yield from ((analyst, turn) for analyst, own in self.statements.items() if turn < len(own))

    def _truth(self, statement: CompiledStatement) -> NDArray[np.float64]:
        if isinstance(statement, CompiledStatistic):
            return statement.values(database_of(self.schema.sizes, self.data)) / 2.0**GRID_BITS
        return self.data.count(statement) / self.records


def load_session_task(
    table: Path, schema_file: Path, workloads: Sequence[str], whose: PersonOptions
) -> SessionTask:
    """Reads everything; each workload is one analyst's. Raises `InvalidArgument` naming the option."""
    schema = read_schema(schema_file, whose)
    statements = in_option(
        "--workload",
        lambda: {
            f"analyst-{place}": compiled(read_statements(each, schema), schema)
            for place, each in enumerate(workloads, start=1)
        },
    )
    return SessionTask(schema, read_records(table, schema, whose), statements)


def compiled(statements: Sequence[Statement], schema: Schema) -> tuple[CompiledStatement, ...]:
    """Return each statement alone, as a session takes it; what is asked again is compiled once.

    Raises `InvalidArgument` naming the statement.
    """
    if not statements:
        raise InvalidArgument("statements", "are empty; a session is simulated on at least one")
    known: dict[Statement, CompiledStatement] = {}
    for number, statement in enumerate(statements):
        if statement not in known:
            known[statement] = compile_statement(statement, schema, f"statements[{number}]")
    return tuple(known[statement] for statement in statements)
