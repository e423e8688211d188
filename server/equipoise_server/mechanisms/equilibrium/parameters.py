"""The public parameters of a run of `equilibrium`, and their encoding."""

from __future__ import annotations

from equipoise.records.codec import (
    COUNT,
    POSITIVE,
    REAL,
    Codec,
    canonical_object,
    codec_of,
    key,
    object_codec,
    one_of,
    optional,
)
from equipoise_server.game.parameters import GameParameters
from equipoise_server.mechanisms.parameters import Parameters
from equipoise_server.mechanisms.prior.plan import PriorParameters
from equipoise_server.mechanisms.repair.final_tests import FinalTestParameters
from equipoise_server.mechanisms.repair.parameters import REPAIR, Repair

GAME: Codec[GameParameters] = object_codec(
    GameParameters,
    {
        "play": ("play", one_of("mixed", "sampled")),
        "rounds": ("rounds", COUNT),
        "batch": ("batch", COUNT),
        "draws": ("draws", COUNT),
        "density": ("density", REAL),
        "query_step": ("query_step", COUNT),
        "data_step": ("data_step", COUNT),
    },
)


@canonical_object
class PriorStart:
    """What a round that starts from a prior measures or has been told, delivers and tests.

    `laid_out`: how many records laid out along the prior the synopsis has, after the drawn ones. `tests`: what
    gives the intervals.
    """

    prior: PriorParameters = key("measured", codec_of(PriorParameters))
    laid_out: int = key("laid_out", POSITIVE)
    tests: FinalTestParameters = key("tests", codec_of(FinalTestParameters))


@canonical_object
class EquilibriumParameters(Parameters):
    """All public parameters of one run.

    `game` is None where nothing is played; then there is a `start`. `repair` is None where the game has the whole
    data budget, and where there is a `start`, whose tests take its place. `start` is None for the game as printed,
    which starts from the uniform distribution. Raises `ValueError` for parameters that do not fit one another.
    """

    game: GameParameters | None = key("game", optional(GAME))
    repair: Repair | None = key("repair", optional(REPAIR))
    start: PriorStart | None = key("prior", optional(codec_of(PriorStart)))

    def __post_init__(self) -> None:
        if self.start is None and self.game is None:
            raise ValueError("game must be set in a plan without a prior")
        if self.start is not None and self.repair is not None:
            raise ValueError("repair must not be set in a plan with a prior")

    @property
    def played(self) -> GameParameters:
        """The game. Raises `ValueError` where nothing is played."""
        if self.game is None:
            raise ValueError("the plan has no game, as its prior alone answers")
        return self.game

    def in_words(self) -> str:
        """Say what the round starts from, and whether anything is played."""
        if self.start is None:
            return "the uniform distribution; the game is played as published"
        tables, released = len(self.start.prior.noise.largest), self.start.prior.released
        whose = f"the standing measurement {released.round_id}" if released else "the round's own"
        prior = f"a prior, fitted to {tables} table{'' if tables == 1 else 's'} of {whose}"
        played = (
            "play goes on from there"
            if self.game
            else "nothing is played, as play is not expected to improve on it"
        )
        return f"{prior}; {played}"
