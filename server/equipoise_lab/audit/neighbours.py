"""Tiny public instances and their neighbours, for audits of a mechanism.

Nothing here is private: tables and questions are made from a few numbers, so that what the mechanism hides best or
worst can be looked at. What is made is meant to be bad: the questions are all about what changes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.workload_compiler import CompiledWorkload, compile_workload
from equipoise_server.datasets.counts import Counts
from equipoise_server.datasets.dense_counts import DenseCounts
from equipoise_server.mechanisms.interface import PublicParameters

NAMES = "abcdefgh"
MAX_UNIVERSE = 4096
MAX_RECORDS = 1 << 20
MAX_ASKED = 1024  # analysts, and statements of each

_SIZES = re.compile(r"[1-9][0-9]{0,3}(x[1-9][0-9]{0,3})*", re.ASCII)


@dataclass(frozen=True)
class Input:
    """The private input of a run: the table and every analyst's workload."""

    data: Counts
    workloads: Mapping[str, CompiledWorkload]


@dataclass(frozen=True)
class Neighbours:
    """Two inputs of which a mechanism must show little difference to its viewers, the analysts named.

    `side`: "data" or "analysts", who is protected. `words` say what changes and what is asked. `margin`:
    int64[|X|], what each record of the synopsis adds to the number by which the two are described apart.
    """

    side: str
    words: str
    inputs: tuple[Input, Input]
    viewers: tuple[str, ...]
    margin: NDArray[np.int64]


