"""Translates the databases' errors into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DatabaseError, IntegrityError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from equipoise.errors import DataLoss, EquipoiseError, Unavailable

# SQLite tells damage in words, PostgreSQL by the codes data_corrupted and index_corrupted.
DAMAGED_WORDS = ("malformed", "not a database")
DAMAGED_CODES = ("XX001", "XX002")


@contextmanager
def translated() -> Iterator[None]:
    """Turn the database's errors into ours. An `IntegrityError` stays: a broken constraint is a defect of the code.

    Raises:
        DataLoss: the database is damaged.
        Unavailable: any other error. The transaction did not happen, or may not have: the request can be repeated.
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
def damage_as_data_loss() -> Iterator[None]:
    """Turn all foreign errors of reading a store into `DataLoss`, for commands that check a store.

    A damaged page can contain anything, such as invalid text, invalid JSON, or numbers that are too large.
    """
    try:
        yield
    except EquipoiseError:
        raise
    except Exception as error:
        raise DataLoss(f"the store is damaged: reading it failed ({type(error).__name__})") from error
