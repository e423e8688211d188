"""What all other analysts can see of a server, jointly, does not depend on what one analyst does.

Neighbouring worlds differ in ann's conduct alone. Everything that anybody else can see, on the wire and byte for
byte, is the same in both, but for values, ways of answering, bounds and the synopsis, which the mechanisms account
for; where a mechanism is perfectly private, these are the same, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

import pytest
from noninterference.conducts import CONDUCTS, Conduct, asks_as_usual
from noninterference.wire_view import View
from noninterference.worlds import RoundOf, World, world

UNITS = ("query", "analyst")
SMALL = '{"rounds":4,"batch":8,"draws":4,"density":1.5}'
ROUNDS = (
    RoundOf("equilibrium", "query", perfect=False, options=SMALL),
    RoundOf("equilibrium", "analyst", perfect=False, options=SMALL),
    RoundOf("pooled", "analyst", perfect=False, options='{"least":0}', closes=True),
    RoundOf("gaussian", "query", perfect=True),
    RoundOf("histogram", "analyst", perfect=True),
    RoundOf("projection", "query", perfect=True, closes=True),
)


def lived(place: Path, begin: datetime, conducts: Sequence[Conduct]) -> tuple[View, list[bytes]]:
    with world(place, begin, ROUNDS) as made:
        import time; t=time.time(); made.open(); print('open',time.time()-t)
        made.ask(conducts); print('ask', time.time()-t)
        made.seal(); print('seal', time.time()-t)
        made.release(); print('rel', time.time()-t)
        return made.viewers.view, made.accounts()


def test_x(tmp_path: Path) -> None:
    begin = datetime.now(UTC).replace(microsecond=0)
    import time
    t = time.time()
    base = lived(tmp_path / "a", begin, [asks_as_usual] * len(ROUNDS))
    print("base", time.time() - t, len(base[0]))
    t = time.time()
    other = lived(tmp_path / "b", begin, list(islice(cycle(CONDUCTS), len(ROUNDS))))
    print("other", time.time() - t)
    from collections import Counter
    print(Counter((s.about.split(":")[1], s.status) for s in base[0]))
    for one, two in zip(base[0], other[0], strict=True):
        if one != two: print(one, two, sep="\n")
    assert base == other