@dataclass(frozen=True)
class Instance:
    """The public numbers. `universe`: the sizes of the attributes, such as `3x3`; `statements`: of each analyst."""

    universe: str
    records: int
    analysts: int
    statements: int
    unit: str
    data_budget: Budget
    analyst_budget: Budget
    beta: float
    options: Mapping[str, object]

    def check(self) -> None:
        """Raises `InvalidArgument` naming the number of which no neighbours can be made."""
        if not _SIZES.fullmatch(self.universe) or not 3 <= math.prod(self.sizes) <= MAX_UNIVERSE:
            problem = f"must be sizes of attributes, such as 3x3, of 3 to {MAX_UNIVERSE:,} records in all"
            raise InvalidArgument("universe", problem)
        if len(self.sizes) > len(NAMES) or min(self.sizes) < 2:
            raise InvalidArgument("universe", f"must have at most {len(NAMES)} attributes of 2 categories or more")
        for name, number, least, most in (
            ("records", self.records, 1, MAX_RECORDS),
            ("analysts", self.analysts, 2, MAX_ASKED),
            ("statements", self.statements, 1, MAX_ASKED),
        ):
            if not least <= number <= most:
                raise InvalidArgument(name, f"must lie between {least} and {most:,}, not {number:,}")
        if not math.isfinite(self.analyst_budget.epsilon):
            raise InvalidArgument("analyst_budget", "must be finite: without a claim there is nothing to audit")

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of categories of each attribute."""
        return tuple(int(size) for size in self.universe.split("x"))

    @cached_property
    def schema(self) -> Schema:
        """Attributes a, b, ... with categories 0, 1, ..."""
        named = zip(NAMES, self.sizes, strict=False)
        return Schema(tuple(Attribute(name, tuple(map(str, range(size)))) for name, size in named))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the analysts. The first is the one that changes."""
        return tuple(f"analyst-{place}" for place in range(1, self.analysts + 1))

    @cached_property
    def setting(self) -> PublicParameters:
        """What a mechanism plans from. Every analyst may ask as many conditions, each of which one record moves."""
        shares = tuple(Share(name, self.statements, self.statements, self.statements) for name in self.names)
        return PublicParameters(
            records=self.records,
            universe_size=self.schema.universe_size,
            shares=shares,
            unit=self.unit,
            data_budget=self.data_budget,
            analyst_budget=self.analyst_budget,
            beta=self.beta,
            options=self.options,
            attributes=self.sizes,
        )

    def neighbours(self) -> tuple[Neighbours, ...]:
        """What is audited: one moved record; then one changed statement, or analyst, among two kinds of others."""
        return (
            self._moved_record(),
            *(self._changed(others, words) for others, words in self._others()),
        )

    def _moved_record(self) -> Neighbours:
        """Return one record moves; every statement of everybody asks how many there are where it was.

        As many records stay there as elsewhere, so that noise either way shows.
        """
        stay = self.records // 2
        last = self.schema.universe_size - 1
        tables = []
        for there in (stay + self.records % 2, stay + self.records % 2 - 1):
            histogram = np.zeros(last + 1, dtype=np.int64)
            histogram[0], histogram[last] = there, self.records - there
            tables.append(DenseCounts(histogram, self.sizes))
        asked = self._all_ask(self._first)
        margin = np.zeros(last + 1, dtype=np.int64)
        margin[0], margin[last] = 1, -1
        inputs = (Input(tables[0], asked), Input(tables[1], asked))
        words = f"one record moves away; all ask how many have {self._describe(self._first)}, as it had"
        return Neighbours("data", words, inputs, self.names, margin)

    def _changed(self, others: Among, words: str) -> Neighbours:
        """Return the first analyst asks something else, in one statement or in all; all others look on together.

        The truth of both is the same, and far from what anybody would guess: a mechanism whose shared parts
        follow the questions follows them far. Statements that do not change are constant.
        """
        changes = self.statements if self.unit == "analyst" else 1
        rest = [self._constant] * (self.statements - changes)
        first, viewers = self.names[0], self.names[1:]
        shared = {name: self._workload([others] * self.statements) for name in viewers}
        inputs = tuple(
            Input(self._far_from_even, {first: self._workload([asked] * changes + rest), **shared})
            for asked in (self._first, self._other)
        )
        counted = [self._covered(workload) for workload in (self._first, self._other)]
        what = "every statement" if self.unit == "analyst" else "one statement"
        change = f"from {self._describe(self._first)} to {self._describe(self._other)}"
        described = f"{what} of {first} changes {change}; {words}"
        return Neighbours("analysts", described, (inputs[0], inputs[1]), viewers, counted[0] - counted[1])

    def _others(self) -> tuple[tuple[Among, str], ...]:
        """What all others may ask: what cannot be wrong, so that nothing outweighs the change; or the same."""
        return (
            (self._constant, "all others ask for all records"),
            (self._first, f"all others ask for {self._describe(self._first)}"),
        )

    @cached_property
    def _far_from_even(self) -> Counts:
        """Records of which as many satisfy what is asked before as after: all, or with one attribute half."""
        histogram = np.zeros(self.schema.universe_size, dtype=np.int64)
        if len(self.sizes) > 1:
            histogram[0] = self.records
        else:
            histogram[0], histogram[1] = self.records - self.records // 2, self.records // 2
        return DenseCounts(histogram, self.sizes)

    @property
    def _first(self) -> Among:
        return Among(NAMES[0], ("0",))

    @property
    def _other(self) -> Among:
        """About another attribute where there is one: which tables are asked for must not show either."""
        return Among(NAMES[1], ("0",)) if len(self.sizes) > 1 else Among(NAMES[0], ("1",))

    @property
    def _constant(self) -> Among:
        return Among(NAMES[0], tuple(map(str, range(self.sizes[0]))))

    def _describe(self, condition: Among) -> str:
        return f"{condition.attribute}={condition.categories[0]}"

    def _all_ask(self, condition: Among) -> dict[str, CompiledWorkload]:
        return {name: self._workload([condition] * self.statements) for name in self.names}

    def _covered(self, condition: Among) -> NDArray[np.int64]:
        """int64[|X|]: 1 for every record that satisfies the condition, 0 for the others."""
        return self._workload([condition]).transpose(np.ones(1, dtype=np.int64))

    def _workload(self, statements: Sequence[Among]) -> CompiledWorkload:
        return compile_workload(statements, self.schema)
