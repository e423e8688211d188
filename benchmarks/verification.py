"""How long a bundle with a million answers takes to verify: it must stay below 20 seconds.

    python benchmarks/verification.py [ANSWERS [PART]]

One in PART answers, else in twenty, is to a conjunction of three conditions, different from all others; the rest
are cells of marginals. A synopsis of 60,000 records answers them all. At the end the workload is read and compiled
one statement at a time, too, to compare. The custodian is that of the tests, made of the client's formats alone.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness import small_custodian
from harness.small_custodian import Custodian, Told, signing_key

from equipoise.queries.predicates import AllOf, Among, Predicate
from equipoise.queries.schema import Attribute, Schema
from equipoise.queries.statements import Marginal, Statement
from equipoise.queries.workload_compiler import compile_workload
from equipoise.verification.checks import VerifierInputs, verify
from equipoise.wire.bulk_compiler import compile_workload_bytes
from equipoise.wire.workloads import workload_from_bytes

ANSWERS = 1_000_000
PART = 20  # one condition for so many answers
RECORDS = 60_000
SIZE, ATTRIBUTES = 10, 6


def conjunctions(names: Sequence[str]) -> Iterator[Predicate]:
    """Conjunctions of conditions on three attributes, no two of them alike: a million and more."""
    labels = tuple(map(str, range(SIZE)))
    pairs, triples = (list(itertools.combinations(labels, count)) for count in (2, 3))
    for categories in itertools.product(pairs, triples, triples):
        for axes in itertools.combinations(names, 3):
            yield AllOf(tuple(Among(name, each) for name, each in zip(axes, categories, strict=True)))


def main(answers: int, part: int) -> None:
    """Makes a bundle, verifies it, and prints what each part took."""
    names = [f"a{number}" for number in range(ATTRIBUTES)]
    small_custodian.SCHEMA = Schema(tuple(Attribute(name, tuple(map(str, range(SIZE)))) for name in names))
    small_custodian.SYNOPSIS = np.random.default_rng(0).integers(0, SIZE**ATTRIBUTES, RECORDS)
    conditions = answers // part
    statements: list[Statement] = list(itertools.islice(conjunctions(names), conditions))
    left = answers - conditions
    statements += [Marginal(tuple(names[:5]))] * (left // SIZE**5)
    statements += [Marginal(tuple(names[1:4]))] * (left % SIZE**5 // SIZE**3)
    share = {"statements": len(statements), "queries": answers, "sensitivity": 0, "support": 0, "ways": 5}
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
    assert bundle.workload is not None
    started = time.perf_counter()
    compile_workload_bytes(bundle.workload, small_custodian.SCHEMA)
    together = time.perf_counter() - started
    compile_workload(workload_from_bytes(bundle.workload), small_custodian.SCHEMA)
    alone = time.perf_counter() - started - together
    print(f"{len(statements):,} statements: compiled together in {together:.1f} s, one by one in {alone:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3] + [str(ANSWERS), str(PART)][len(sys.argv[1:3]) :]))
