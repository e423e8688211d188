"""How far requests have come is told to their own caller, while they run and no longer."""

from __future__ import annotations

import pytest

from equipoise_server.rounds.underway import READING, Underway, of_reading


def test_a_caller_sees_its_own_request_while_it_runs() -> None:
    underway = Underway()
    with underway.followed("olga", "r1", READING) as step:
        begun = underway.look("olga", "r1")
        assert begun is not None
        assert (begun.phase, begun.done, begun.total, begun.complete) == (READING, 0, 0, False)
        of_reading(step)(30, 100)
        seen = underway.look("olga", "r1")
        assert seen is not None
        assert (seen.phase, seen.done, seen.total) == (READING, 30, 100)
        assert underway.look("otto", "r1") is None
        assert underway.look("olga", "r2") is None
    assert underway.look("olga", "r1") is None


def test_a_request_that_fails_or_has_no_id_leaves_nothing() -> None:
    underway = Underway()
    with pytest.raises(ValueError, match="no"), underway.followed("olga", "r1", READING):
        raise ValueError("no")
    assert underway.look("olga", "r1") is None
    with underway.followed("olga", "", READING) as step:
        step(READING, 1, 2)
        assert underway.look("olga", "") is None
