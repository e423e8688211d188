"""Which mechanism the planner would choose, over the numbers of records and of queries: a chart and its figures.

    python benchmarks/regime_map.py docs/regimes.svg

Everything comes from the planner: no table is read and nothing is run. Four rounds, each at 5 x 8 sizes. Two are
structured, shares of three-way marginals of six attributes of 12 categories, 1,728 cells each; two are
unstructured, shares of predicates over 2^26 possible records, the most that a table may have. Few analysts are
20, many 1,000; what is protected is one statement. Both epsilons are 1, delta is 1/n^2 for the people and 10^-6
for the analysts, beta 0.05. Limits of time and memory are left out: the question is who is expected to err least.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from equipoise.model.accounts import Budget
from equipoise.model.rounds import Share
from equipoise_server.mechanisms.choice import by_expected_error, choose
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.planner import compare
from equipoise_server.mechanisms.registry import MECHANISMS

ATTRIBUTES, CELLS = (12,) * 6, 12**3
UNSTRUCTURED = 2**26
RECORDS = tuple(round(each) for each in np.geomspace(10**3, 10**7, 5))
QUERIES = tuple(round(each) for each in np.geomspace(10**3, 10**10, 8))
COLOURS = {
    "equilibrium": "#b5302c",
    "pooled": "#2f6fad",
    "laplace": "#8b6bb1",
    "gaussian": "#e0a030",
    "histogram": "#4b9560",
    "projection": "#7ab8b8",
    "multiplicative_weights": "#d97fa8",
    "small_db": "#7c5c44",
}
NOTHING = "#e6e6e6"
USEFUL, USELESS = 0.01, 0.1  # mean errors
SIDE, LEFT, TOP, GAP = 44, 74, 52, 60


@dataclass(frozen=True)
class Panel:
    """One kind of round."""

    title: str
    analysts: int
    structured: bool

    def setting(self, records: int, queries: int) -> PublicParameters:
        """The round of so many records and, in all, so many queries or a few more."""
        if self.structured:
            statements = max(1, round(queries / CELLS / self.analysts))
            share = Share("", statements, statements * CELLS)
        else:
            statements = max(1, round(queries / self.analysts))
            share = Share("", statements, statements, statements)
        return PublicParameters(
            records=records,
            universe_size=12**6 if self.structured else UNSTRUCTURED,
            shares=tuple(replace(share, analyst=f"analyst-{number}") for number in range(self.analysts)),
            unit="query",
            data_budget=Budget(1.0, 1 / records**2),
            analyst_budget=Budget(1.0, 1e-6),
            beta=0.05,
            options={},
            attributes=ATTRIBUTES if self.structured else (),
        )


PANELS = (
    Panel("Marginals, 20 analysts", 20, True),
    Panel("Marginals, 1,000 analysts", 1000, True),
    Panel("Predicates, 20 analysts", 20, False),
    Panel("Predicates, 1,000 analysts", 1000, False),
)


@dataclass(frozen=True)
class Place:
    """The choice at one place of a panel, and the mean error that is expected of it."""

    records: int
    queries: int
    mechanism: str
    expected: float


def main() -> None:
    """Prints a table of figures in Markdown and writes the chart."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("chart", type=Path)
    options = arguments.parse_args()
    charts = []
    print("| round | records | queries | chosen | expected | promise | next | it expects |")
    print("|---|---|---|---|---|---|---|---|")
    for panel in PANELS:
        shown = {(records, queries): chosen(panel, records, queries) for records in RECORDS for queries in QUERIES}
        charts.append([place for place, _ in shown.values()])
        for row in dict.fromkeys(
            row for (records, _), (_, row) in shown.items() if RECORDS.index(records) % 2 == 0
        ):
            print(row, flush=True)
    options.chart.write_text("\n".join(drawn(charts)) + "\n", encoding="utf-8")


def chosen(panel: Panel, records: int, queries: int) -> tuple[Place, str]:
    """The planner's choice without its limits of time and memory, and a row of figures about it."""
    # Shares are whole tables, so that the smallest sizes of many analysts are all the same round.
    asked = panel.setting(records, queries).queries
    mechanism, expected, row = figures_of(panel, records, asked)
    return Place(records, queries, mechanism, expected), row


