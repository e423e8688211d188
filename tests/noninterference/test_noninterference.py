"""What all other analysts can see of a server, jointly, does not depend on what one analyst does.

Neighbouring worlds differ in ann's conduct alone. Everything that anybody else can see, on the wire and byte for
byte, is the same in both, but for values, ways of answering, intervals and the synopsis, which the mechanisms
account for; where a mechanism is perfectly private, these are the same, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from harness.answers import some_answers
from harness.audit_size import AuditSize
from harness.noninterference.conducts import CONDUCTS, Conduct, asks_all_that_is_allowed, asks_as_usual, stays_away
from harness.noninterference.wire_view import View, difference
from harness.noninterference.worlds import DAY, RoundOf, nothing_of_analysts_is_logged, world

from equipoise.model.results import AnswerMethod
from equipoise.v1 import analyst_pb2
from equipoise.wire.results import results_to_chunks
from equipoise_server.mechanisms.registry import MECHANISMS

SMALL = '{"batch":8,"density":1.5,"play":"%s","rounds":4}'
ROUNDS = (
    RoundOf("equilibrium", "query", perfect=False, options=SMALL % "mixed"),
    RoundOf("equilibrium", "analyst", perfect=False, options=SMALL % "sampled"),
    RoundOf("pooled", "analyst", perfect=False, options='{"least":0,"synopsis":5000}', closes=True),
    RoundOf("gaussian", "query", perfect=True),
    RoundOf("histogram", "analyst", perfect=True, closes=True),
)
OPTIONS = {"small_db": '{"database_size":3}'}
MORE_ROUNDS = (
    RoundOf("equilibrium", "query", perfect=False, options=SMALL % "sampled"),
    RoundOf("equilibrium", "analyst", perfect=False, options=SMALL % "mixed"),
    RoundOf("pooled", "query", perfect=False, options='{"least":0,"synopsis":5000}'),
    RoundOf("gaussian", "analyst", perfect=True),
    RoundOf("histogram", "query", perfect=True),
    *(
        RoundOf(name, unit, perfect=True, options=OPTIONS.get(name, ""), closes=closes)
        for name in ("laplace", "projection", "multiplicative_weights", "small_db")
        for unit, closes in (("query", True), ("analyst", False))
    ),
)
SERVICE = analyst_pb2.DESCRIPTOR.services_by_name["AnalystService"]
STATUSES = {
    "OK", "ALREADY_EXISTS", "FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND", "OUT_OF_RANGE",
    "RESOURCE_EXHAUSTED",
}  # fmt: skip
FAULTY = "import sys; sys.path.insert(0, {tests!r}); from harness.noninterference import faults; faults.{fault}()"


def test_every_mechanism_is_in_some_round() -> None:
    assert {each.mechanism for each in (*ROUNDS, *MORE_ROUNDS)} == set(MECHANISMS)


def test_what_one_analyst_does_is_seen_by_nobody_else(tmp_path: Path, audit_size: AuditSize) -> None:
    """At the fast size every conduct in one of the rounds; at the nightly one every conduct in every round."""
    nightly = audit_size.worlds > 1
    rounds = ROUNDS + MORE_ROUNDS if nightly else ROUNDS
    neighbours = [[each] * len(rounds) for each in CONDUCTS] if nightly else [list(CONDUCTS)]
    first = lived(tmp_path / "first", rounds, [asks_as_usual] * len(rounds))
    assert {seen.method for seen in first[0]} == {each.name for each in SERVICE.methods}
    assert {seen.status for seen in first[0]} >= STATUSES
    for number, conducts in enumerate(neighbours):
        other = lived(tmp_path / f"world {number}", rounds, conducts)
        assert difference(first[0], other[0]) is None
        assert first[1] == other[1]


@pytest.mark.sparse(2)
@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "shows"), [("shared_balance", "open, large"), ("query_count_in_an_error", "sealed, large")]
)
def test_a_server_that_tells_is_caught(tmp_path: Path, fault: str, shows: str) -> None:
    statement = FAULTY.format(tests=str(Path(__file__).parents[1]), fault=fault)
    views = []
    for number, conduct in enumerate((asks_all_that_is_allowed, stays_away)):
        place = tmp_path / f"world {number}"
        with world(place, DAY, [RoundOf("gaussian", "query", perfect=True)], statement) as made:
            made.open()
            made.ask([conduct])
            made.seal()
            views.append(made.viewers.view)
    found = difference(*views)
    assert found is not None
    assert found[0].method == "SubmitWorkload"
    assert shows in found[0].about


def test_lengths_tell_nothing_of_contents() -> None:
    """Of the two messages whose contents may differ."""
    small = np.zeros(1024, dtype=np.int64)
    columns = (
        some_answers(small, AnswerMethod.GAUSSIAN, 1 << 39),
        some_answers(small - 1, AnswerMethod.UNCERTIFIED),
    )
    low, high = (next(results_to_chunks("round", each)) for each in columns)
    assert len(low) == len(high)
    cells = ([0] * 4096, [2**32 - 1] * 4096)
    low, high = (analyst_pb2.DownloadSynopsisResponse(cells=each).SerializeToString() for each in cells)
    assert len(low) == len(high)


def lived(place: Path, rounds: Sequence[RoundOf], conducts: Sequence[Conduct]) -> tuple[View, list[bytes]]:
    """What the viewers see of one world, and what the accounts and the log hold in the end."""
    with world(place, DAY, rounds) as made:
        made.open()
        made.ask(conducts)
        made.seal()
        made.release()
        nothing_of_analysts_is_logged(made)
        return made.viewers.view, made.accounts() + made.log()
