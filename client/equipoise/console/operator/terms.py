"""What the forms of rounds, sessions and grants have in common, as it was typed."""

from __future__ import annotations

from datetime import UTC, datetime

from equipoise.commands.terms_options import parse_options, parse_shares
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import SessionTerms, Terms

DANGERS = (
    (Danger.EPSILON, "an epsilon above 10"),
    (Danger.DELTA, "a delta of 1 in as many as are protected, or more"),
    (Danger.NOISE, "answers that err by less than one person's records"),
    (Danger.PROMISE, "no interval that is narrower than everything"),
)


def read_terms(
    asked: Asked,
    analyst_budget: Budget | None,
    options: dict[str, object] | None = None,
    session: SessionTerms | None = None,
) -> Terms:
    """Returns the terms that were typed. Raises `InvalidArgument` naming the field.

    Args:
        asked: the form.
        analyst_budget: of the analysts; None where they are not protected.
        options: of the mechanism, beside those that were typed.
        session: what makes it a session; None: it is a round.
    """
    return Terms(
        dataset=asked.needed("dataset"),
        shares=parse_shares(asked.text("shares").split()),
        data_budget=read_budget(asked, "data"),
        analyst_budget=analyst_budget,
        unit=asked.needed("unit"),
        beta=asked.number("beta", 0.05),
        mechanism=asked.needed("mechanism"),
        options=parse_options(asked.text("options").strip()) | (options or {}),
        close_time=read_time(asked, "close"),
        session=session,
        accepted=read_accepted(asked),
    )


def read_budget(asked: Asked, whose: str) -> Budget:
    """Returns the epsilon and the delta of two fields. Raises `InvalidArgument`.

    Args:
        asked: the form.
        whose: what the fields' names begin with.
    """
    return Budget(asked.number(f"{whose}_epsilon"), asked.number(f"{whose}_delta"))


def read_accepted(asked: Asked) -> tuple[Danger, ...]:
    """Returns the dangers that the operator has said to know and want. Raises `InvalidArgument`.

    Args:
        asked: the form, with the field `accept`.
    """
    try:
        return tuple(Danger(each) for each in asked.texts("accept"))
    except ValueError:
        raise InvalidArgument("accept", f"must be of {', '.join(Danger)}") from None


def read_time(asked: Asked, name: str) -> datetime | None:
    """Returns a time in UTC, as browsers write it; None where the field is empty. Raises `InvalidArgument`.

    Args:
        asked: the form.
        name: of the field.
    """
    text = asked.text(name).strip()
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M").replace(tzinfo=UTC) if text else None
    except ValueError:
        raise InvalidArgument(name, f"must be a time such as 2030-01-31T18:00, not {text!r}") from None


def active_datasets(desk: Desk) -> list[str]:
    """Returns the names of the tables on which something can be opened.

    Args:
        desk: the operator's.
    """
    return [each.dataset.name for each in desk.operator.datasets() if each.state.value == "active"]
