"""The report of an empirical audit: for people, or as one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich import box
from rich.console import Console
from rich.table import Table

from equipoise_lab.audit.empirical import FOUND, Audit, Finding

SIDES = {"data": "people in the table", "analysts": "analysts"}
NO_PROOF = (
    "That little is certified is no proof of privacy: these are few inputs, few runs, and one way of looking. What "
    "is charged rests on the theorems and on the exact enumerations; an audit can only find them wrong."
)


def as_json(audit: Audit) -> dict[str, object]:
    """Return the object that `--json` prints. What cannot be detected at all is null."""
    instance = audit.instance
    return {
        "mechanism": audit.plan.mechanism,
        "parameters": json.loads(audit.plan.parameters),
        "instance": {
            "universe": list(instance.sizes),
            "records": instance.records,
            "analysts": instance.analysts,
            "statements": instance.statements,
            "unit": instance.unit,
            "data_budget": asdict(instance.data_budget),
            "analyst_budget": asdict(instance.analyst_budget),
            "beta": instance.beta,
        },
        "runs": audit.runs,
        "level": audit.level,
        "confidence": 1 - audit.level,
        "power": FOUND,
        "findings": [
            {
                "side": finding.neighbours.side,
                "neighbours": finding.neighbours.words,
                "claimed": asdict(finding.claim),
                "certified_epsilon": finding.certificate.epsilon,
                "hits": finding.certificate.hits,
                "other_hits": finding.certificate.other_hits,
                "detectable_epsilon": finding.detectable,
                "largest_certifiable_epsilon": finding.largest,
                "refuted": finding.refuted,
            }
            for finding in audit.findings
        ],
        "refuted": audit.refuted,
    }


def print_audit(console: Console, audit: Audit) -> None:
    """A row for each pair of neighbours, and in words how far it can be relied on."""
    shown = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    shown.add_column("", justify="right")
    shown.add_column("protected", no_wrap=True)
    for column in ("at delta", "claimed epsilon", "certified above", "found from"):
        shown.add_column(column, justify="right", no_wrap=True)
    for number, finding in enumerate(audit.findings, start=1):
        shown.add_row(str(number), SIDES[finding.neighbours.side], *_cells(finding))
    console.print(shown)
    for line in lines(audit):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _cells(finding: Finding) -> tuple[str, str, str, str]:
    certified = f"{finding.certificate.epsilon:.3f}{' REFUTED' if finding.refuted else ''}"
    detectable = "none" if finding.detectable is None else f"{finding.detectable:.3f}"
    return f"{finding.claim.delta:.3g}", f"{finding.claim.epsilon:.3f}", certified, detectable


def lines(audit: Audit) -> list[str]:
    """Return what was compared, with which confidence, what would have been found, and what follows."""
    printed = [
        f"{number}: {finding.neighbours.words}; the event was hit in {finding.certificate.hits:,} and "
        f"{finding.certificate.other_hits:,} of {audit.runs:,} runs"
        for number, finding in enumerate(audit.findings, start=1)
    ]
    printed.append(
        f"Confidence: every bound holds with {100 * (1 - audit.level):.8g} % confidence. If the mechanism keeps "
        f"what it claims, an audit like this one refutes it at most once in {1 / audit.level:,.0f} times."
    )
    printed.append(
        f"Power: with {audit.runs:,} runs of each input to test, a true epsilon of at least what stands under "
        f"'found from' is found with a chance of {100 * FOUND:g} %, if these inputs show it and "
        "the event is the best."
    )
    if any(finding.detectable is None for finding in audit.findings):
        most = max(finding.largest for finding in audit.findings if finding.detectable is None)
        printed.append(
            f"'none': so few runs certify at most {most:.3f}, so no true epsilon could refute that claim; ask for "
            "more --runs, or audit a smaller claim."
        )
    if audit.refuted:
        printed.append("REFUTED: the mechanism, as it runs here, does not keep what it claims.")
    else:
        printed.append(f"Not refuted. {NO_PROOF}")
    return printed
