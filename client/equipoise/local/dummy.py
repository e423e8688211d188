"""Dummy tables: random records of a public schema, with which code can be tried before anything is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.frames import Frame
from equipoise.queries.dates import date_text
from equipoise.queries.schema import Attribute, Schema

UNLISTED = "unlisted"  # what a label that the schema does not list is called here
MAX_RECORDS = 100_000_000


def dummy_table(schema: Schema, records: int = 10_000, seed: int = 0) -> Frame:
    """Returns a random table of a schema. It is made of the schema alone, so it says nothing about any real table.

    Every attribute is drawn for itself, every category of it as often as any other.

    Args:
        schema: of the table.
        records: how many, at least 1.
        seed: the same one gives the same table.

    Returns:
        A column for each attribute, of labels or codes, numbers within bins or dates, and None for missing values.

    Raises:
        InvalidArgument: `records` is out of range.
    """
    if not 1 <= records <= MAX_RECORDS:
        raise InvalidArgument("records", f"must be from 1 to {MAX_RECORDS:,}")
    random = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {}
    for attribute in schema.attributes:
        real = attribute.size - bool(attribute.none)
        codes = random.integers(0, real, records)
        values = list(_values(attribute))
        columns[attribute.name] = (
            [values[code] for code in codes.tolist()] if not attribute.edges else _draw_in(attribute, codes, random)
        )
    return Frame(columns)


def _values(attribute: Attribute) -> Iterator[object]:
    """A value of each category that has no bin: the first code that stands for it, or its label."""
    codes = {label: code for code, label in reversed(attribute.codes)}
    for label in attribute.categories:
        if label == attribute.missing and attribute.missing:
            yield None
        elif label == attribute.unknown and attribute.unknown:
            yield _beyond(attribute)
        else:
            yield codes.get(label, label)


def _beyond(attribute: Attribute) -> object:
    """A value that is in no listed category."""
    if attribute.edges:
        return _number_or_date(attribute, math.floor(attribute.edges[0]) - 1)
    label = UNLISTED
    while label in attribute.categories or label in dict(attribute.codes):
        label += "_"
    return label


def _draw_in(attribute: Attribute, codes: NDArray[np.int64], random: np.random.Generator) -> list[object]:
    """Numbers or dates, anywhere in their bins; whole ones where a bin has any."""
    edges, values = np.array(attribute.edges), list(_values(attribute))
    inside = np.minimum(codes, attribute.bins - 1)
    lows, highs = edges[inside], edges[inside + 1]
    drawn = lows + random.random(len(codes)) * (highs - lows)
    whole = np.floor(drawn)
    chosen = np.where(whole >= lows, whole, np.clip(drawn, lows, np.nextafter(highs, lows)))
    return [
        _number_or_date(attribute, number) if code < attribute.bins else values[code]
        for code, number in zip(codes.tolist(), chosen.tolist(), strict=True)
    ]


def _number_or_date(attribute: Attribute, number: float) -> object:
    if attribute.dates:
        return date_text(number)
    return int(number) if float(number).is_integer() else number
