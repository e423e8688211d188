"""Random SQL of the subset, and of what is beside it."""

from __future__ import annotations

import random

from equipoise.queries.schema import Schema
from harness.sql_tables import DAYS, EDGES, LABELS, NUMBERS

_OPERATORS = ("=", "<>", "!=", "<", "<=", ">", ">=")


def literal(draw: random.Random, name: str) -> str:
    """A literal for an attribute: mostly one on an edge, or one that is listed."""
    match name:
        case "carrier" | "kind":
            label = draw.choice(LABELS if name == "carrier" else ("p", "q"))
            return "'" + label.replace("'", "''") + "'"
        case "month":
            return draw.choice((*NUMBERS, "5")) if draw.random() < 0.9 else f"'{draw.choice(NUMBERS)}'"
        case "delay":
            return f"{draw.choice((*EDGES, *EDGES, 3.0, 1e3, -1e3)):g}"
        case _:
            kind = draw.choice(("", "DATE ", "TIMESTAMP "))
            return f"{kind}'{draw.choice((*DAYS, '2013-01-15'))}'"


def comparison(draw: random.Random) -> str:
    """A condition on one attribute."""
    name = draw.choice(("carrier", "month", "delay", "delay", "day", "kind"))
    label = name in ("carrier", "kind")
    match draw.randrange(6):
        case 0:
            return f"{name} IS {draw.choice(('', 'NOT '))}NULL"
        case 1:
            values = ", ".join(literal(draw, name) for _ in range(draw.randint(1, 3)))
            return f"{name} {draw.choice(('', 'NOT '))}IN ({values})"
        case 2 if label:
            pattern = draw.choice(("A%", "%_", "_b", "AA", "it''s"))
            return f"{name} {draw.choice(('', 'NOT '))}LIKE '{pattern}'"
        case 2:
            one, other = literal(draw, name), literal(draw, name)
            return f"{name} {draw.choice(('', 'NOT '))}BETWEEN {one} AND {other}"
        case 3 if name in ("delay", "day"):
            return f"({name} >= {literal(draw, name)} AND {name} < {literal(draw, name)})"
        case 4:
            return f"{literal(draw, name)} {draw.choice(_OPERATORS)} {name}"
        case _:
            return f"{name} {draw.choice(_OPERATORS)} {literal(draw, name)}"


def condition(draw: random.Random, depth: int = 0) -> str:
    """A condition of some comparisons."""
    if depth > 2 or draw.random() < 0.45:
        return comparison(draw)
    match draw.randrange(5):
        case 0:
            return f"NOT {parenthesised(draw, condition(draw, depth + 1))}"
        case 1:
            return f"({condition(draw, depth + 1)}) IS {draw.choice(('', 'NOT '))}{draw.choice(('TRUE', 'FALSE'))}"
        case 2:
            return parenthesised(draw, f"{condition(draw, depth + 1)} OR {condition(draw, depth + 1)}")
        case _:
            return parenthesised(draw, f"{condition(draw, depth + 1)} AND {condition(draw, depth + 1)}")


def parenthesised(draw: random.Random, text: str) -> str:
    """In parentheses or not: either is a condition, of which AND, OR and NOT take what they bind."""
    return draw.choice((f"({text})", text))


def aggregate(draw: random.Random) -> str:
    """Something that is counted."""
    match draw.randrange(8):
        case 0:
            return f"COUNT({draw.choice(('carrier', 'month', 'delay', 'day', 'kind', '1'))})"
        case 1:
            return f"COUNT(*) FILTER (WHERE {condition(draw)})"
        case 2:
            return f"SUM(CASE WHEN {condition(draw)} THEN 1 ELSE 0 END)"
        case 3:
            return f"COUNT(CASE WHEN {condition(draw)} THEN 1 WHEN {condition(draw)} THEN NULL ELSE 0 END)"
        case 4:
            return f"AVG(CASE WHEN {condition(draw)} THEN 1 WHEN {condition(draw)} THEN 0 END)"
        case 5:
            return f"COUNT_IF({condition(draw)})"
        case 6:
            return f"ROUND(100.0 * COUNT(*) FILTER (WHERE {condition(draw)}) / COUNT(*) - 3, {draw.randint(0, 2)})"
        case _:
            return "COUNT(*)"


def bucket(draw: random.Random) -> str:
    """A CASE to group by."""
    whens = " ".join(f"WHEN {condition(draw, 1)} THEN '{each}'" for each in "abc"[: draw.randint(1, 3)])
    otherwise = draw.choice(("", "ELSE 'rest' "))
    return f"CASE {whens} {otherwise}END"


def query(draw: random.Random, schema: Schema) -> str:
    """A question that is mostly one of the subset. Groups are by what DuckDB calls alike: by listed labels."""
    able = [each.name for each in schema.attributes if not each.edges and not each.unknown]
    keys = draw.sample(able, draw.randint(0, min(2, len(able))))
    cases = [bucket(draw) for _ in range(draw.random() < 0.3)]
    numbers = [aggregate(draw) for _ in range(draw.randint(1, 3))]
    shown = [*keys, *(f"{each} AS b{place}" for place, each in enumerate(cases))]
    shown += [f"{each} AS n{place}" for place, each in enumerate(numbers)]
    text = f"SELECT {', '.join(shown)} FROM flights"
    if draw.random() < 0.7:
        text += f" WHERE {condition(draw)}"
    if keys or cases:
        text += " GROUP BY " + ", ".join(map(str, range(1, 1 + len(keys) + len(cases))))
        text += " HAVING COUNT(*) > 0"
        if draw.random() < 0.4:
            few = (
                f"COUNT(*) FILTER (WHERE {condition(draw)}) {draw.choice(('>', '<=', '<>'))} {draw.randint(0, 20)}"
            )
            text += f" AND ({few} OR COUNT(*) > 9)"
        if draw.random() < 0.5:
            places = range(1, 1 + len(keys) + len(cases))
            turned = draw.choice(("", " DESC", " ASC NULLS FIRST", " DESC NULLS FIRST"))
            text += f" ORDER BY COUNT(*){turned}, " + ", ".join(f"{place}{turned}" for place in places)
            text += draw.choice(("", f" LIMIT {draw.randint(0, 5)}"))
    return text