@cache
def figures_of(panel: Panel, records: int, queries: int) -> tuple[str, float, str]:
    """The chosen mechanism, what it is expected to err by, and the row."""
    setting = panel.setting(records, queries)
    candidates = [replace(each, beyond="") for each in compare(setting, MECHANISMS).candidates]
    best = choose(candidates, by_expected_error)
    if best is None or best.plan is None:
        raise SystemExit(f"{panel.title}: no mechanism has a plan for {records:,} records and {queries:,} queries")
    expected, promise = best.plan.expected_error, best.plan.max_half_width
    other = choose([each for each in candidates if each is not best], by_expected_error)
    figures = (panel.title, f"{records:,}", f"{setting.queries:,}", best.mechanism, told(expected), told(promise))
    after = (other.mechanism, told(other.plan.expected_error)) if other and other.plan else ("none", "")
    return best.mechanism, expected, f"| {' | '.join((*figures, *after))} |"


def told(error: float) -> str:
    """An error in two digits or so."""
    return "1" if error >= 0.9995 else f"{error:.2g}"


def drawn(charts: list[list[Place]]) -> Iterator[str]:
    """The lines of an SVG file: four panels, one square a place, paler where more than 0.01 is expected."""
    wide, high = SIDE * len(RECORDS), SIDE * len(QUERIES)
    whole_wide, whole_high = 2 * (LEFT + wide) + GAP, 2 * (TOP + high + GAP) + 40
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole_wide} {whole_high}" '
        f'width="{whole_wide}" height="{whole_high}" font-family="sans-serif" font-size="12">'
    )
    yield f'<rect width="{whole_wide}" height="{whole_high}" fill="white"/>'
    for number, (panel, places) in enumerate(zip(PANELS, charts, strict=True)):
        x, y = LEFT + number % 2 * (LEFT + wide), TOP + number // 2 * (TOP + high + GAP)
        yield f'<text x="{x}" y="{y - 12}" font-size="14" font-weight="bold">{panel.title}</text>'
        for place in places:
            column, row = RECORDS.index(place.records), len(QUERIES) - 1 - QUERIES.index(place.queries)
            colour = COLOURS[place.mechanism] if place.expected < USELESS else NOTHING
            paler = ' fill-opacity="0.55"' if USEFUL < place.expected < USELESS else ""
            yield (
                f'<rect x="{x + column * SIDE}" y="{y + row * SIDE}" width="{SIDE}" height="{SIDE}" '
                f'fill="{colour}"{paler} stroke="white" stroke-width="0.5"/>'
            )
        yield from axes(x, y, wide, high)
    shown = {place.mechanism for places in charts for place in places if place.expected < USELESS}
    yield from legend(shown, whole_high - 16)
    yield "</svg>"


def axes(x: int, y: int, wide: int, high: int) -> Iterator[str]:
    """Powers of ten along both sides."""
    for power in range(3, 8):
        at = x + SIDE / 2 + (power - 3) / 4 * (wide - SIDE)
        yield f'<text x="{at:.1f}" y="{y + high + 16}" text-anchor="middle">10^{power}</text>'
    for power in range(3, 11):
        at = y + high - SIDE / 2 - (power - 3) / 7 * (high - SIDE)
        yield f'<text x="{x - 6}" y="{at + 4:.1f}" text-anchor="end">10^{power}</text>'
    yield f'<text x="{x + wide / 2}" y="{y + high + 34}" text-anchor="middle">records n</text>'
    middle = y + high / 2
    yield (
        f'<text x="{x - 50}" y="{middle}" text-anchor="middle" '
        f'transform="rotate(-90 {x - 50} {middle})">queries k</text>'
    )


def legend(names: set[str], y: int) -> Iterator[str]:
    """What the colours mean."""
    x = LEFT
    for name in [*(name for name in COLOURS if name in names), f"{USELESS} or more"]:
        colour = COLOURS.get(name, NOTHING)
        yield f'<rect x="{x}" y="{y - 11}" width="13" height="13" fill="{colour}"/>'
        yield f'<text x="{x + 18}" y="{y}">{name}</text>'
        x += 34 + 6 * len(name)


if __name__ == "__main__":
    main()
