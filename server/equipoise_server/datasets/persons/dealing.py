"""Deals a person's records over its rows. Every person gets exactly M, whatever rows it has.

Theorem. Let tables be sets of persons with different ids, each with at least one row, and let neighbours differ in
one person: its id and all of its rows. Then the tables of records that are made here differ in at most M records,
which are replaced. Proof. The records of a person are M, and a function of its own id, its own rows, the public
schema, mode and M, and `KEY`. Nothing of another person's has a part in it, nor has the order of rows, the order
of persons, or what was registered before. So M records are replaced where one person is, and no others move.

The key. The proof holds for every key that does not depend on the table. So `KEY` is a constant, and it is public:
nobody has to keep it, no replay needs it, and every machine and every newer table chooses alike. Whoever knows all
rows of a person can find out which of them count. That costs nobody anything, as what is promised holds for any
choice: nothing here is counted as sampling, which would need a secret. A key drawn from the table, or drawn
again until a choice pleases, would break the proof.

Ties. Equal rows of a person differ by their rank alone, and get tokens of their own, so that one of 40 rows is as
likely to be chosen as any other. Equal tokens, which nobody will meet, are settled by record and rank.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.model.persons import PersonMode, Persons

KEY = b"equipoise persons v1"
TOKEN_BYTES = 8


@dataclass(frozen=True, eq=False)
class PersonRows:
    """Rows of some persons, with all rows of each, as groups of equal records.

    `ids`: of the persons, as text, all different. `owners`: whose each group is, a place in `ids`, int64[groups].
    `records`: each group's categories, int64[groups, attributes]. `rows`: how many rows it has, int64[groups].
    """

    ids: Sequence[str]
    owners: NDArray[np.int64]
    records: NDArray[np.int64]
    rows: NDArray[np.int64]

    def ordered(self) -> PersonRows:
        """Return the same rows by persons and then by records, with one group for each record of a person."""
        keys = [*self.records.T[::-1], self.owners]
        order = np.lexsort(keys)
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = False
        for key in keys:
            begins[1:] |= key[order][1:] != key[order][:-1]
        first = np.flatnonzero(begins)
        sums = np.add.reduceat(self.rows[order], first) if len(first) else self.rows[:0]
        return PersonRows(self.ids, self.owners[order[first]], self.records[order[first]], sums)


def dealt(given: PersonRows, persons: Persons) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records of some persons, as groups: categories, int64[groups, attributes], and how many, int64.

    Records of nothing are left out: they are what persons with fewer than M rows lack, in the mode `events`.
    """
    ordered = given.ordered()
    match persons.mode:
        case PersonMode.EVENTS:
            return ordered.records, _count_chosen(ordered, persons.records)
        case PersonMode.AVERAGE:
            return ordered.records, _shared(ordered, persons.records)
        case PersonMode.ONE:
            return _usual(ordered), np.ones(len(ordered.ids), dtype=np.int64)
        case PersonMode.ROWS:
            return ordered.records, ordered.rows


def _count_chosen(given: PersonRows, most: int) -> NDArray[np.int64]:
    """Return how many rows of each group are chosen: the person's rows with the smallest tokens, at most `most`."""
    group = np.repeat(np.arange(len(given.rows)), given.rows)
    first = np.cumsum(given.rows) - given.rows
    rank = np.arange(len(group)) - first[group]
    tokens = _tokens(given, group, rank)
    owners = given.owners[group]
    order = np.lexsort((rank, group, tokens, owners))
    place = _place_within(owners[order])
    return np.bincount(group[order[place < most]], minlength=len(given.rows)).astype(np.int64)


def _shared(given: PersonRows, records: int) -> NDArray[np.int64]:
    """Return how many of a person's records each group gets: in proportion to its rows, by largest remainder.

    Of equal remainders the smaller token comes first.
    """
    whole = np.bincount(given.owners, given.rows, len(given.ids)).astype(np.int64)[given.owners]
    shares, left = np.divmod(records * given.rows, whole)
    dealt_out = np.bincount(given.owners, shares, len(given.ids)).astype(np.int64)
    groups = np.arange(len(given.rows))
    order = np.lexsort((groups, _tokens(given, groups, np.zeros_like(groups)), -left, given.owners))
    owners = given.owners[order]
    shares[order] += _place_within(owners) < (records - dealt_out)[owners]
    return shares


def _usual(given: PersonRows) -> NDArray[np.int64]:
    """Return one record a person, int64[persons, attributes]: of each attribute the category that most rows have.

    Of several such categories it is the first in the schema's order.
    """
    usual = np.zeros((len(given.ids), given.records.shape[1]), dtype=np.int64)
    for axis in range(given.records.shape[1]):
        size = int(given.records[:, axis].max(initial=0)) + 1
        pairs, of_pair = np.unique(given.owners * size + given.records[:, axis], return_inverse=True)
        rows = np.bincount(of_pair, given.rows, len(pairs)).astype(np.int64)
        owners, categories = np.divmod(pairs, size)
        order = np.lexsort((categories, -rows, owners))
        usual[:, axis] = categories[order[_place_within(owners[order]) == 0]]
    return usual


def _tokens(given: PersonRows, groups: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the token of each row, uint64: HMAC-SHA256 of its person, its record and its rank among equal rows.

    The message is the person's id in UTF-8 after its length in 4 bytes, the categories in 4 bytes each, and the
    rank in 8; the token is the digest's first 8 bytes. All numbers are little endian.
    """
    begins = [len(text).to_bytes(4, "little") + text for text in (each.encode() for each in given.ids)]
    records = np.ascontiguousarray(given.records, dtype="<u4")
    heads = [begins[owner] + record.tobytes() for owner, record in zip(given.owners.tolist(), records, strict=True)]
    return np.frombuffer(
        b"".join(
            hmac.digest(KEY, heads[group] + rank.to_bytes(8, "little"), "sha256")[:TOKEN_BYTES]
            for group, rank in zip(groups.tolist(), ranks.tolist(), strict=True)
        ),
        dtype="<u8",
    ).astype(np.uint64)


def _place_within(owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the place of each entry among those of its owner; owners ascend."""
    _, first, of_entry = np.unique(owners, return_index=True, return_inverse=True)
    return np.asarray(np.arange(len(owners)) - first[of_entry])
