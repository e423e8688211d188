"""What a simulation works on: a table, and statements dealt to analysts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries import Marginal, Statement
from equipoise.schema import Schema
from equipoise.statements import statements_from_json
from equipoise.workload import CompiledWorkload, compile_workload, concatenate
from equipoise_server.data.source import load_histogram
from equipoise_server.mechanisms.interface import Share

MARGINALS = "marginals:"
DEFAULT_ANALYSTS = 10
MOST_STATEMENTS = 1 << 20
LONGEST_NUMBER = 9  # digits: longer ones are not converted

MOST_SHOWN = 40  # characters of a workload that is none

T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A table as counts over the universe, int64[|X|], and the workload of every analyst."""

    schema: Schema
    histogram: NDArray[np.int64]
    workloads: Mapping[str, CompiledWorkload]

    @property
    def records(self) -> int:
        """The number of records."""
        return int(self.histogram.sum())

    @property
    def together(self) -> CompiledWorkload:
        """All workloads, one analyst's after another's."""
        return concatenate(list(self.workloads.values()))

    @property
    def shares(self) -> tuple[Share, ...]:
        """Shares that the analysts use up."""
        return tuple(
            Share(analyst, workload.statement_count, workload.query_count)
            for analyst, workload in self.workloads.items()
        )


def load_task(table: Path, schema_file: Path, workload: str, analysts: int | None) -> Task:
    """Reads everything. Raises `InvalidArgument` naming the option that is wrong."""
    schema = _option("--schema", lambda: Schema.from_json(_text(schema_file)))
    statements = _option("--workload", lambda: read_statements(workload, schema))
    loaded = _option("--table", lambda: load_histogram(table, schema))
    dealt = deal(statements, analysts)
    compiled = _option("--workload", lambda: {name: compile_workload(own, schema) for name, own in dealt.items()})
    return Task(schema, loaded.histogram, compiled)


def read_statements(workload: str, schema: Schema) -> tuple[Statement, ...]:
    """`marginals:R`: all tables of R different attributes; anything else names a statements file."""
    if not workload.startswith(MARGINALS):
        return statements_from_json(_text(Path(workload)))
    ways, attributes = workload.removeprefix(MARGINALS), len(schema.names)
    if not ways.isdecimal() or len(ways) > LONGEST_NUMBER or not 1 <= int(ways) <= attributes:
        raise InvalidArgument(
            workload[:MOST_SHOWN], f"needs a number from 1 to the {attributes} attributes, such as {MARGINALS}2"
        )
    chosen = itertools.islice(itertools.combinations(schema.names, int(ways)), MOST_STATEMENTS + 1)
    statements = tuple(Marginal(names) for names in chosen)
    if len(statements) > MOST_STATEMENTS:
        raise InvalidArgument(workload, f"would be more than {MOST_STATEMENTS:,} tables")
    return statements


def deal(statements: Sequence[Statement], analysts: int | None) -> dict[str, list[Statement]]:
    """Deals the statements round-robin; without a number to ten analysts, or one a statement if there are fewer."""
    count = min(DEFAULT_ANALYSTS, len(statements)) if analysts is None else analysts
    if not 1 <= count <= len(statements):
        raise InvalidArgument("--analysts", f"must lie between 1 and the {len(statements)} statements, not {count}")
    return {f"analyst-{number + 1}": list(statements[number::count]) for number in range(count)}


def _option(option: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except InvalidArgument as error:
        # What is wrong with the table as a whole need not be said to be wrong with the table twice.
        own = error.field == option.removeprefix("--")
        raise InvalidArgument(option, error.problem if own else error.message) from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArgument(str(path), "is not UTF-8 text") from None
