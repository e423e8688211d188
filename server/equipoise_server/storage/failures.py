"""The databases' errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from equipoise.errors import DataLoss, EquipoiseError, Unavailable

# SQLite says it in words, PostgreSQL by the class XX00n of its codes: data_corrupted, index_corrupted.
DAMAGED_WORDS = ("malformed", "not a database")
DAMAGED_CODES = ("XX001", "XX002")


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into ours. A broken constraint stays: it is a defect, not a condition.

    Everything else is `Unavailable`: nothing of the transaction has happened, or it is not known whether; the same
    request again is right.
    """
    try:
        yield
    except IntegrityError:
        raise
    except (DatabaseError, InterfaceError) as error:
        problem = str(error.orig).lower()
        damaged = getattr(error.orig, "sqlstate", None) in DAMAGED_CODES
        if damaged or any(words in problem for words in DAMAGED_WORDS):
            raise DataLoss("the store is damaged") from error
        raise Unavailable("the store is out of order now") from error
    except PoolTimeoutError as error:
        raise Unavailable("the store is busy") from error


@contextmanager
def damage_is_told() -> Iterator[None]:
    """Turn whatever reading a store raises that is no error of ours into `DataLoss`, for commands that check it.

    A damaged page can hold anything: text that is no text, JSON that is none, numbers that are too large.
    """
    try:
        yield
    except EquipoiseError:
        raise
    except Exception as error:
        raise DataLoss(f"the store is damaged: reading it failed ({type(error).__name__})") from error
