"""What operators type to accept dangers of budgets and plans, and what they and analysts are told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from equipoise.model.accounts import Danger
from equipoise.model.dangers import Dangers

Accept = Annotated[
    list[Danger] | None,
    typer.Option(
        help="Accept a danger of the budgets or of the plan; once for each. It goes on record, and analysts are "
        "shown it. epsilon: an epsilon above 10. delta: a delta of at least 1 in the number of those protected. "
        "noise: errors of less than one person's records. promise: a plan that promises nothing.",
        show_default=False,
    ),
]


def warnings(dangers: Dangers, accepted: Iterable[Danger]) -> Iterator[tuple[str, str]]:
    """Yield a line for each danger: the title, and what is wrong and whether it is accepted."""
    named = frozenset(accepted)
    for danger, said in dangers.items():
        yield f"danger: {danger}", f"{said}; {'accepted' if danger in named else f'needs --accept {danger}'}"


def in_short(accepted: Iterable[Danger]) -> str | None:
    """Return the dangers that were accepted, as one text; None where there are none."""
    return ", ".join(accepted) or None
