"""The task of a simulation: a table, and statements that are dealt to analysts, or drawn by them."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from equipoise.commands.person_options import PersonOptions
from equipoise.errors import InvalidArgument
from equipoise.model.rounds import Share
from equipoise.queries.joined_workloads import concatenate
from equipoise.queries.padding import padded_schema
from equipoise.queries.schema import Schema
from equipoise.queries.schema_file import read_schema_file
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.statements_file import statements_from_json
from equipoise.queries.text_file import read_text
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_lab.simulation.demand import draw_demand
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.persons.table import check_persons, records_of
from equipoise_server.datasets.source import source_at

MARGINALS = "marginals:"
DEFAULT_ANALYSTS = 10
MAX_STATEMENTS = 1 << 20
MAX_DRAWN_QUERIES = 1 << 25  # of all analysts together: their answers and errors take some 100 bytes a query
MAX_NUMBER = 9  # digits: longer ones are not converted

MAX_SHOWN = 40  # characters of a workload that is none

T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A table, and the workload and the public share of every analyst."""

    schema: Schema
    data: Counts
    workloads: Mapping[str, CompiledWorkload]
    shares: tuple[Share, ...]

    @classmethod
    def filling_shares(cls, schema: Schema, data: Counts, workloads: Mapping[str, CompiledWorkload]) -> Task:
        """Return a task whose analysts use up what they may ask, with what their workloads come to declared."""
        shares = (
            Share(analyst, own.statement_count, own.query_count, own.l1_sensitivity, own.support, own.ways)
            for analyst, own in workloads.items()
        )
        return cls(schema, data, workloads, tuple(shares))

    @property
    def records(self) -> int:
        """The number of records."""
        return self.data.records

    @property
    def together(self) -> CompiledWorkload:
        """All workloads, concatenated in the order of the analysts."""
        return concatenate(list(self.workloads.values()))


@dataclass(frozen=True)
class Analysts:
    """How many analysts ask, and for what: each statement dealt to one of them, or some drawn by each."""

    count: int | None
    tables_each: int | None
    seed: int


def seed_bytes(seed: int) -> bytes:
    """The 32 bytes that a simulation is derived from. A number anybody may repeat: simulations hold no secrets."""
    return hashlib.sha256(f"equipoise simulation {seed}".encode()).digest()


def load_task(table: Path, schema_file: Path, workload: str, analysts: Analysts, whose: PersonOptions) -> Task:
    """Read a table, its schema and what is asked of it.

    Args:
        table: a CSV or Parquet file.
        schema_file: the schema, in JSON.
        workload: a statements file, or `marginals:R` for all tables of R different attributes.
        analysts: among how many the statements are dealt, or how many each of them draws.
        whose: who is a person in the table.

    Returns:
        The task, with the counts of the table in memory.

    Raises:
        InvalidArgument: an option is wrong; the error names it.
    """
    schema = read_schema(schema_file, whose)
    statements = in_option("--workload", lambda: read_statements(workload, schema))
    data = read_records(table, schema, whose)
    if analysts.tables_each is None:
        dealt = deal(statements, analysts.count)
        own = in_option(
            "--workload", lambda: {name: compile_workload(asked, schema) for name, asked in dealt.items()}
        )
        return Task.filling_shares(schema, data, own)
    whole = in_option("--workload", lambda: compile_workload(statements, schema))
    share = share_of_each(whole, analysts)
    count = DEFAULT_ANALYSTS if analysts.count is None else analysts.count
    numbers = draw_demand(len(statements), count, share.statements, seed_bytes(analysts.seed))
    drawn = {
        f"analyst-{analyst}": compile_workload([statements[number] for number in own], schema)
        for analyst, own in enumerate(numbers, start=1)
    }
    return Task(schema, data, drawn, tuple(replace(share, analyst=name) for name in drawn))


def read_schema(file: Path, whose: PersonOptions) -> Schema:
    """Return the schema of a table's records, as it would be registered. Raises `InvalidArgument`: an option."""
    persons = in_option("--records", lambda: whose.persons)
    schema = in_option("--schema", lambda: read_schema_file(file))
    in_option("--person", lambda: check_persons(schema, whose.person or "", persons))
    return padded_schema(schema) if persons.padded else schema


