"""The statements file of a grant: each statement may say beside itself what it may cost.

    {"version": 1, "statements": [
      {"marginal": ["origin", "month"], "error": 200},
      {"marginal": ["month"], "where": {"among": {"attribute": "carrier", "categories": ["AA"]}}, "relative": 0.05},
      {"among": {"attribute": "carrier", "categories": ["AA", "UA"]}, "rho": 0.001}
    ]}

The names are those of `GrantPrice`. A statement that says nothing costs what all others are asked for. Where
statements have a `weight`, they share one rho by these, and one without has the weight 1. Everything else is as in
any statements file (`statements_file`), which has no prices.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

from equipoise.errors import InvalidArgument
from equipoise.queries.grant_price import GrantPrice
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statement_of, statements_of
from equipoise.queries.strict_json import parse_json

PRICES = tuple(each.name for each in fields(GrantPrice))
WEIGHT = "weight"


class PricedStatements(NamedTuple):
    """What a file asks of a grant.

    `prices`: one for each statement, None where it says none; empty where none does. `weights`: one for each
    statement; None where none says any.
    """

    statements: tuple[Statement, ...]
    prices: tuple[GrantPrice | None, ...]
    weights: list[float] | None


def priced_from_json(text: str) -> PricedStatements:
    """Reads a statements file whose statements may say what they may cost.

    Args:
        text: the file's.

    Raises:
        InvalidArgument: naming, for example, `statements[3].error`; also where there are weights and prices.
    """
    document = parse_json(text, "statements")
    listed = document.get("statements") if isinstance(document, dict) else None
    said = [
        _taken_out(each, f"statements[{place}]")
        for place, each in enumerate(listed if isinstance(listed, list) else [])
    ]
    statements = statements_of(document)
    priced = [place for place, own in enumerate(said) if own.keys() - {WEIGHT}]
    weighted = any(WEIGHT in own for own in said)
    if priced and weighted:
        raise InvalidArgument(f"statements[{priced[0]}]", "has a price, where statements share one by weights")
    if weighted:
        return PricedStatements(statements, (), [own.get(WEIGHT, 1.0) for own in said])
    prices = tuple(_price(own, f"statements[{place}]") for place, own in enumerate(said)) if priced else ()
    return PricedStatements(statements, prices, None)


def priced_statement_from_json(text: str) -> tuple[Statement, GrantPrice | None]:
    """Reads one statement, as a file lists them, and its price; None where it says none.

    Args:
        text: an object.

    Raises:
        InvalidArgument: naming, for example, `statement.error`; also where it has a weight, as there are no others.
    """
    document = parse_json(text, "statement")
    own = _taken_out(document, "statement")
    if WEIGHT in own:
        raise InvalidArgument("statement.weight", "shares a price with others, and this is one statement: say rho")
    return statement_of(document), _price(own, "statement")


def _taken_out(document: object, field: str) -> dict[str, float]:
    """Removes what a statement says of its price, and returns it by its names."""
    if not isinstance(document, dict):
        return {}
    own = {name: document.pop(name) for name in (*PRICES, WEIGHT) if name in document}
    return {name: _number(value, f"{field}.{name}") for name, value in own.items()}


def _price(own: dict[str, float], field: str) -> GrantPrice | None:
    if len(own) > 1:
        raise InvalidArgument(field, f"must have one price, not {' and '.join(own)}")
    try:
        return GrantPrice(**own) if own else None
    except InvalidArgument as error:
        raise InvalidArgument(f"{field}.{error.field}", error.problem) from None


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidArgument(field, "must be a number")
    return float(value)
