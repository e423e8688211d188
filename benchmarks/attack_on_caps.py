"""What an operator can reach who chooses rounds by what it has seen: the table of docs/privacy-filter.md.

    python benchmarks/attack_on_caps.py --points 131072

Growing Gaussian rounds, after each of which the operator may spend all that is left on one last round (pure, or
with a part of the cap's delta) and stop. Printed are multiples of the cap's delta: for the rule that converts at
the best order afterwards what is reached for certain, as losses are rounded down to a grid; for accounts what no
such operator exceeds, as losses are rounded up. About a minute.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness.adversary import (
    PURE,
    WITH_DELTA,
    Losses,
    after_growing_rounds,
    at_the_best_order_afterwards,
    by_ledger,
    growing,
)

from equipoise_server.ledger.caps import Cap, at_order

DELTA = 1e-6
EPSILONS = (1.0, 3.0, 10.0)
ROUNDS = (5, 10, 20, 100)
POWER = 3  # of the share of rho that is spent after so many of all rounds


def main() -> None:
    """Prints the table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--points", type=int, default=1 << 17, help="losses of the grid")
    points = parser.parse_args().points
    print(
        "| epsilon of the cap | rounds | at least: pure last round | with a part of delta | an account: at most |"
    )
    print("|---|---|---|---|---|")
    for epsilon in EPSILONS:
        for rounds in ROUNDS:
            pure, mixed = (afterwards(epsilon, rounds, points, shares) for shares in (PURE, WITH_DELTA))
            print(f"| {epsilon:g} | {rounds} | {pure:.2f} | {mixed:.2f} | {held(epsilon, rounds, points):.2f} |")


def afterwards(epsilon: float, rounds: int, points: int, shares: tuple[Fraction, ...]) -> float:
    """At least so much is reached where the sum is converted at the best order."""
    cap = Cap(epsilon, DELTA)
    on = Losses(epsilon, upwards=False, points=points)
    return (
        after_growing_rounds(at_the_best_order_afterwards(cap), cap, growing(cap, rounds, POWER), on, shares)
        / DELTA
    )


def held(epsilon: float, rounds: int, points: int) -> float:
    """At most so much is reached on an account of the usual order, by rounds that grow or are all alike."""
    cap = at_order("cap", Cap(epsilon, DELTA))
    on, rule = Losses(epsilon, upwards=True, points=points), by_ledger("data/t", cap)
    return max(after_growing_rounds(rule, cap, growing(cap, rounds, power), on) for power in (1, POWER)) / DELTA


if __name__ == "__main__":
    main()
