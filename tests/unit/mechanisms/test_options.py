"""Options of mechanisms: every one that is unknown or out of range is refused by name."""

from __future__ import annotations

import pytest

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.options import Limit, check_options, real, whole

LIMITS = {"rounds": Limit(1, 1 << 17, whole=True), "rate": Limit(0.5, 2)}
WORDS = {"play": ("mixed", "sampled")}


@pytest.mark.parametrize(
    "options", [{}, {"rounds": 1}, {"rounds": 131072.0}, {"rate": 0.5}, {"play": "mixed"}, {"prior": "anything"}]
)
def test_what_is_within_its_limits_is_accepted(options: dict[str, object]) -> None:
    check_options(options, LIMITS, WORDS, ("prior",))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"luck": 1}, "options.luck: unknown; there is play, prior, rate, rounds"),
        ({"play": "fair"}, "options.play: must be mixed or sampled"),
        ({"rounds": 0}, "options.rounds: must be a number between 1 and 131,072"),
        ({"rounds": (1 << 17) + 1}, "options.rounds: must be a number between 1 and 131,072"),
        ({"rounds": 1.5}, "options.rounds: must be a whole number"),
        ({"rounds": True}, "options.rounds: must be a number"),
        ({"rate": "1"}, "options.rate: must be a number between 0.5 and 2"),
        ({"rate": float("nan")}, "options.rate: must be a number"),
        ({"rate": 0.4}, "options.rate: must be a number"),
    ],
)
def test_what_is_not_is_refused_by_name(options: dict[str, object], problem: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_options(options, LIMITS, WORDS, ("prior",))
    assert str(refused.value).startswith(problem)


def test_what_is_given_is_read_and_what_is_not_has_its_default() -> None:
    assert (whole({"rounds": 4.0}, "rounds", 2), whole({}, "rounds", 2)) == (4, 2)
    assert (real({"rate": 1}, "rate", 0.5), real({}, "rate", 0.5)) == (1.0, 0.5)
