"""Tables of answers, as other programs take them: Arrow, pandas, Polars, DuckDB, files, notebooks, pictures."""

from __future__ import annotations

import csv
import html
import importlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from equipoise.errors import InvalidArgument
from equipoise.queries.csv_labels import csv_label

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".csv", ".json", ".parquet")
SHOWN_IN_HTML = 60  # rows
SHOWN_ROWS = 20  # as text

Numbers: TypeAlias = NDArray[np.float64] | NDArray[np.int64]
Values: TypeAlias = Sequence[object] | Numbers
Kind: TypeAlias = Literal["text", "integer", "number", "range"]
"""The type of the values in a list. A `range` is a text that names a bin; ranges are in the order of bins."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A table of answers: named columns of equal length, of texts, or of numbers, where NaN is no number.

    pandas, Polars, DuckDB and pyarrow take it as it is, by the Arrow PyCapsule interface, where pyarrow is
    installed: `polars.DataFrame(frame)`.

    `kinds`: what columns that are no arrays hold, also where no row has a value; texts where nothing is said.

    >>> import numpy as np
    >>> frame = Frame({"origin": ["JFK", None], "late": np.array([12.5, np.nan])})
    >>> frame.to_dicts()
    [{'origin': 'JFK', 'late': 12.5}, {'origin': None, 'late': None}]
    """

    columns: Mapping[str, Values]
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Values:
        """Returns a column. Raises `InvalidArgument` for another name."""
        try:
            return self.columns[name]
        except KeyError:
            raise InvalidArgument("column", f"there is no {name!r}; there are {', '.join(self.names)}") from None

    def __str__(self) -> str:
        """The first rows, in columns."""
        rows = [[*map(shown, row)] for row in itertools.islice(self.rows(), SHOWN_ROWS)]
        widths = [max(map(len, column)) for column in zip(self.names, *rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (self.names, *rows)]
        more = len(self) - len(rows)
        return "\n".join([*lines, f"... and {more:,} more rows"] if more else lines)

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yields the rows; what is missing is None."""
        yield from zip(*map(_plain, self.columns.values()), strict=True)

    def to_dicts(self) -> list[dict[str, object]]:
        """Returns one dict a row, ready for JSON."""
        return [dict(zip(self.names, row, strict=True)) for row in self.rows()]

    def to_arrow(self) -> pyarrow.Table:
        """Returns an Arrow table; what is missing is null. Needs the extra `arrow`."""
        arrow = _installed("pyarrow", "equipoise[arrow]")
        types = {"integer": arrow.int64(), "number": arrow.float64()}

        def column(name: str, values: Values) -> Any:
            if isinstance(values, np.ndarray):
                return arrow.array(values, from_pandas=True)
            kind = types.get(self.kinds.get(name, ""))
            unknown = kind is None and all(each is None for each in values)
            return arrow.array(values, arrow.string() if unknown else kind)

        return arrow.table({name: column(name, values) for name, values in self.columns.items()})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow PyCapsule interface: a stream of the whole table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Returns a pandas data frame. Needs pandas and the extra `arrow`."""
        _installed("pandas", "pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Returns a Polars data frame. Needs polars and the extra `arrow`."""
        return _installed("polars", "polars").DataFrame(self.to_arrow())

    def to_csv(self, target: str | Path | TextIO) -> None:
        """Writes CSV, in which what is missing is empty, and no label is run by a spreadsheet (`csv_label`)."""
        if isinstance(target, str | Path):
            with Path(target).open("w", newline="", encoding="utf-8") as file:
                self.to_csv(file)
            return
        writer = csv.writer(target, lineterminator="\n")
        writer.writerow(map(csv_label, self.names))
        writer.writerows(
            [csv_label(each) if isinstance(each, str) else each for each in row] for row in self.rows()
        )

    def write(self, path: str | Path) -> None:
        """Writes a file, of the kind that its name ends in: .csv, .json (one list of objects) or .parquet.

        Raises:
            InvalidArgument: the name ends in something else, or the file cannot be written.
        """
        path = Path(path)
        check_suffix(path)
        try:
            if path.suffix == ".csv":
                self.to_csv(path)
            elif path.suffix == ".json":
                text = json.dumps({"version": 1, "answers": self.to_dicts()}, ensure_ascii=False)
                path.write_text(text + "\n", encoding="utf-8")
            else:
                _installed("pyarrow.parquet", "equipoise[arrow]").write_table(self.to_arrow(), path)
        except OSError as error:
            raise InvalidArgument(str(path), f"cannot be written: {error.strerror}") from None

    def _repr_html_(self) -> str:
        """The first rows as a notebook shows them."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        body = ""
        for row, _ in zip(self.rows(), range(SHOWN_IN_HTML), strict=False):
            body += "<tr>" + "".join(f"<td>{html.escape(shown(each))}</td>" for each in row) + "</tr>"
        more = len(self) - SHOWN_IN_HTML
        note = f"<p>... and {more:,} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def plot(self, number: str = "", axes: Any = None) -> Any:
        """Draws the rows' numbers with their intervals, where they have one. Needs the extra `plots`.

        Rows by one column of numbers, or of bins, that grow from row to row are a line, and what is missing is a
        point beside it; all others are bars.

        Args:
            number: the column to draw; the first one with an interval if it is empty.
            axes: matplotlib's, to draw on; None for new ones, with room for all labels.

        Returns:
            The axes.

        Raises:
            InvalidArgument: there is no such column of numbers, or matplotlib is not installed.
        """
        drawn = number or next((name for name in self.names if f"{name}_low" in self.columns), "")
        values = self[drawn]
        if not isinstance(values, np.ndarray):
            raise InvalidArgument("number", f"{drawn!r} is no column of numbers")
        if axes is None:
            axes = _installed("matplotlib.pyplot", "equipoise[plots]").subplots(layout="constrained")[1]
        keys = self._keys()
        line = len(keys) == 1 and self._grows(keys[0])
        known = np.array([each is not None for each in self[keys[0]]]) if line else np.ones(len(self), bool)
        numbers = line and known.all() and self.kinds[keys[0]] != "range"
        places = np.array(self[keys[0]], np.float64) if numbers else np.arange(len(self), dtype=np.float64)
        if line:
            axes.plot(places[known], values[known], color="#5b86b4", marker="o", markersize=4)
            axes.plot(places[~known], values[~known], color="#5b86b4", marker="o", markersize=4, linestyle="")
        else:
            axes.bar(places, np.nan_to_num(values), color="#8fb3d9")
        if f"{drawn}_low" in self.columns:
            lows, highs = np.asarray(self[f"{drawn}_low"]), np.asarray(self[f"{drawn}_high"])
            # An unbiased value may lie outside of its interval, which stays within what is possible.
            axes.vlines(places, lows, highs, color="#20364d", linewidth=1.5)
        if not numbers:
            labels = [" / ".join(map(shown, row)) for row in zip(*(self[name] for name in keys), strict=True)]
            axes.set_xticks(places, labels or [""] * len(self), rotation=90 if len(self) > 6 else 0)
        axes.set_xlabel(" / ".join(keys))
        axes.set_ylabel(drawn)
        return axes

    def _keys(self) -> list[str]:
        """The columns that say what a row stands for."""
        lists = [name for name, each in self.columns.items() if not isinstance(each, np.ndarray)]
        return [name for name in lists if not name.endswith("_method")]

    def _grows(self, name: str) -> bool:
        """Whether the values of a column are numbers or bins that grow from row to row."""
        values, kind = [each for each in self[name] if each is not None], self.kinds.get(name, "text")
        if kind == "text" or len(values) < 2:
            return False
        return kind == "range" or bool((np.diff(np.array(values, np.float64)) > 0).all())


def check_suffix(path: Path) -> None:
    """Raises `InvalidArgument` where a frame cannot be written to a file of this name."""
    if path.suffix not in SUFFIXES:
        raise InvalidArgument(str(path), f"must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")


def shown(value: object) -> str:
    """Returns a value as people read it: nothing for what is missing, numbers with six digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.6g}"
    return str(value)


def _plain(values: Values) -> Sequence[object]:
    if not isinstance(values, np.ndarray):
        return values
    return [None if isinstance(each, float) and not math.isfinite(each) else each for each in values.tolist()]


def _installed(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidArgument(module, f"is not installed; run: pip install '{package}'") from None
