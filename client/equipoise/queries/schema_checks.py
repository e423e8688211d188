"""Checks of the single values that a schema holds: names, labels, edges, and the JSON that they are read from."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import check_seconds, date_text, seconds_of

MAX_CATEGORIES = 1 << 16  # of one attribute
MAX_EDGE = 1e300
MAX_LABEL = 256  # characters of a name or label
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def edge_text(edge: float, dates: bool = False) -> str:
    """Returns an edge as a schema file has it: a number, or a date in ISO 8601.

    Args:
        edge: a number, or seconds since 1970-01-01 in UTC.
        dates: whether edges are dates.
    """
    if dates:
        return date_text(edge)
    return str(int(edge)) if float(edge).is_integer() and abs(edge) < 1e15 else repr(float(edge))


def bin_labels(edges: tuple[float, ...], dates: bool = False) -> tuple[str, ...]:
    """Returns what bins are called unless the schema says otherwise: `[0, 15)`.

    Args:
        edges: at least two, ascending; one more than there are bins.
        dates: whether edges are dates.
    """
    names = [edge_text(edge, dates) for edge in edges]
    return tuple(f"[{low}, {high})" for low, high in itertools.pairwise(names))


def read_edges(field: str, document: Mapping[str, object]) -> tuple[tuple[float, ...], bool]:
    """Returns the edges under the key `edges`, and whether they are dates. Raises `InvalidArgument`.

    Args:
        field: the attribute's place in the schema, which messages name.
        document: the attribute's JSON object.
    """
    listed = read_list(field, document, "edges")
    dates = isinstance(next(iter(listed), None), str)
    values = []
    for i, edge in enumerate(listed):
        at = f"{field}.edges[{i}]"
        if dates and not isinstance(edge, str):
            raise InvalidArgument(at, "must be a date, as the first edge is")
        values.append(seconds_of(at, edge) if dates and isinstance(edge, str) else check_edge(at, edge))
    if "edges" in document and len(values) < 2:
        raise InvalidArgument(f"{field}.edges", "must be at least two")
    return tuple(values), dates


def read_codes(field: str, document: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Returns the pairs under the key `codes`, ascending: a value of the table, and the category it stands for.

    Args:
        field: the attribute's place in the schema, which messages name.
        document: the attribute's JSON object.

    Raises:
        InvalidArgument: what is there is no object of texts.
    """
    pairs = document.get("codes", {})
    if not isinstance(pairs, dict):
        raise InvalidArgument(f"{field}.codes", "must be a JSON object")
    return tuple(sorted((code, check_text(f"{field}.codes[{code!r}]", label)) for code, label in pairs.items()))


def check_labels(labels: tuple[str, ...], positions: Mapping[str, int]) -> None:
    """Raises `InvalidArgument` unless there are labels, all of them valid and different.

    Args:
        labels: of an attribute's categories.
        positions: the last place of each of them.
    """
    if not labels:
        raise InvalidArgument("categories", "are empty")
    if len(labels) > MAX_CATEGORIES:
        raise InvalidArgument("categories", f"are more than {MAX_CATEGORIES:,}")
    for i, label in enumerate(labels):
        check_text(f"categories[{i}]", label)
    if len(positions) < len(labels):
        twice = next(label for i, label in enumerate(labels) if positions[label] != i)
        raise InvalidArgument("categories", f"hold {twice!r} twice")


def check_codes(codes: tuple[tuple[str, str], ...], positions: Mapping[str, int], none: str) -> None:
    """Raises `InvalidArgument` unless each code stands for one category, and none is another category's label.

    Args:
        codes: pairs of a value of the table and a category.
        positions: the place of each category; of an attribute with edges none, as it has no codes.
        none: the category of records of nothing, for which no value stands; empty where there is none.
    """
    if len(codes) > MAX_CATEGORIES:
        raise InvalidArgument("codes", f"are more than {MAX_CATEGORIES:,}")
    if codes and not positions:
        raise InvalidArgument("codes", "are for attributes without edges only")
    before = ""
    for code, label in codes:
        check_text("codes", code)
        if not before < code:
            raise InvalidArgument("codes", f"must be different and ascending, and {code!r} follows {before!r}")
        before = code
        if label not in positions or label == none:
            raise InvalidArgument(
                "codes", f"say that {code!r} stands for {label!r}, which is no category of values"
            )
        if code in positions and code != label:
            raise InvalidArgument("codes", f"say that {code!r} stands for {label!r}, but a category is called so")


def check_edges(edges: tuple[float, ...], dates: bool) -> None:
    """Raises `InvalidArgument` unless there are two edges or more, ascending, all of them valid.

    Args:
        edges: of an attribute's bins.
        dates: whether they are seconds that stand for dates.
    """
    for i, edge in enumerate(edges):
        check_edge(f"edges[{i}]", edge)
        if dates:
            check_seconds(f"edges[{i}]", edge)
        if i and not edges[i - 1] < edge:
            raise InvalidArgument(f"edges[{i}]", "must be above the edge before it")
    if len(edges) < 2:
        raise InvalidArgument("edges", "must be at least two")


def read_list(field: str, document: Mapping[str, object], key: str) -> list[object]:
    """Returns the list under a key of a JSON object, empty where there is none.

    Args:
        field: what errors call the object.
        document: the object.
        key: the key.

    Raises:
        InvalidArgument: what is there is no list.
    """
    value = document.get(key, [])
    if not isinstance(value, list):
        raise InvalidArgument(f"{field}.{key}", "must be a list")
    return list(value)


def check_keys(field: str, document: Mapping[str, object], known: set[str]) -> None:
    """Raises `InvalidArgument`, naming `field`, where a key is none of those known.

    Args:
        field: the object's place in the schema.
        document: the JSON object.
        known: the keys that it may have.
    """
    for key in document:
        if key not in known:
            raise InvalidArgument(field, f"has an unknown key {key!r}; known are {', '.join(sorted(known))}")


def check_edge(field: str, edge: object) -> float:
    """Returns an edge of bins as a float. Raises `InvalidArgument`, naming `field`."""
    # json reads NaN and huge integers without complaint; neither may reach arithmetic with floats.
    if isinstance(edge, bool) or not isinstance(edge, int | float) or not abs(edge) <= MAX_EDGE:
        raise InvalidArgument(field, "must be a finite number")
    return float(edge)


def check_text(field: str, text: object) -> str:
    """Returns a name or label. Raises `InvalidArgument`, naming `field`."""
    if not isinstance(text, str):
        raise InvalidArgument(field, "must be a string")
    if not text:
        raise InvalidArgument(field, "is empty")
    if len(text) > MAX_LABEL:
        raise InvalidArgument(field, f"is longer than {MAX_LABEL} characters")
    # Lone surrogates pass through JSON, but not into UTF-8; control characters disturb terminals and logs.
    if _CONTROL.search(text):
        raise InvalidArgument(field, "holds a control character or half of a surrogate pair")
    return text
