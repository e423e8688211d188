"""Every fault that section 10 of the mechanisms' specification names, switched on and seen to be caught.

Each entry names the fault, the check that must hold for what is shipped, and how the fault is switched on. Nothing
that is shipped has a switch: faults are put in from here. Other tests catch most of them in more ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from statistical.mutants_game import (
    a_cap_of_two_over_s,
    dead,
    deduplicated,
    drawn_once_too_often,
    equal_questions_stay_apart,
    flipped_sign,
    no_unit_holds_more_than_its_cap,
    private_weights_keep_to_their_charge,
    the_records_drawn_are_charged,
    the_synopsis_learns,
    uncharged_selections,
)
from statistical.mutants_noise import (
    float_noise,
    noise_hides_one,
    noise_is_counted_from_words,
    scaled_noise,
    without_a_coin,
)
from statistical.mutants_repair import (
    a_table_s_answers_hide_a_record,
    analyst_test_hides_a_record,
    answers_are_free_of_test_noise,
    answers_from_test_noise,
    column_norm,
    detection_couples_nobody,
    detection_hides_a_record,
    halved_sensitivity_of_analysts,
    halved_sensitivity_of_statements,
    places_hide_an_analyst,
    realised_charge,
    shared_thresholds,
    stop_only_at_positives,
    the_plan_covers_what_everybody_sees,
)
from statistical.mutants_rounds import (
    charged_after_the_answer,
    charges_come_before_data,
    every_stream_is_derived_once,
    reused_stream,
)

Switch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A fault by the specification's name, a check that it must break, and its switch."""

    name: str
    check: Callable[[Path], bool]
    switch: Switch


NAMED = (
    "noise scale x 0.9",
    "sensitivity halved",
    "column norm used for replace-one",
    "numeric answer from a sparse vector's test noise",
    "threshold noise shared between analysts and refreshed",
    "stop tested only at positives",
    "realised instead of capped charge",
    "projection cap 2/s",
    "actions deduplicated across units",
    "query player's sign flipped",
    "eta_D = 0",
    "one coin forgotten",
    "records drawn once too often",
    "float noise",
    "reused stream",
    "charge after answer",
)
MUTANTS = [
    Mutant("noise scale x 0.9", noise_hides_one, scaled_noise),
    Mutant("sensitivity halved", detection_hides_a_record, halved_sensitivity_of_statements),
    Mutant("sensitivity halved", analyst_test_hides_a_record, halved_sensitivity_of_analysts),
    Mutant("column norm used for replace-one", a_table_s_answers_hide_a_record, column_norm),
    Mutant(
        "numeric answer from a sparse vector's test noise", answers_are_free_of_test_noise, answers_from_test_noise
    ),
    Mutant("threshold noise shared between analysts and refreshed", detection_couples_nobody, shared_thresholds),
    Mutant("stop tested only at positives", places_hide_an_analyst, stop_only_at_positives),
    Mutant("realised instead of capped charge", the_plan_covers_what_everybody_sees, realised_charge),
    Mutant("projection cap 2/s", no_unit_holds_more_than_its_cap, a_cap_of_two_over_s),
    Mutant("actions deduplicated across units", equal_questions_stay_apart, deduplicated),
    Mutant("query player's sign flipped", the_synopsis_learns, flipped_sign),
    Mutant("eta_D = 0", the_synopsis_learns, dead),
    Mutant("one coin forgotten", noise_hides_one, without_a_coin),
    Mutant("one coin forgotten", private_weights_keep_to_their_charge, uncharged_selections),
    Mutant("records drawn once too often", the_records_drawn_are_charged, drawn_once_too_often),
    Mutant("float noise", noise_is_counted_from_words, float_noise),
    Mutant("reused stream", every_stream_is_derived_once, reused_stream),
    Mutant("charge after answer", charges_come_before_data, charged_after_the_answer),
]


def test_every_named_fault_has_a_mutant() -> None:
    assert tuple(dict.fromkeys(mutant.name for mutant in MUTANTS)) == NAMED


@pytest.mark.sparse(8)
@pytest.mark.thin(12)
@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{each.name}: {each.check.__name__}" for each in MUTANTS])
def test_the_mutant_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for place in ("shipped", "mutant"):
        (tmp_path / place).mkdir()
    assert mutant.check(tmp_path / "shipped")
    with monkeypatch.context() as patches:
        mutant.switch(patches)
        assert not mutant.check(tmp_path / "mutant")
