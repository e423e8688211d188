"""What a question has counted, by the groups that it asks for: one statement, or several, for each measure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.predicates import Among
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement, Sum
from equipoise.questions.conditions import RecordSet, all_of

PUBLIC, SEVERAL = 0, 255  # beside the numbers of `AnswerMethod`: known without asking; answered in different ways


@dataclass(frozen=True)
class Bucket:
    """One of the values of a CASE that groups are made of; None is SQL's NULL."""

    label: str | float | None
    records: RecordSet


@dataclass(frozen=True)
class Key:
    """What a question groups by: an attribute, or the buckets of a CASE."""

    attribute: str = ""
    buckets: tuple[Bucket, ...] = ()


@dataclass(frozen=True)
class Clamped:
    """The numbers of an attribute; those below `low` count as it, and those above `high`. None: none is beyond."""

    attribute: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Measure:
    """What is counted in each group.

    Attributes:
        records: those that count.
        added: what is added up of them, by weights (`Sum`); None where they are counted.
        parted: the attribute by whose categories they are counted one by one; empty where they are not.
    """

    records: RecordSet
    added: Clamped | None = None
    parted: str = ""


@dataclass(frozen=True, eq=False)
class Counted:
    """Counts with their intervals, an array of the shape of the groups for each; NaN where there is no interval.

    Where a measure is parted by an attribute, each has one more dimension, that of its categories.
    """

    values: NDArray[np.float64]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    methods: NDArray[np.uint8]


@dataclass(frozen=True)
class Counting:
    """How some measures are counted for all groups: which statements, and which of their answers are whose.

    `records`: those that are counted at all.
    """

    schema: Schema
    keys: tuple[Key, ...]
    records: RecordSet
    measures: tuple[Measure, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """What has to be asked, in order. What follows from the schema alone is not asked."""
        return tuple(each for each in self._parts_asked if not isinstance(each, bool))

    def parts(self, measure: Measure) -> tuple[Statement | bool, ...]:
        """Returns the statements that count a measure, or what is known of it: all records, or none.

        Args:
            measure: one of `measures`.
        """
        parts = zip(self._places, self._parts_asked, strict=True)
        return tuple(asked for (each, _, _), asked in parts if each == measure)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """How many groups there are, by key."""
        return tuple(len(key.buckets) or _real(self.schema.attribute(key.attribute)) for key in self.keys)

    @cached_property
    def groups(self) -> int:
        """How many groups there are."""
        return math.prod(self.shape)

    def read(self, answers: Counted, starts: Mapping[Statement, int], records: int) -> dict[Measure, Counted]:
        """Returns what was counted, by measure.

        Args:
            answers: to some statements, those of this question among them, as fractions: an array of queries each.
            starts: where the answers to each statement begin.
            records: the number of records in the table.

        Returns:
            Counts in arrays of the shape of the groups.
        """
        return dict(self._read(answers, starts, records))

    @property
    def sizes(self) -> tuple[tuple[Statement, int], ...]:
        """The statements, each with the number of its answers."""
        return tuple(
            (asked, math.prod(self.schema.attribute(name).size for name in names))
            for (_, _, names), asked in zip(self._places, self._parts_asked, strict=True)
            if not isinstance(asked, bool)
        )

    @cached_property
    def _places(self) -> list[tuple[Measure, tuple[int | slice, ...], tuple[str, ...]]]:
        """Of each part: its measure, where it belongs in the groups, and the attributes of its cells."""
        places = []
        for measure in self.measures:
            for choice in itertools.product(
                *(range(len(key.buckets)) if key.buckets else [-1] for key in self.keys)
            ):
                place = tuple(slice(None) if number < 0 else number for number in choice)
                names = [key.attribute for key in self.keys if not key.buckets]
                names += [measure.parted] if measure.parted else []
                places.append((measure, place, tuple(names)))
        return places

    @cached_property
    def _parts_asked(self) -> list[Statement | bool]:
        """Of each part: the statement that counts it, or what is known of it: all records, or none."""
        asked: list[Statement | bool] = []
        for measure, place, names in self._places:
            chosen = [
                key.buckets[number].records
                for key, number in zip(self.keys, place, strict=True)
                if isinstance(number, int)
            ]
            condition = all_of((self.records, measure.records, *chosen))
            where = None if condition is True or condition is False else condition
            if condition is False:
                asked.append(False)
            elif measure.added is not None:
                asked.append(Sum(measure.added.attribute, names, where, measure.added.low, measure.added.high))
            elif names:
                asked.append(Marginal(names, where))
            elif condition is True and self.schema.padded:
                first = self.schema.attributes[0]
                asked.append(Among(first.name, first.categories[:-1]))
            else:
                asked.append(condition)
        return asked

    def _read(
        self, answers: Counted, starts: Mapping[Statement, int], records: int
    ) -> Iterator[tuple[Measure, Counted]]:
        parts = zip(self._places, self._parts_asked, strict=True)
        for measure, of_measure in itertools.groupby(parts, key=lambda part: part[0][0]):
            parts_of = (self.schema.attribute(measure.parted).size,) if measure.parted else ()
            shape = self.shape + parts_of
            values, lows, highs = (np.zeros(shape) for _ in range(3))
            whole = Counted(values, lows, highs, np.zeros(shape, dtype=np.uint8))
            for (_, place, names), asked in of_measure:
                if isinstance(asked, bool):
                    for array in (whole.values, whole.lows, whole.highs):
                        array[place] = records if asked else 0
                    continue
                attributes = [self.schema.attribute(name) for name in names]
                start = starts[asked]
                span = slice(start, start + math.prod(each.size for each in attributes))
                sizes = [each.size for each in attributes]
                real = tuple(slice(None if each.name == measure.parted else _real(each)) for each in attributes)
                counts = _counts(answers.values[span], records)
                whole.values[place] = counts.reshape(sizes)[real]
                whole.lows[place] = answers.lows[span].reshape(sizes)[real] * records
                # A count that was told a little lower is not above its own interval.
                highs = np.maximum(answers.highs[span] * records, counts)
                whole.highs[place] = highs.reshape(sizes)[real]
                whole.methods[place] = answers.methods[span].reshape(sizes)[real]
            yield measure, whole


def _counts(fractions: NDArray[np.float64], records: int) -> NDArray[np.float64]:
    """Counts of the records. Fractions are told in units of 2^-40, rounded down: a whole count a little lower."""
    counts = fractions * records
    whole = np.rint(counts)
    return np.where(np.abs(counts - whole) <= records * 2.0**-40, whole, counts)


def _real(attribute: Attribute) -> int:
    """How many categories records can be in that are not records of nothing."""
    return attribute.size - bool(attribute.none)
