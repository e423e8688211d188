"""The work of a statement is a public rule: it depends on the shape alone, and grows with what must be computed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from equipoise.commands.columns import print_round
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Round, RoundState, SessionTerms, Share, Terms
from equipoise.queries.predicates import Predicate, attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statement_work import most_work
from equipoise.queries.statements import CountDistinct, Marginal, Statement
from equipoise.wire.session_workload import compile_statement, compile_with_work
from equipoise.wire.statements import statement_to_bytes

BITS = tuple(f"bit{number:02}" for number in range(16))
SCHEMA = Schema(tuple(Attribute(name, ("no", "yes")) for name in BITS))


def parts(count: int) -> Predicate:
    """A condition of so many parts, none of which can be joined with another."""
    one: Predicate
    one, *others = [(attribute(BITS[i]) == "yes") & (attribute(BITS[i + 1]) == "no") for i in range(count)]
    for other in others:
        one = one | other
    return one


def work(statement: Statement) -> int:
    encoded = statement_to_bytes(statement)
    compiled, units = compile_with_work(encoded, SCHEMA)
    assert type(compiled) is type(compile_statement(encoded, SCHEMA))
    assert units == compile_with_work(encoded, SCHEMA)[1]
    return units


def test_what_takes_longer_is_more_work() -> None:
    usual = work(attribute(BITS[0]) == "yes")
    assert usual < 5_000
    cells = [work(Marginal(BITS[:axes])) for axes in (1, 8, 12, 16)]
    assert cells == sorted(cells)
    boxes = [work(parts(count)) for count in (1, 2, 4, 8)]
    assert boxes == sorted(boxes)
    restricted = [work(Marginal(BITS, parts(count))) for count in (1, 2, 4, 8)]
    assert restricted == sorted(restricted)
    # A usual statement took 1.8 ms where the largest table with a condition of eight parts took 600.
    assert restricted[-1] > 100 * usual
    assert restricted[-1] > 600_000


def test_a_statement_on_a_table_that_cannot_be_listed_is_the_work_of_its_support_and_records() -> None:
    """Not of all possible records: 2^26 of these take longer than the support of any wider table."""

    def of_width(bits: int) -> int:
        schema = Schema(tuple(Attribute(f"bit{number:02}", ("no", "yes")) for number in range(bits)))
        return compile_with_work(statement_to_bytes(attribute(BITS[0]) == "yes"), schema)[1]

    assert of_width(26) > 10 * of_width(27)
    assert of_width(27) == of_width(40) == of_width(200) > of_width(20)


def test_neither_which_categories_nor_which_attributes_of_one_size_make_a_difference() -> None:
    assert work(attribute(BITS[0]) == "yes") == work(attribute(BITS[9]) == "no")
    assert work(Marginal(BITS[:3])) == work(Marginal(BITS[5:8]))


def test_a_statistic_is_as_much_work_as_any_other() -> None:
    assert work(CountDistinct(BITS[:1])) < work(attribute(BITS[0]) == "yes")


def test_what_cannot_be_compiled_is_named() -> None:
    with pytest.raises(InvalidArgument, match=r"^statement\.attribute: the schema has no"):
        compile_with_work(statement_to_bytes(attribute("other") == "yes"), SCHEMA)


def test_a_share_s_part_of_a_turn_is_the_limit() -> None:
    assert most_work(1, 1) == 250_000
    assert most_work(60, 10) == 1_500_000
    assert most_work(1, 3) == 83_333


def test_operators_are_told_how_much_a_statement_of_a_session_may_be(capsys: pytest.CaptureFixture[str]) -> None:
    shares = (Share("ann", 5, 20), Share("bob", 3, 12))
    terms = Terms("shop", shares, Budget(1.0, 1e-6), Budget(1.0, 1e-6), session=SessionTerms(6, turn_seconds=10))
    shown = Round(
        id="ab",
        terms=terms,
        dataset_version=1,
        records=1000,
        state=RoundState.OPEN,
        mechanism="online_private",
        open_time=datetime(2024, 1, 1, tzinfo=UTC),
        release_time=None,
        abort_reason="",
        seed_commitment=bytes(32),
    )
    print_round(shown)
    assert "at most 1,250,000 units of work" in capsys.readouterr().out
    for silent, share in (
        (shown, shares[0]),
        (replace(shown, terms=replace(terms, session=SessionTerms(6))), None),
    ):
        print_round(silent, share)
        assert "units of work" not in capsys.readouterr().out
