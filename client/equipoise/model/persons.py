"""Who is a person in a table, as far as it is public: how many records a person has, and what they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from equipoise.errors import InvalidArgument

MAX_PERSON_RECORDS = 1 << 12


class PersonMode(StrEnum):
    """How the rows of a person become its records.

    ROWS: each row is a person of its own. EVENTS: at most so many of the person's rows, and records of nothing
    for the rest. AVERAGE: so many records, dealt over the person's rows in proportion. ONE: one record, which has
    of each attribute the category that most of the person's rows have.
    """

    ROWS = "rows"
    EVENTS = "events"
    AVERAGE = "average"
    ONE = "one"


@dataclass(frozen=True)
class Persons:
    """Whose privacy a table's accounts count: a person has exactly `records` of its records, M.

    Raises `InvalidArgument` where a mode and a number do not go together.
    """

    mode: PersonMode = PersonMode.ROWS
    records: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.records <= MAX_PERSON_RECORDS:
            raise InvalidArgument("records", f"must lie between 1 and {MAX_PERSON_RECORDS:,} for each person")
        if self.records > 1 and self.mode in {PersonMode.ROWS, PersonMode.ONE}:
            raise InvalidArgument("records", f"must be 1 in the mode {self.mode}")

    @property
    def padded(self) -> bool:
        """Whether records of nothing fill up what persons with fewer rows lack."""
        return self.mode is PersonMode.EVENTS and self.records > 1

    def in_short(self) -> str:
        """Say the same in a cell of a table."""
        if self.mode is PersonMode.ROWS:
            return "each row"
        return f"{self.records:,} of {self.mode}" if self.mode is not PersonMode.ONE else "one record"

    def in_words(self) -> str:
        """Say whom the promise of privacy is for."""
        match self.mode:
            case PersonMode.ROWS:
                return "each row is its own person: whoever has several rows is protected less"
            case PersonMode.EVENTS if self.records == 1:
                return "a person has 1 record, one of its rows"
            case PersonMode.EVENTS:
                return f"a person has {self.records:,} records: at most so many of its rows, and none for the rest"
            case PersonMode.AVERAGE:
                many = "1 record" if self.records == 1 else f"{self.records:,} records"
                return f"a person has {many}, dealt over all of its rows in proportion"
            case PersonMode.ONE:
                return "a person has 1 record, with what most of its rows have of each attribute"


EACH_ROW = Persons()
