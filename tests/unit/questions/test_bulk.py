"""The search for cycles goes on after much was made."""

from __future__ import annotations

import gc

import pytest

from equipoise.questions.bulk import all_of_which_stays


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
