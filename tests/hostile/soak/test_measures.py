"""The judgement of the soak: what it must see in half an hour, and what it must not."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys

from harness.soak.measures import POINT_SECONDS, WARM_UP_SECONDS, Point, Sample, points, sample, slope
from harness.soak.soaking import ALLOWED, LIVES

MINUTES = 30
JITTER = 2.0  # MiB by which single samples differ: rounds come and go


def lives(per_hour: float, drawn: random.Random) -> list[list[Point]]:
    """What a server of so much growth shows in lives of the usual lengths."""
    found = []
    for life in LIVES:
        ages = [float(second) for second in range(int(life.seconds * MINUTES * 60))]
        seen = [Sample(150 + per_hour * age / 3600 + drawn.gauss(0, JITTER), 40, 30, 1) for age in ages]
        found.append(points(ages, seen))
    return found


def test_growth_of_twice_what_is_allowed_is_seen_and_none_is_not_imagined() -> None:
    drawn = random.Random(1)
    assert slope(lives(2 * ALLOWED["memory"], drawn), "memory").exceeds(ALLOWED["memory"])
    assert all(slope([life], "memory").exceeds(ALLOWED["memory"]) for life in lives(48, drawn) if life)
    for _ in range(20):
        flat = slope(lives(0, drawn), "memory")
        assert not flat.exceeds(ALLOWED["memory"])
        assert abs(flat.per_hour) < 5 * flat.error < ALLOWED["memory"]


def test_a_slope_is_that_of_least_squares_with_its_error() -> None:
    hours, memory = (0.0, 1.0, 2.0, 3.0), (1.0, 2.0, 4.0, 5.0)
    line = [Point(3600 * hour, Sample(value, 0, 0, 0)) for hour, value in zip(hours, memory, strict=True)]
    found = slope([line], "memory")
    assert math.isclose(found.per_hour, 1.4)  # by hand: 7 / 5
    assert math.isclose(found.error, math.sqrt(0.1 / 5))  # residual sum of squares 0.2, two degrees of freedom


def test_lives_with_other_levels_do_not_look_like_growth() -> None:
    level = [[Point(float(t), Sample(base, 0, 0, 0)) for t in range(4)] for base in (100.0, 300.0)]
    assert slope(level, "memory").per_hour == 0


def test_of_few_points_nothing_is_claimed() -> None:
    assert math.isinf(slope([], "memory").error)
    assert math.isinf(slope([[Point(0, Sample(1, 0, 0, 0)), Point(1, Sample(9, 0, 0, 0))]], "memory").error)


def test_the_warm_up_is_left_out_and_half_a_minute_is_one_point() -> None:
    ages = [0.0, WARM_UP_SECONDS, WARM_UP_SECONDS + 1.0, WARM_UP_SECONDS + POINT_SECONDS]
    found = points(ages, [Sample(value, 0, 0, 0) for value in (9.0, 1.0, 3.0, 5.0)])
    assert [(point.time, point.sample.memory) for point in found] == [(600.5, 2.0), (630.0, 5.0)]


def test_what_a_process_holds_is_seen_from_outside() -> None:
    script = "import sys; kept = [open(sys.executable) for _ in range(9)]; print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen, own = sample(process.pid), sample(os.getpid())
        process.communicate()
    assert (seen.descriptors, seen.threads, seen.children) == (3 + 9, 1, 0)
    assert seen.memory > 1
    assert own.children >= 1
