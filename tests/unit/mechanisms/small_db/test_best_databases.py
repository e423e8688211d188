"""How far the best small database may be from the data: a bound, against all tables and all databases."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.small_db.plan import nearest

UNIVERSE, RECORDS = 3, 5


def furthest(size: int) -> Fraction:
    """The error of the best database on one query, of the table and the query for which it is largest."""
    tables = list(itertools.combinations_with_replacement(range(UNIVERSE), RECORDS))
    databases = list(itertools.combinations_with_replacement(range(UNIVERSE), size))
    errors = []
    for asked in range(1 << UNIVERSE):
        parts = [Fraction(sum(asked >> each & 1 for each in database), size) for database in databases]
        for table in tables:
            truth = Fraction(sum(asked >> each & 1 for each in table), RECORDS)
            errors.append(min(abs(part - truth) for part in parts))
    return max(errors)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_a_single_query_s_best_database_errs_by_no_more_than_is_promised(size: int) -> None:
    alone = PublicParameters(
        RECORDS, UNIVERSE, (Share("ana", 1, 1),), "query", Budget(1.0, 1e-6), Budget(1.0, 1e-6), 0.05, {}
    )
    assert float(furthest(size)) <= nearest(alone, size)
