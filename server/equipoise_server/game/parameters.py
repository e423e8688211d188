"""The public parameters of one game, on the integer grids on which it is played."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from equipoise.accounting import POTENTIAL_BITS

EXPONENT_BITS = 48  # exponents are integers in units of 2^-48
Play = Literal["mixed", "sampled"]

MAX_EXPONENT = 300  # so that no weight, and no sum of weights, leaves the range of a double


@dataclass(frozen=True)
class GameParameters:
    """Rounds `T`, records a round `B`, action draws a round `M` (sampled play), density `s`, and both steps.

    `query_step` is the query player's learning rate in units of `records batch 2^-48`: payoffs are integers
    in units of `1 / (records batch)`, so that payoff times step is an exponent without rounding.
    `data_step` is the data player's rate in units of 2^-20 (mixed play) or `draws 2^-48` (sampled play).
    """

    play: Play
    rounds: int
    batch: int
    draws: int
    density: float
    query_step: int
    data_step: int

    def query_rate(self, records: int) -> float:
        """`eta_Q`."""
        return self.query_step * records * self.batch / 2.0**EXPONENT_BITS

    @property
    def data_rate(self) -> float:
        """`eta_D`."""
        if self.play == "mixed":
            return self.data_step / 2.0 ** (EXPONENT_BITS - POTENTIAL_BITS)
        return self.data_step * self.draws / 2.0**EXPONENT_BITS

    def problem(self, records: int, units: int) -> str | None:
        """Say why these parameters cannot be played, naming the parameter; None where they can."""
        if self.play not in ("mixed", "sampled"):
            return f"play must be mixed or sampled, not {self.play}"
        if not 1 <= self.rounds <= 2**17:
            return f"rounds must lie between 1 and {2**17}, not {self.rounds}"
        if not 1 <= self.batch <= 2**20 or self.rounds * self.batch > 2**22:
            return f"batch must be at least 1, and rounds x batch at most {2**22}"
        if not 1 <= self.draws <= 2**20 or self.rounds * self.draws > 2**22:
            return f"draws must be at least 1, and rounds x draws at most {2**22}"
        if units < 2:
            return "density: a game needs at least 2 units; use a mechanism that answers each analyst alone"
        if not 1 <= self.density < units:
            return f"density must be at least 1 and below the {units} units, not {self.density}"
        if self.query_step < 0 or self.query_rate(records) * self.rounds > MAX_EXPONENT:
            return f"query rate x rounds must lie between 0 and {MAX_EXPONENT}"
        if self.data_step < 0 or self.data_rate * self.rounds > 2**14:
            return f"data rate x rounds must lie between 0 and {2**14}"
        return None
