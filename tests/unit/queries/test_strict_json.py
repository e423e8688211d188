"""JSON that people write: every key once, and only numbers that JSON has."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.schema import Schema
from equipoise.queries.statements_file import statement_from_json
from equipoise.queries.strict_json import parse_json


def test_what_json_says_is_read() -> None:
    assert parse_json('{"a": [1, 2.5, "x", null, {"a": 1}]}', "file") == {"a": [1, 2.5, "x", None, {"a": 1}]}


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": {"a": 1, "c": 2, "a": 1}}'])
def test_a_key_that_stands_twice_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^file: has the key 'a' twice in one object"):
        parse_json(text, "file")


@pytest.mark.parametrize("text", ["", "{", "nul", "[" * 100_000, "1" * 5_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^file: is not JSON"):
        parse_json(text, "file")


def test_questions_and_schemas_are_read_so() -> None:
    twice = '{"among": {"attribute": "a", "categories": ["x"], "attribute": "b"}}'
    with pytest.raises(InvalidArgument, match="statement: has the key 'attribute' twice"):
        statement_from_json(twice)
    with pytest.raises(InvalidArgument, match="schema: has the key 'a' twice"):
        Schema.from_json('{"a": 2, "a": 3}')
