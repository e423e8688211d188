"""The same answers for statements of one meaning: in another order of cells, or of a condition's other side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from equipoise.model.results import Answers
from equipoise.queries.fixed_point import ONE
from equipoise.queries.meanings import Meaning, places_of


def as_keyed(meaning: Meaning, answers: Answers) -> Answers:
    """Return a statement's answers in the order and of the side of its meaning's key.

    Args:
        meaning: of the statement.
        answers: to its counts, in its own order.
    """
    own = answers if meaning.order is None else answers[np.argsort(places_of(meaning))]
    return _other_side(own) if meaning.opposite else own


def as_asked(meaning: Meaning, answers: Answers) -> Answers:
    """Return answers to a meaning's key as the statement asks for them: the reverse of `as_keyed`.

    Args:
        meaning: of the statement.
        answers: in the order and of the side of the meaning's key.
    """
    own = answers if meaning.order is None else answers[places_of(meaning)]
    return _other_side(own) if meaning.opposite else own


def overlapping(one: Answers, other: Answers) -> Answers:
    """Return of each count the value with the smaller standard error, and the overlap of both intervals.

    Both intervals hold, so their overlap does. Where one of them failed there may be none: then the interval is
    that of the value.

    Args:
        one: answers to some counts, whose values count where both err alike.
        other: answers to the same counts.
    """
    first = one.standard_errors <= other.standard_errors
    lows, highs = np.maximum(one.lows, other.lows), np.minimum(one.highs, other.highs)
    overlap = lows <= highs
    return replace(
        one,
        values=np.where(first, one.values, other.values),
        standard_errors=np.where(first, one.standard_errors, other.standard_errors),
        lows=np.where(overlap, lows, np.where(first, one.lows, other.lows)),
        highs=np.where(overlap, highs, np.where(first, one.highs, other.highs)),
    )


def _other_side(answers: Answers) -> Answers:
    """Return the answers for the records that do not satisfy a condition: all records less those that do."""
    return replace(answers, values=ONE - answers.values, lows=ONE - answers.highs, highs=ONE - answers.lows)
