"""How long a bundle with a million answers takes to verify: it must stay below 20 seconds.

    python benchmarks/verification.py [ANSWERS]

One in twenty answers is to a condition of its own, the others are cells of marginals; a synopsis of 60,000 records
answers them all. Reading and compiling the conditions takes most of the time. The custodian is that of the tests,
made of the client's formats alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness import small_custodian
from harness.small_custodian import Custodian, Told, signing_key

from equipoise.queries.predicates import attribute
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.verification.checks import VerifierInputs, verify

ANSWERS = 1_000_000
PART = 20  # one condition for so many answers
RECORDS = 60_000
SIZE, ATTRIBUTES = 10, 6


def main(answers: int) -> None:
    """Makes a bundle, verifies it, and prints what each part took."""
    names = [f"a{number}" for number in range(ATTRIBUTES)]
    small_custodian.SCHEMA = Schema(tuple(Attribute(name, tuple(map(str, range(SIZE)))) for name in names))
    small_custodian.SYNOPSIS = np.random.default_rng(0).integers(0, SIZE**ATTRIBUTES, RECORDS)
    conditions = answers // PART
    statements: list[Statement] = [
        (attribute(names[number % 3]) == str(number % SIZE))
        & attribute(names[3 + number % 3]).isin([str(number // 7 % SIZE), str(number // 77 % SIZE)])
        for number in range(conditions)
    ]
    left = answers - conditions
    statements += [Marginal(tuple(names[:5]))] * (left // SIZE**5)
    statements += [Marginal(tuple(names[1:4]))] * (left % SIZE**5 // SIZE**3)
    share = {"statements": len(statements), "queries": answers, "sensitivity": 0, "support": 0}
    log = Custodian()
    log.grow(1000)
    began = time.perf_counter()
    bundle = Told(
        statements=tuple(statements), items={"share": share, "round": {"universe_size": SIZE**ATTRIBUTES}}
    ).bundle(log)
    data = bundle.to_bytes()
    print(f"{len(data) / 2**20:.1f} MiB, made in {time.perf_counter() - began:.1f} s")
    started = last = time.perf_counter()

    def passed(check: object, said: str) -> None:
        nonlocal last
        now = time.perf_counter()
        print(f"{check!s:>3} {now - last:7.2f} s  {said}")
        last = now

    verify(data, VerifierInputs([signing_key(1).verifier]), passed)
    print(f"{answers:,} answers verified in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS)
