"""Reads and checks a plan's forced options, and rounds its epsilons down to their grid."""

from __future__ import annotations

from collections.abc import Mapping

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.prior.choice import NONE, OF_PRIOR, check_prior

# What may be forced: words; numbers with the largest value of each, and whether it is whole and at least 1.
WORDS = {
    "play": ("mixed", "sampled", "hru"),
    "units": ("statement", "query"),
    "answers": ("laplace", "gaussian"),
}
OPTIONS = {
    "rounds": (2**17, True),
    "batch": (2**20, True),
    "draws": (2**20, True),
    "density": (2**40, False),
    "query_rate": (300, False),
    "data_rate": (2**14, False),
    "threshold": (1, False),
    "cut_off": (2**40, False),
    "game_share": (1, False),
}
OF_REPAIR = ("threshold", "cut_off", "answers", "repair_rounds")  # which a prior's tests take the place of
OF_ANY_ROUND = (*OF_PRIOR, "game_share")  # whatever a round starts from; all others force a game
ANALYST_OPTIONS = {"repair_rounds": (512, True)}  # unit = analyst only


def check_options(setting: PublicParameters) -> None:
    """Refuses options that are unknown or out of range, naming them, before anything is computed from them."""
    _check_values(setting)
    options = setting.options
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


def _check_values(setting: PublicParameters) -> None:
    options = setting.options
    known = OPTIONS | ANALYST_OPTIONS if setting.unit == "analyst" else OPTIONS
    for name, value in sorted(options.items()):
        if name in OF_PRIOR:
            continue
        if name in WORDS:
            if value not in WORDS[name]:
                raise InvalidArgument(f"options.{name}", f"must be {' or '.join(WORDS[name])}")
            continue
        if name not in known:
            raise InvalidArgument(
                f"options.{name}", f"unknown; there is {', '.join(sorted({*WORDS, *OF_PRIOR, *known}))}"
            )
        largest, counts = known[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not counts <= value <= largest:
            raise InvalidArgument(f"options.{name}", f"must be a number between {int(counts)} and {largest}")
        if (counts or name == "cut_off") and value != int(value):
            raise InvalidArgument(f"options.{name}", "must be a whole number")


def forces_a_game(setting: PublicParameters) -> bool:
    """Whether an option says how the game or its repair is to be, so that one is to be played."""
    return not set(setting.options) <= set(OF_ANY_ROUND)


def whole(options: Mapping[str, object], name: str, default: int) -> int:
    """Return the forced whole number called `name`, or the default.

    Args:
        options: that were given, by name.
        name: of the option.
        default: what holds where it was not given.
    """
    value = options.get(name, default)
    return int(value) if isinstance(value, int | float) else default


def real(options: Mapping[str, object], name: str, default: float) -> float:
    """Return the forced real number called `name`, or the default.

    Args:
        options: that were given, by name.
        name: of the option.
        default: what holds where it was not given.
    """
    value = options.get(name, default)
    return float(value) if isinstance(value, int | float) else default
