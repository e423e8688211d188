"""Files whose statements say what each may cost of a grant."""

from __future__ import annotations

import json

import pytest

from equipoise.errors import InvalidArgument
from equipoise.queries.grant_price import GrantPrice
from equipoise.queries.predicates import attribute
from equipoise.queries.priced_file import priced_from_json, priced_statement_from_json
from equipoise.queries.statements import Marginal
from equipoise.queries.statements_file import statements_from_json, statements_to_json

TABLE, RED = Marginal(("size",), where=attribute("colour") == "red"), attribute("colour") == "red"


def file_of(*said: dict[str, object]) -> str:
    document = json.loads(statements_to_json([TABLE, RED, Marginal(("colour",))]))
    for each, own in zip(document["statements"], said, strict=False):
        each.update(own)
    return json.dumps(document)


def test_each_statement_says_its_price_or_leaves_it_to_the_call() -> None:
    found = priced_from_json(file_of({"error": 200}, {}, {"relative": 0.05}))
    assert found.statements == (TABLE, RED, Marginal(("colour",)))
    assert (found.prices, found.weights) == ((GrantPrice(error=200), None, GrantPrice(relative=0.05)), None)
    for name in ("rho", "epsilon"):
        assert priced_from_json(file_of({name: 1})).prices[0] == GrantPrice(**{name: 1.0})


def test_a_file_without_prices_is_any_statements_file() -> None:
    assert priced_from_json(file_of()) == (statements_from_json(file_of()), (), None)


def test_weights_are_one_where_none_is_said() -> None:
    assert priced_from_json(file_of({}, {"weight": 2.5})).weights == [1.0, 2.5, 1.0]


@pytest.mark.parametrize(
    ("said", "field", "problem"),
    [
        ([{"error": 200, "rho": 1}], "statements[0]", "must have one price, not rho and error"),
        ([{}, {"error": "200"}], "statements[1].error", "must be a number"),
        ([{}, {"error": True}], "statements[1].error", "must be a number"),
        ([{}, {}, {"rho": 0}], "statements[2].rho", "above 0 and finite"),
        ([{"weight": 1}, {"rho": 1}], "statements[1]", "has a price, where statements share one by weights"),
        ([{"eror": 200}], "statements[0]", "must be an object with the keys"),
    ],
)
def test_what_is_wrong_is_named(said: list[dict[str, object]], field: str, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=problem) as refused:
        priced_from_json(file_of(*said))
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["[]", "3", '{"version": 1}', '{"version": 1, "statements": 3}'])
def test_what_is_no_statements_file_is_refused_as_one(text: str) -> None:
    with pytest.raises(InvalidArgument, match="must be"):
        priced_from_json(text)


def test_a_single_statement_says_its_price_but_no_weight() -> None:
    typed = json.loads(statements_to_json([RED]))["statements"][0]
    assert priced_statement_from_json(json.dumps(typed)) == (RED, None)
    assert priced_statement_from_json(json.dumps({**typed, "error": 3})) == (RED, GrantPrice(error=3.0))
    for own, field in (
        ({"weight": 1}, "statement.weight"),
        ({"error": "3"}, "statement.error"),
        ({"error": 0}, "statement.error"),
        ({"error": 3, "rho": 1}, "statement"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            priced_statement_from_json(json.dumps({**typed, **own}))
        assert refused.value.field == field
    with pytest.raises(InvalidArgument, match="must be an object"):
        priced_statement_from_json("[]")
