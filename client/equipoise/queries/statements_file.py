"""The statements file: what an analyst asks, as JSON.

    {"version": 1, "statements": [
      {"marginal": ["origin", "month"]},
      {"among": {"attribute": "carrier", "categories": ["AA", "UA"]}},
      {"interval": {"attribute": "dep_delay", "low": 15, "high": null}},
      {"all": [{"among": {"attribute": "origin", "categories": ["JFK"]}},
               {"not": {"interval": {"attribute": "distance", "low": null, "high": 400}}}]},
      {"any": [{"among": {"attribute": "origin", "categories": ["JFK"]}},
               {"among": {"attribute": "month", "categories": ["6", "7"]}}]},
      {"quantile": {"attribute": "dep_delay", "level": 0.5, "window": 0.05}},
      {"variance": {"attribute": "dep_delay"}},
      {"count_distinct": ["origin", "carrier"]},
      {"capped_sum": {"attribute": "dep_delay", "cap": 60}}
    ]}

A statement is a marginal, a condition or, in sessions of `low_sensitivity`, one of the last four. Intervals are
half-open, [low, high); null is infinite on that side. Whether attributes and categories exist is not looked at
here: that needs a schema, and the server says it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from equipoise.errors import InvalidArgument
from equipoise.queries.predicate_compiler import MAX_DEPTH
from equipoise.queries.predicates import (
    AllOf,
    Among,
    AnyOf,
    CappedSum,
    CountDistinct,
    Interval,
    Marginal,
    Not,
    Predicate,
    Quantile,
    Statement,
    Variance,
)

VERSION = 1


def statements_from_json(text: str) -> tuple[Statement, ...]:
    """Reads a statements file. Raises `InvalidArgument` naming, for example, `statements[3].all[1].among`."""
    document = _check_keys(_parsed(text, "statements", "are"), {"version", "statements"}, "statements file")
    version = document["version"]
    if isinstance(version, bool) or version != VERSION:
        raise InvalidArgument("version", f"must be {VERSION}")
    statements = document["statements"]
    if not isinstance(statements, list) or not statements:
        raise InvalidArgument("statements", "must be a list, and not empty")
    return tuple(_read_statement(each, f"statements[{i}]") for i, each in enumerate(statements))


def statement_from_json(text: str) -> Statement:
    """Reads one statement, as a file lists them. Raises `InvalidArgument` naming, say, `statement.among`."""
    return _read_statement(_parsed(text, "statement", "is"), "statement")


def statements_to_json(statements: Sequence[Statement]) -> str:
    """The file of some statements, one a line; `statements_from_json` reads it back to equal ones."""
    lines = ",\n".join("  " + json.dumps(_write(each), ensure_ascii=False, allow_nan=False) for each in statements)
    return f'{{"version": {VERSION}, "statements": [\n{lines}\n]}}\n'


def _parsed(text: str, field: str, verb: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(field, f"{verb} not JSON: {error}") from None


def _write(statement: Statement) -> dict[str, object]:
    match statement:
        case Marginal(attributes):
            return {"marginal": list(attributes)}
        case Among(attribute, categories):
            return {"among": {"attribute": attribute, "categories": list(categories)}}
        case Interval(attribute, low, high):
            return {
                "interval": {
                    "attribute": attribute,
                    "low": None if low == -math.inf else low,
                    "high": None if high == math.inf else high,
                }
            }
        case AllOf(conditions):
            return {"all": [_write(each) for each in conditions]}
        case AnyOf(conditions):
            return {"any": [_write(each) for each in conditions]}
        case Not(condition):
            return {"not": _write(condition)}
        case Quantile(attribute, level, window):
            return {"quantile": {"attribute": attribute, "level": level, "window": window}}
        case Variance(attribute):
            return {"variance": {"attribute": attribute}}
        case CountDistinct(attributes):
            return {"count_distinct": list(attributes)}
        case CappedSum(attribute, cap):
            return {"capped_sum": {"attribute": attribute, "cap": cap}}


def _read_statement(document: object, field: str) -> Statement:
    kind, content = (
        next(iter(document.items())) if isinstance(document, dict) and len(document) == 1 else ("", None)
    )
    path = f"{field}.{kind}"
    match kind:
        case "marginal":
            return Marginal(_texts(content, path))
        case "quantile":
            content = _check_keys(content, {"attribute", "level", "window"}, path)
            level, window = (_number(content[name], f"{path}.{name}") for name in ("level", "window"))
            return Quantile(_text(content["attribute"], f"{path}.attribute"), level, window)
        case "variance":
            return Variance(_text(_check_keys(content, {"attribute"}, path)["attribute"], f"{path}.attribute"))
        case "count_distinct":
            return CountDistinct(_texts(content, path))
        case "capped_sum":
            content = _check_keys(content, {"attribute", "cap"}, path)
            return CappedSum(
                _text(content["attribute"], f"{path}.attribute"), _number(content["cap"], f"{path}.cap")
            )
        case _:
            return _read_predicate(document, field, 1)


def _read_predicate(document: object, field: str, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise InvalidArgument(field, f"is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(document, dict) or len(document) != 1:
        raise InvalidArgument(field, "must be an object with one key: all, among, any, interval or not")
    ((kind, content),) = document.items()
    field = f"{field}.{kind}"
    match kind:
        case "among":
            content = _check_keys(content, {"attribute", "categories"}, field)
            attribute = _text(content["attribute"], f"{field}.attribute")
            return Among(attribute, _texts(content["categories"], f"{field}.categories"))
        case "interval":
            content = _check_keys(content, {"attribute", "low", "high"}, field)
            return Interval(
                _text(content["attribute"], f"{field}.attribute"),
                _edge(content["low"], -math.inf, f"{field}.low"),
                _edge(content["high"], math.inf, f"{field}.high"),
            )
        case "all":
            return AllOf(_read_conditions(content, field, depth))
        case "any":
            return AnyOf(_read_conditions(content, field, depth))
        case "not":
            return Not(_read_predicate(content, field, depth + 1))
        case "marginal" | "quantile" | "variance" | "count_distinct" | "capped_sum":
            raise InvalidArgument(field, "is a statement of its own, not a condition")
        case _:
            known = "conditions are all, among, any, interval and not; a statement may also be a marginal, and in"
            numbers = "quantile, variance, count_distinct or capped_sum"
            raise InvalidArgument(field, f"is not known; {known} low_sensitivity a {numbers}")


def _read_conditions(content: object, field: str, depth: int) -> tuple[Predicate, ...]:
    if not isinstance(content, list) or not content:
        raise InvalidArgument(field, "must be a list, and not empty")
    return tuple(_read_predicate(each, f"{field}[{i}]", depth + 1) for i, each in enumerate(content))


def _check_keys(document: object, keys: set[str], field: str) -> dict[str, object]:
    if not isinstance(document, dict) or document.keys() != keys:
        raise InvalidArgument(field, f"must be an object with the keys {', '.join(sorted(keys))}")
    return document


def _texts(content: object, field: str) -> tuple[str, ...]:
    if not isinstance(content, list) or not content:
        raise InvalidArgument(field, "must be a list, and not empty")
    return tuple(_text(each, f"{field}[{i}]") for i, each in enumerate(content))


def _text(content: object, field: str) -> str:
    if not isinstance(content, str):
        raise InvalidArgument(field, "must be a string")
    return content


def _edge(content: object, infinite: float, field: str) -> float:
    return infinite if content is None else _number(content, field, "must be a number, or null for infinite")


def _number(content: object, field: str, problem: str = "must be a number") -> float:
    # abs also refuses NaN, which json reads without complaint.
    if isinstance(content, bool) or not isinstance(content, int | float) or not abs(content) < 1e300:
        raise InvalidArgument(field, problem)
    return float(content)