def read_records(table: Path, schema: Schema, whose: PersonOptions) -> Counts:
    """Return a table's records, as they would be counted. Raises `InvalidArgument` naming the option."""
    source = records_of(source_at(table), whose.person or "", whose.persons)
    return in_option("--table", lambda: source.counts(schema))


def share_of_each(whole: CompiledWorkload, analysts: Analysts) -> Share:
    """Return the share that every analyst gets: it holds any `tables_each` statements, so it does not tell which.

    Args:
        whole: the workload that statements are drawn from.
        analysts: how many there are, and how many statements each draws.

    Returns:
        A share without a name.

    Raises:
        InvalidArgument: the option that is out of range, by its name.
    """
    tables, count = analysts.tables_each or 0, DEFAULT_ANALYSTS if analysts.count is None else analysts.count
    if not 1 <= tables <= whole.statement_count:
        problem = f"must lie between 1 and the {whole.statement_count:,} statements, not {tables:,}"
        raise InvalidArgument("--tables-per-analyst", problem)
    if not 1 <= count * tables <= MAX_STATEMENTS:
        problem = f"must be at least 1, and with {tables:,} tables each at most {MAX_STATEMENTS // tables:,}"
        raise InvalidArgument("--analysts", f"{problem}, not {count:,}")
    queries = int(np.sort(np.diff(whole.statement_offsets))[-tables:].sum())
    if count * queries > MAX_DRAWN_QUERIES:
        problem = f"would be up to {count * queries:,} queries in all, at most {MAX_DRAWN_QUERIES:,} are simulated"
        raise InvalidArgument("--analysts, --tables-per-analyst", problem)
    l1_sensitivity = sorted(whole.statement_sensitivity(number) for number in range(whole.statement_count))
    return Share("", tables, queries, sum(l1_sensitivity[-tables:]), whole.support)


def read_statements(workload: str, schema: Schema) -> tuple[Statement, ...]:
    """`marginals:R`: all tables of R different attributes; anything else names a statements file."""
    if not workload.startswith(MARGINALS):
        return statements_from_json(read_text(Path(workload)))
    ways, attributes = workload.removeprefix(MARGINALS), len(schema.names)
    if not ways.isdecimal() or len(ways) > MAX_NUMBER or not 1 <= int(ways) <= attributes:
        raise InvalidArgument(
            workload[:MAX_SHOWN], f"needs a number from 1 to the {attributes} attributes, such as {MARGINALS}2"
        )
    chosen = itertools.islice(itertools.combinations(schema.names, int(ways)), MAX_STATEMENTS + 1)
    statements = tuple(Marginal(names) for names in chosen)
    if len(statements) > MAX_STATEMENTS:
        raise InvalidArgument(workload, f"would be more than {MAX_STATEMENTS:,} tables")
    return statements


def deal(statements: Sequence[Statement], analysts: int | None) -> dict[str, list[Statement]]:
    """Deal the statements round-robin; without a number to ten analysts, or one a statement if there are fewer.

    Args:
        statements: all that are asked.
        analysts: how many there are; None: as above.

    Returns:
        Each analyst's statements, by names that are made up here.

    Raises:
        InvalidArgument: some analyst would get no statement.
    """
    count = min(DEFAULT_ANALYSTS, len(statements)) if analysts is None else analysts
    if not 1 <= count <= len(statements):
        raise InvalidArgument(
            "--analysts",
            f"must lie between 1 and the {len(statements)} statements, not {count}: each statement goes to one of "
            "them; with --tables-per-analyst several may ask for the same",
        )
    return {f"analyst-{number + 1}": list(statements[number::count]) for number in range(count)}


def in_option(option: str, read: Callable[[], T]) -> T:
    """Return what is read. Raises `InvalidArgument` naming the option for whatever is wrong with it.

    Args:
        option: of the command line, with its dashes.
        read: reads what the option names.
    """
    try:
        return read()
    except InvalidArgument as error:
        # What is wrong with the table as a whole need not be said to be wrong with the table twice.
        own = error.field == option.removeprefix("--")
        raise InvalidArgument(option, error.problem if own else error.message) from None
