"""The statements file: what an analyst asks, as JSON.

    {"version": 1, "statements": [
      {"marginal": ["origin", "month"]},
      {"marginal": ["month"], "where": {"among": {"attribute": "carrier", "categories": ["AA"]}}},
      {"sum": "dep_delay", "by": ["carrier", "month"], "low": -15, "high": 180},
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

A statement is a marginal, a sum, a condition or, in sessions of `low_sensitivity`, one of the last four. Intervals
are half-open, [low, high); null is infinite on that side, and dates are written in ISO 8601. Whether attributes and
categories exist is not looked at here: that needs a schema, and the server says it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, cast

from equipoise.errors import InvalidArgument
from equipoise.queries.dates import seconds_of
from equipoise.queries.predicate_compiler import MAX_DEPTH
from equipoise.queries.statements import KINDS, Statement
from equipoise.queries.statements.condition import CONDITION
from equipoise.queries.strict_json import parse_json

VERSION = 1
_FORMS = {each: form for kind in KINDS for each, form in kind.forms.items()}
_CLASSES = {form.key: each for each, form in _FORMS.items()}
_CONDITIONS = ", ".join(sorted(form.key for form in CONDITION.forms.values()))
_OTHERS = ", ".join(key for key, each in _CLASSES.items() if each not in CONDITION.forms)
_OPTIONAL = ("Predicate | None", "float | None", "Names")  # types of fields that may be left out
_INFINITE = {"low": -math.inf, "high": math.inf}


def statements_from_json(text: str) -> tuple[Statement, ...]:
    """Reads a statements file. Raises `InvalidArgument` naming, for example, `statements[3].all[1].among`."""
    return statements_of(parse_json(text, "statements"))


def statements_of(document: object) -> tuple[Statement, ...]:
    """Returns the statements of a file that was parsed.

    Args:
        document: what its JSON stands for.

    Raises:
        InvalidArgument: as `statements_from_json` does.
    """
    document = _check_keys(document, {"version", "statements"}, "statements file")
    version = document["version"]
    if isinstance(version, bool) or version != VERSION:
        raise InvalidArgument("version", f"must be {VERSION}")
    statements = document["statements"]
    if not isinstance(statements, list) or not statements:
        raise InvalidArgument("statements", "must be a list, and not empty")
    return tuple(_read_statement(each, f"statements[{i}]") for i, each in enumerate(statements))


def statement_from_json(text: str) -> Statement:
    """Reads one statement, as a file lists them. Raises `InvalidArgument` naming, say, `statement.among`."""
    return statement_of(parse_json(text, "statement"))


def statement_of(document: object) -> Statement:
    """Returns one statement that was parsed. Raises `InvalidArgument` as `statement_from_json` does."""
    return _read_statement(document, "statement")


def statements_to_json(statements: Sequence[Statement]) -> str:
    """Returns the file of some statements, one a line; `statements_from_json` reads it back to equal ones."""
    lines = ",\n".join("  " + statement_to_json(each) for each in statements)
    return f'{{"version": {VERSION}, "statements": [\n{lines}\n]}}\n'


def statement_to_json(statement: Statement) -> str:
    """Returns one statement on one line; `statement_from_json` reads it back to an equal one."""
    return json.dumps(_write(statement), ensure_ascii=False, allow_nan=False)


def _write(statement: Any) -> dict[str, object]:
    """Returns a statement, or a condition within one, by its fields: what they hold is written by their types."""
    form = _FORMS[type(statement)]
    content: dict[str, object] = {}
    for each in fields(statement):
        value = getattr(statement, each.name)
        match each.type:
            case "Predicate":
                content[each.name] = _write(value)
            case "tuple[Predicate, ...]":
                content[each.name] = [_write(condition) for condition in value]
            case "tuple[str, ...]":
                content[each.name] = list(value)
            case "Predicate | None":
                content |= {} if value is None else {each.name: _write(value)}
            case "Names":
                content |= {each.name: list(value)} if value else {}
            case "float | None":
                content |= {} if value is None else {each.name: value}
            case "Edge":
                content[each.name] = None if math.isinf(value) else value
            case _:
                content[each.name] = value
    if not form.flat:
        return {form.key: content}
    first, *others = content
    return {form.key: content[first]} | {name: content[name] for name in others}


def _read_statement(document: object, field: str) -> Statement:
    return cast(Statement, _read(document, field, 1, conditions_only=False))


def _read(document: object, field: str, depth: int, *, conditions_only: bool) -> object:
    """Returns a statement, or a condition within one, `depth` levels deep."""
    if depth > MAX_DEPTH:
        raise InvalidArgument(field, f"is nested deeper than {MAX_DEPTH} levels")
    keys = list(document) if isinstance(document, dict) else []
    known = [key for key in keys if key in _CLASSES]
    if not isinstance(document, dict) or len(known or keys) != 1:
        raise InvalidArgument(field, f"must be an object with one of the keys {_CONDITIONS}, {_OTHERS}")
    if not known:
        problem = f"is not known; conditions are {_CONDITIONS}; other statements are {_OTHERS}"
        raise InvalidArgument(f"{field}.{keys[0]}", problem)
    (key,) = known
    each = _CLASSES[key]
    if conditions_only and each not in CONDITION.forms:
        raise InvalidArgument(f"{field}.{key}", "is a statement of its own, not a condition")
    types = {part.name: str(part.type) for part in fields(each)}
    first, *others = types
    if _FORMS[each].flat:
        others = [name for name in others if name in document or types[name] not in _OPTIONAL]
        _check_keys(document, {key, *others}, field)
        content = {first: document[key]} | {name: document[name] for name in others}
        paths = {first: f"{field}.{key}"} | {name: f"{field}.{name}" for name in others}
    else:
        _check_keys(document, {key}, field)
        content = _check_keys(document[key], {first, *others}, f"{field}.{key}")
        paths = {name: f"{field}.{key}.{name}" for name in content}
    parts = {name: _read_part(content[name], types[name], paths[name], depth) for name in content}
    try:
        return each(**parts)
    except InvalidArgument as error:
        name, bracket, place = error.field.removeprefix(f"{key}.").partition("[")
        raise InvalidArgument(f"{paths[name]}{bracket}{place}", error.problem) from None


def _read_part(content: object, kind: str, field: str, depth: int) -> object:
    match kind:
        case "str":
            return _text(content, field)
        case "tuple[str, ...]" | "Names":
            return tuple(_text(each, f"{field}[{i}]") for i, each in enumerate(_list(content, field)))
        case "Predicate":
            return _read(content, field, depth + 1, conditions_only=True)
        case "Predicate | None":
            return _read(content, field, depth, conditions_only=True)
        case "tuple[Predicate, ...]":
            return tuple(
                _read(each, f"{field}[{i}]", depth + 1, conditions_only=True)
                for i, each in enumerate(_list(content, field))
            )
        case "Edge" if content is None:
            return _INFINITE[field.rpartition(".")[2]]
        case "Edge" if isinstance(content, str):
            return seconds_of(field, content)
        case _:
            return _number(content, field, "must be a number" + ", a date, or null for infinite" * (kind == "Edge"))


def _check_keys(document: object, keys: set[str], field: str) -> dict[str, object]:
    if not isinstance(document, dict) or document.keys() != keys:
        raise InvalidArgument(field, f"must be an object with the keys {', '.join(sorted(keys))}")
    return document


def _list(content: object, field: str) -> list[object]:
    if not isinstance(content, list) or not content:
        raise InvalidArgument(field, "must be a list, and not empty")
    return content


def _text(content: object, field: str) -> str:
    if not isinstance(content, str):
        raise InvalidArgument(field, "must be a string")
    return content


def _number(content: object, field: str, problem: str) -> float:
    # abs also refuses NaN, which json reads without complaint.
    if isinstance(content, bool) or not isinstance(content, int | float) or not abs(content) < 1e300:
        raise InvalidArgument(field, problem)
    return float(content)
