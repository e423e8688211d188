"""The options that may be forced of a game, and which of them go together."""

from __future__ import annotations

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.options import Limit, check_options
from equipoise_server.mechanisms.prior.choice import NONE, OF_PRIOR, check_prior

# What may be forced: words and numbers.
WORDS = {
    "play": ("mixed", "sampled", "hru"),
    "units": ("statement", "query"),
    "answers": ("laplace", "gaussian"),
}
OPTIONS = {
    "rounds": Limit(1, 2**17, whole=True),
    "batch": Limit(1, 2**20, whole=True),
    "draws": Limit(1, 2**20, whole=True),
    "density": Limit(0, 2**40),
    "query_rate": Limit(0, 300),
    "data_rate": Limit(0, 2**14),
    "threshold": Limit(0, 1),
    "cut_off": Limit(0, 2**40, whole=True),
    "game_share": Limit(0, 1),
}
OF_REPAIR = ("threshold", "cut_off", "answers", "repair_rounds")  # which a prior's tests take the place of
OF_ANY_ROUND = (*OF_PRIOR, "game_share")  # whatever a round starts from; all others force a game
ANALYST_OPTIONS = {"repair_rounds": Limit(1, 512, whole=True)}  # unit = analyst only


def check_game_options(setting: PublicParameters) -> None:
    """Refuses options that are unknown or out of range, naming them, before anything is computed from them."""
    options = setting.options
    check_options(options, OPTIONS | ANALYST_OPTIONS if setting.unit == "analyst" else OPTIONS, WORDS, OF_PRIOR)
    for name in ("batch", "draws") if options.get("play") == "hru" else ():
        if options.get(name, 1) != 1:
            raise InvalidArgument(
                f"options.{name}",
                "must be 1 in the play of Hsu, Roth and Ullman (hru); set play to sampled for another",
            )
    if options.get("game_share") == 0:
        raise InvalidArgument("options.game_share", "must be above 0")
    if "answers" in options and setting.unit == "analyst":
        raise InvalidArgument(
            "options.answers", "must not be set where unit is analyst: private weights answer there"
        )
    if options.get("units") == "query" and setting.protects_analysts:
        raise InvalidArgument(
            "options.units",
            "must be statement where analysts are protected: hiding one cell of a table hides nothing",
        )
    check_prior(options)
    for name in OF_REPAIR if options.get("prior", NONE) != NONE else ():
        if name in options:
            raise InvalidArgument(f"options.{name}", "belongs to repair without a prior; set prior to none")


def forces_a_game(setting: PublicParameters) -> bool:
    """Whether an option says how the game or its repair is to be, so that one is to be played."""
    return not set(setting.options) <= set(OF_ANY_ROUND)
