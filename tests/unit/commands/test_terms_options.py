"""What operators type becomes the terms of a round."""

from __future__ import annotations

import pytest

from equipoise.commands.terms_options import RoundOptions
from equipoise.errors import InvalidArgument


def typed(prior: str | None, options: str = "") -> RoundOptions:
    return RoundOptions(
        dataset="flights",
        share=["AA=3"],
        data_epsilon=1.0,
        data_delta=1e-9,
        analyst_epsilon=1.0,
        mechanism="equilibrium",
        prior=prior,
        options=options,
    )


def test_what_a_round_starts_from_is_one_of_its_options() -> None:
    assert typed(None).terms().options == {}
    assert typed("own", '{"game_share": 1}').terms().options == {"prior": "own", "game_share": 1}
    with pytest.raises(InvalidArgument, match="--options: prior is also what --prior says"):
        typed("own", '{"prior": "none"}').terms()
