"""Templates made into pages: every text is escaped, and characters that are not printed are shown as escapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from equipoise.commands.columns import pair, shown_time
from equipoise.commands.printing import Columns, counted, is_numeric
from equipoise.wire.printable import printable

T = TypeVar("T")


@dataclass(frozen=True)
class Table:
    """What the macro `table` draws. `links`: of each row, the address of its first cell; empty for none."""

    heads: tuple[str, ...]
    rows: list[list[str]]
    numeric: tuple[bool, ...]
    links: tuple[str, ...] = ()
    marked: int = -1  # which row stands out


def table_of(columns: Columns[T], things: Sequence[T], links: Sequence[str] = (), marked: int = -1) -> Table:
    """Returns a table with a row for each thing, as the commands print it, without columns that are empty.

    Args:
        columns: what is shown of each, by title.
        things: the rows.
        links: of each row, where its first cell leads; none where empty.
        marked: which row stands out; -1: none.
    """
    rows = [["" if (cell := shown(each)) is None else str(cell) for shown in columns.values()] for each in things]
    filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    heads = tuple(columns)
    return plain_table(
        [heads[place] for place in filled], [[row[place] for place in filled] for row in rows], links, marked
    )


def plain_table(heads: Sequence[str], rows: list[list[str]], links: Sequence[str] = (), marked: int = -1) -> Table:
    """Returns a table of texts.

    Args:
        heads: the titles.
        rows: as many cells each.
        links: of each row, where its first cell leads; none where empty.
        marked: which row stands out; -1: none.
    """
    numeric = tuple(is_numeric([row[place] for row in rows]) for place in range(len(heads)))
    return Table(tuple(heads), rows, numeric, tuple(links), marked)


@dataclass(frozen=True)
class Part(Generic[T]):
    """One page of a longer list. `last`: the number of the last page; 0 where nobody knows it."""

    items: Sequence[T]
    number: int
    more: bool
    first: int = 0  # place of the first item in the list
    last: int = 0
    query: Mapping[str, str] = field(default_factory=dict)  # what links to other pages keep

    def address(self, number: int) -> str:
        """Returns the query that leads to another page."""
        parts = {**self.query, "page": str(number)}
        return "?" + "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in parts.items())


@dataclass(frozen=True)
class Stretch(Generic[T]):
    """A stretch of a list that begins with the newest.

    `older`: the query that leads on from its last item, empty at the end of the list; `newest`: whether it begins
    with the newest.
    """

    items: Sequence[T]
    older: str
    newest: bool


def _printable(value: object) -> object:
    """What an expression of a template comes to: texts as they can be shown, whoever wrote them."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return printable(value)


def _as_typed(text: str) -> Markup:
    """A text with its lines, for where people type; escaped, and each line printable."""
    return Markup("\n").join(escape(printable(line)) for line in text.split("\n"))


def _path(text: str) -> str:
    """A part of a path."""
    return quote(text, safe="")


@cache
def environment() -> Environment:
    """The templates. There is no way to leave a text unescaped: no filter `safe` is known."""
    made = Environment(
        loader=PackageLoader("equipoise.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    del made.filters["safe"]
    made.filters |= {"as_typed": _as_typed, "path": _path, "pair": pair, "time": shown_time}
    made.globals |= {"counted": counted}
    return made


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Returns the text of a page.

    Args:
        template: its file's name.
        values: what it shows.
    """
    return environment().get_template(template).render(values)
