"""What can be seen of a server process from outside, and how fast it grows.

A slope is that of least squares, with its standard error. Samples a second apart are not independent, so half a
minute of them is one point. The first ten minutes of a life are left out: modules that are imported at first use,
the pools of threads and connections, caches with a limit, and the allocator's arenas fill once and then stay. On a
busy machine that takes longer than five minutes: with these left out, two lives of one run grew by 65 and 15 MiB an
hour, and both to 214 MiB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

WARM_UP_SECONDS = 600
POINT_SECONDS = 30
CERTAINTY = 3.0  # standard errors: what grows within the allowance is refused once in 700 slopes
HOUR = 3600.0


@dataclass(frozen=True)
class Sample:
    """One look at /proc. `memory`: resident, in MiB. `children`: workers, and what nobody has waited for."""

    memory: float
    descriptors: float
    threads: float
    children: float


MEASURES = tuple(field.name for field in fields(Sample))


@dataclass(frozen=True)
class Point:
    """The mean of some samples, and their mean time in seconds."""

    time: float
    sample: Sample


@dataclass(frozen=True)
class Slope:
    """Growth in an hour. `error` is infinite where there are too few points to know anything."""

    per_hour: float
    error: float

    def exceeds(self, allowance: float) -> bool:
        """Whether chance does not explain that it is above what is allowed."""
        return self.per_hour - CERTAINTY * self.error > allowance

    def __str__(self) -> str:
        return "unknown" if math.isinf(self.error) else f"{self.per_hour:+.2f} ± {self.error:.2f}"


def sample(process_id: int) -> Sample:
    """How the process is now."""
    place = Path(f"/proc/{process_id}")
    lines = dict(line.partition(":")[::2] for line in (place / "status").read_text().splitlines())
    return Sample(
        memory=int(lines["VmRSS"].split()[0]) / 1024,
        descriptors=len(list((place / "fd").iterdir())),
        threads=int(lines["Threads"]),
        children=_children(place),
    )


def _children(process: Path) -> int:
    """How many processes a process has started, and these have: workers are forked from one of the server's.

    None, where one has ended since it was listed.
    """
    try:
        started = [each for file in process.glob("task/*/children") for each in file.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return len(started) + sum(_children(process.parent / each) for each in started)


def points(times: Sequence[float], samples: Sequence[Sample]) -> list[Point]:
    """The means of a life's samples, `times` being its age in seconds; the warm-up is left out."""
    gathered: dict[int, list[tuple[float, Sample]]] = {}
    for age, seen in zip(times, samples, strict=True):
        if age >= WARM_UP_SECONDS:
            gathered.setdefault(int(age // POINT_SECONDS), []).append((age, seen))
    return [
        Point(
            float(np.mean([age for age, _ in some])),
            Sample(*(float(np.mean([getattr(seen, name) for _, seen in some])) for name in MEASURES)),
        )
        for some in gathered.values()
    ]


def slope(lives: Sequence[Sequence[Point]], measure: str) -> Slope:
    """The growth that all lives have in common, each from a level of its own."""
    known = [life for life in lives if life]
    times = [np.array([point.time for point in life]) for life in known]
    values = [np.array([getattr(point.sample, measure) for point in life]) for life in known]
    freedom = sum(map(len, known)) - len(known) - 1
    if freedom < 1:
        return Slope(0.0, math.inf)
    time = np.concatenate([each - each.mean() for each in times])
    value = np.concatenate([each - each.mean() for each in values])
    spread = float(time @ time)
    growth = float(time @ value) / spread
    left = value - growth * time
    return Slope(growth * HOUR, math.sqrt(float(left @ left) / freedom / spread) * HOUR)
