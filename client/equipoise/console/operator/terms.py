"""The fields that the forms of rounds, sessions, grants and schedules share, read as they were typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Self, TypeVar

from starlette.responses import Response

from equipoise.commands.shares import parse_shares
from equipoise.commands.terms_options import parse_options
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.errors import AlreadyExists, BudgetExhausted, EquipoiseError, InvalidArgument, NotFound, WrongState
from equipoise.model.accounts import Budget, Danger
from equipoise.model.rounds import SessionTerms, Terms

Kind = TypeVar("Kind", bound=StrEnum)
DANGERS = (
    (Danger.EPSILON, "an epsilon above 10"),
    (Danger.DELTA, "a delta of 1 in as many as are protected, or more"),
    (Danger.NOISE, "answers that err by less than one person's records"),
    (Danger.PROMISE, "no interval that is narrower than everything"),
)


REFUSALS = (InvalidArgument, BudgetExhausted, WrongState, NotFound, AlreadyExists)


@dataclass(frozen=True)
class Typed:
    """The contents of a form.

    `fields`: as they were typed, by name. `accepted`: the dangers that were named. `refusal`: why it was not done.
    """

    fields: Mapping[str, str]
    accepted: Sequence[str] = ()
    refusal: EquipoiseError | None = None

    @classmethod
    def blank(cls, fields: Mapping[str, str], asked: Asked) -> Self:
        """Returns an empty form. A link to it may fill fields.

        Args:
            fields: what stands in each field of it.
            asked: the request.
        """
        return cls({name: asked.query.get(name, value) for name, value in fields.items()})

    @classmethod
    def of(cls, fields: Mapping[str, str], asked: Asked, refusal: EquipoiseError | None = None) -> Self:
        """Returns what was sent.

        Args:
            fields: the names of the fields.
            asked: the request.
            refusal: why it was not done; None: it was not refused.
        """
        return cls({name: asked.text(name).strip() for name in fields}, asked.texts("accept"), refusal)


def form_page(desk: Desk, template: str, section: str, typed: Typed, **values: object) -> Response:
    """Returns the page of a form about a table.

    Args:
        desk: the operator's.
        template: its file's name.
        section: which link at the top is the page's own.
        typed: what stands in the form.
        values: what else it shows.
    """
    return desk.show(
        template,
        200 if typed.refusal is None else 400,
        section=section,
        typed=typed.fields,
        accepted=typed.accepted,
        refusal=typed.refusal,
        datasets=active_datasets(desk),
        dangers=DANGERS,
        **values,
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
        shares=parse_shares(asked.text("shares").split(), "shares"),
        data_budget=read_budget(asked, "data"),
        analyst_budget=analyst_budget,
        unit=asked.needed("unit"),
        beta=asked.number("beta", 0.05),
        mechanism=asked.needed("mechanism"),
        options=parse_options(asked.text("options").strip(), "options") | (options or {}),
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


def read_choice(asked: Asked, name: str, kind: type[Kind]) -> Kind:
    """Returns what was chosen of a list. Raises `InvalidArgument`.

    Args:
        asked: the form.
        name: of the field.
        kind: all that there is.
    """
    try:
        return kind(asked.text(name))
    except ValueError:
        raise InvalidArgument(name, f"must be of {', '.join(kind)}") from None


def active_datasets(desk: Desk) -> list[str]:
    """Returns the names of the tables on which something can be opened.

    Args:
        desk: the operator's.
    """
    return [each.dataset.name for each in desk.operator.datasets() if each.state.value == "active"]
