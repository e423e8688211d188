"""The chart of an empirical audit: what is certified beside what is claimed. Loads matplotlib when it is used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.errors import InvalidArgument
from equipoise_lab.audit.empirical import Audit
from equipoise_lab.audit.report import SIDES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
OPTION = "--chart"


def check_chart(path: Path) -> None:
    """Raises `InvalidArgument` where no chart could be written there, before anything is run for it."""
    if path.suffix not in SUFFIXES:
        raise InvalidArgument(OPTION, f"must end in {' or '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise InvalidArgument(OPTION, f"{path.parent} is not a directory")
    try:
        import matplotlib  # noqa: F401, PLC0415
    except ImportError:
        problem = "needs matplotlib, which is not installed; run: pip install 'equipoise[server,plots]'"
        raise InvalidArgument(OPTION, problem) from None


def write_chart(audit: Audit, path: Path) -> None:
    """Draws the chart into a file, of the kind that its suffix says. Raises `InvalidArgument` if it cannot."""
    try:
        drawn(audit).savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except OSError as error:
        raise InvalidArgument(OPTION, f"cannot be written: {error.strerror}") from None


def drawn(audit: Audit) -> Figure:
    """Draw a bar for each pair of neighbours, its claim as a line, and where a violation becomes detectable."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(7.5, 1.6 + 0.7 * len(audit.findings)), layout="constrained")
    axes = figure.subplots()
    for place, finding in enumerate(audit.findings):
        colour = "#b3261e" if finding.refuted else "#2f6f9f"
        certified = finding.certificate.epsilon
        axes.barh(place, certified, height=0.5, color=colour, label="" if place else "certified: at least")
        axes.annotate(f" {certified:.2f}", (certified, place), va="center", color=colour)
        edges = (place - 0.38, place + 0.38)
        axes.vlines(finding.claim.epsilon, *edges, color="black", label="" if place else "claimed: at most")
        if finding.detectable is not None:
            axes.vlines(finding.detectable, *edges, color="black", linestyles="dotted")
    axes.vlines([], 0, 0, color="black", linestyles="dotted", label="found from here on")
    axes.set_yticks(
        range(len(audit.findings)),
        [f"{number}: {SIDES[each.neighbours.side]}" for number, each in enumerate(audit.findings, start=1)],
    )
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("epsilon")
    axes.set_title(
        f"{audit.plan.mechanism}, unit {audit.instance.unit}: {audit.runs:,} runs, "
        f"{100 * (1 - audit.level):.8g} % confidence",
        fontsize="medium",
    )
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
