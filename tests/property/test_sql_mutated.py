"""SQL that was changed by chance, and SQL beyond the subset: a clear refusal, or what DuckDB counts."""

from __future__ import annotations

import random

import duckdb
import pytest
from harness.sql_answers import compare
from harness.sql_outside import outside
from harness.sql_queries import query
from harness.sql_tables import connect, random_rows, random_schema, shown_rows

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.statements import Sum
from equipoise.questions.question import Question
from equipoise.questions.sql import questions_from_sql
from equipoise.questions.sql_codes import TOKEN

SIGNS = "'\"();,.*=<>%-/\0    1aé\\$"


def refusal_of(text: str, schema: Schema) -> InvalidArgument | None:
    """What is said of a text that is refused; None of one that is translated."""
    try:
        questions_from_sql(text, schema, "flights")
    except InvalidArgument as refusal:
        return refusal
    return None


def accepted(draw: random.Random, schema: Schema) -> str:
    """A query that is translated."""
    while refusal_of(text := query(draw, schema), schema) is not None:
        pass
    return text


def comparable(question: Question) -> bool:
    """Whether groups are what DuckDB calls alike, and no values are added up, which have an error of their own."""
    grouped = [question.schema.attribute(key.attribute) for key in question.keys if key.attribute]
    return not any(each.edges or each.unknown for each in grouped) and not any(
        isinstance(each, Sum) for each in question.statements
    )


class Table:
    """A random table, which questions are asked of here and in DuckDB."""

    def __init__(self, draw: random.Random) -> None:
        self.schema = random_schema(draw)
        self.rows = random_rows(draw, self.schema)
        self.connection = connect(self.rows)

    def check_refused_or_right(self, text: str) -> bool:
        """Whether the text was translated, and then also by DuckDB, with the same answers."""
        refusal = refusal_of(text, self.schema)
        if refusal is not None:
            assert refusal.field.startswith("sql")
            assert 5 < len(refusal.problem) < 400
            assert "9000000" not in refusal.problem
            assert "'@" not in refusal.problem
            return False
        questions = questions_from_sql(text, self.schema, "flights")
        for question, each in zip(questions, duckdb.extract_statements(text), strict=True):
            theirs = self.connection.execute(each).fetchall()
            if not comparable(question):
                continue
            ours = shown_rows(question, self.schema, self.rows)
            compare(ours, theirs, len(question.keys), "ORDER BY" in text, text)
        return True


@pytest.mark.parametrize(
    ("seed", "queries"),
    [(1, 60), (2, 60), *(pytest.param(seed, 250, marks=pytest.mark.nightly) for seed in range(100, 104))],
)
def test_mutated_queries_are_refused_or_right(seed: int, queries: int) -> None:
    draw = random.Random(seed)
    table = Table(draw)
    answered = 0
    for _ in range(queries):
        text = list(accepted(draw, table.schema))
        for _ in range(draw.randint(1, 2)):
            place = draw.randrange(len(text))
            text[place : place + draw.randint(0, 2)] = draw.choice(SIGNS)
        answered += table.check_refused_or_right("".join(text))
    assert answered > 0


def mutated(draw: random.Random, text: str) -> str:
    """A query with a word or sign less, twice, in another's place, or between two others."""
    tokens = [token for token in TOKEN.findall(text) if token != " "]
    for _ in range(draw.choice((1, 1, 2))):
        one, other = draw.randrange(len(tokens)), draw.randrange(len(tokens))
        match draw.randrange(4):
            case 0:
                del tokens[one]
            case 1:
                tokens.insert(one, tokens[one])
            case 2:
                tokens[one], tokens[other] = tokens[other], tokens[one]
            case _:
                tokens.insert(one, tokens[other])
    return " ".join(tokens)


@pytest.mark.parametrize(
    ("seed", "queries"),
    [(1, 5), *(pytest.param(seed, 100, marks=pytest.mark.nightly) for seed in range(300, 310))],
)
def test_a_word_less_or_too_many_is_refused_or_right(seed: int, queries: int) -> None:
    draw = random.Random(seed)
    table = Table(draw)
    answered = 0
    for _ in range(queries):
        text = accepted(draw, table.schema)
        answered += sum(table.check_refused_or_right(mutated(draw, text)) for _ in range(10))
    assert answered > 0


@pytest.mark.thin(2)
@pytest.mark.parametrize("seed", range(4))
def test_queries_beyond_the_subset_are_refused_or_right(seed: int) -> None:
    draw = random.Random(1_000 + seed)
    table = Table(draw)
    answered = sum(table.check_refused_or_right(outside(draw, table.schema)) for _ in range(250))
    assert answered < 5  # such as a condition beyond it that the others around it make right
