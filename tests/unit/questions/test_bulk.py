"""The search for cycles goes on after much was made."""

from __future__ import annotations

import gc

import pytest

from equipoise.questions.bulk import MANY, all_of_which_stays


def test_the_search_for_cycles_goes_on_as_before_whatever_happened() -> None:
    assert gc.isenabled()
    with all_of_which_stays():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ValueError, match="'x'"), all_of_which_stays():
        int("x")
    assert gc.isenabled()
    gc.disable()
    try:
        with all_of_which_stays():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize(("made", "looked_at"), [(1_000, True), (MANY + 1_000, False)])
def test_the_next_search_begins_with_what_was_made_unless_that_was_much(made: int, looked_at: bool) -> None:
    frozen = gc.get_freeze_count()
    gc.collect()
    gc.unfreeze()
    with all_of_which_stays():
        kept: list[list[int]] = [[] for _ in range(made)]
    young = {id(each) for generation in (0, 1) for each in gc.get_objects(generation)}
    assert (id(kept[-1]) in young) == looked_at
    if frozen:
        gc.freeze()
