"""Reads and checks the options that may be forced of a plan of `pooled`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from equipoise.errors import InvalidArgument
from equipoise_server.mechanisms.expected_error import holds_conditions
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.options import Limit, check_options, real, whole
from equipoise_server.mechanisms.pooled.family import MAX_RESIDUAL_SETS, MAX_SETS, MAX_TABLE

MAX_FITTED = 1 << 24  # possible records that the fit visits at every step, with ten numbers for each
WAYS = 3
CELLS = 1 << 16
FLOOR = Fraction(2, 3)
LEAST = 1.0
REPAIR_SHARE = Fraction(1, 20)  # where conditions are asked, which may be about more attributes than tables hold
RECORDS = 1 << 18


@dataclass(frozen=True)
class Options:
    """The public options: the family's `ways` and `cells`, and the evenly divided part of the budget (`floor`).

    `least`: a set that a larger one holds is measured only above so many times what the demand's noise usually
    reaches. `summed`: answers that add up more cells of a table, or rather whose coefficients' squares add up to
    more, may stay uncertified. `synopsis`: records of the synthetic table. `residuals`: whether residuals are
    measured instead of tables; None: where they are expected to err less. `repair_share`: the part of the data's
    budget kept for statements outside the family, which stay uncertified where it is 0. Where a share holds
    conditions it is a twentieth, unless an option says otherwise: nothing public tells how many attributes these
    are about. Where a distribution over a support is fitted, residuals are measured, and nothing is repaired.
    """

    ways: int
    cells: int
    floor: Fraction
    least: float
    summed: float
    synopsis: int
    residuals: bool | None
    repair_share: Fraction


LIMITS = {
    "ways": Limit(1, 16, whole=True),
    "cells": Limit(2, MAX_TABLE, whole=True),
    "floor": Limit(0.01, 1),
    "least": Limit(0, 100),
    "summed": Limit(1, MAX_TABLE),
    "synopsis": Limit(1, 1 << 24, whole=True),
    "residuals": Limit(0, 1, whole=True),
    "repair_share": Limit(0, 0.9),
    "cut_off": Limit(1, 1 << 40, whole=True),
    "threshold": Limit(0, 1),
    "repair_rounds": Limit(1, 512, whole=True),
}
OF_REPAIR = ("cut_off", "threshold", "repair_rounds")
OVER_SUPPORT = {"residuals": 1, "repair_share": 0}  # all that they may be over a support


def over_universe(setting: PublicParameters) -> bool:
    """Return whether a distribution over all possible records is fitted, and not one over a support of some."""
    return setting.enumerable and setting.universe_size <= MAX_FITTED


def usual_ways(setting: PublicParameters, most: int) -> int:
    """Return the attributes of the largest tables of at most `most` sets, and at most as many as shares declare."""
    telling = sum(size > 1 for size in setting.attributes)
    declared = max(share.ways or WAYS for share in setting.shares)
    ways = max(1, min(WAYS, declared, telling))
    while ways > 1 and sum(math.comb(telling, each) for each in range(1, ways + 1)) > most:
        ways -= 1
    return ways


def read_options(setting: PublicParameters) -> Options:
    """Read the options. Raises `InvalidArgument` naming an option that is unknown or out of range."""
    check_options(setting.options, LIMITS)
    fits = over_universe(setting)
    for name, allowed in OVER_SUPPORT.items():
        if not fits and setting.options.get(name, allowed) != allowed:
            problem = f"must be {allowed}, or left out, where there are more than {MAX_FITTED:,} possible records"
            raise InvalidArgument(f"options.{name}", problem)
    conditions = fits and any(holds_conditions(share) for share in setting.shares)
    repair_share = Fraction(str(setting.options.get("repair_share", REPAIR_SHARE if conditions else 0)))
    for name in OF_REPAIR:
        if name in setting.options and not repair_share:
            raise InvalidArgument(f"options.{name}", "has no effect without repair; set repair_share too")
        if name == "repair_rounds" and name in setting.options and setting.unit == "query":
            raise InvalidArgument(
                f"options.{name}", "has no effect where unit is query: statements are repaired one by one"
            )
    options = setting.options
    return Options(
        ways=whole(options, "ways", usual_ways(setting, MAX_SETS if fits else MAX_RESIDUAL_SETS)),
        cells=whole(options, "cells", CELLS),
        floor=Fraction(str(options.get("floor", FLOOR))),
        least=real(options, "least", LEAST),
        summed=real(options, "summed", MAX_TABLE if all(map(holds_conditions, setting.shares)) else 1),
        synopsis=whole(options, "synopsis", RECORDS),
        residuals=bool(options["residuals"]) if "residuals" in options else None if fits else True,
        repair_share=repair_share,
    )
