"""One call of `ask`: its statements, what each may cost, and the questions that they were translated from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from equipoise.errors import InvalidArgument
from equipoise.model.datasets import Dataset
from equipoise.queries.grant_price import AskedTable, GrantPrice, one_of, paid, shared_units
from equipoise.queries.statements import Statement
from equipoise.questions.questions import Questions
from equipoise.records.record import questions_commitment
from equipoise.wire.statements import statement_to_bytes


def free(_: Statement) -> int:
    """Return what a statement may cost where nothing is paid."""
    return 0


def costs_of(
    dataset: Dataset,
    price: GrantPrice | None,
    weights: Sequence[float] | None,
    prices: Iterable[GrantPrice | None] = (),
) -> Callable[[Statement], int]:
    """Returns what each statement of a grant may cost; to be called once for each, in their order.

    Args:
        dataset: the grant's.
        price: of each statement; of all together where there are weights. None: each of `prices` is one.
        weights: by which the statements share it; None: they do not.
        prices: of single statements, one for each; None among them: `price`. Empty: there are none.

    Raises:
        InvalidArgument: a weight is wrong, or they share what is no rho, or there are prices beside them.
    """
    table = AskedTable(dataset.schema, dataset.records, dataset.persons.records)
    if weights is not None and prices:
        raise InvalidArgument("weights", "must not be given where single statements have prices")
    if prices:
        return partial(_next_price, iter(prices), price, table)
    if weights is None:
        return partial(paid, one_of(price), table)
    units = iter(shared_units(one_of(price).rho, weights))

    def next_one(_: Statement) -> int:
        for each in units:
            return each
        raise InvalidArgument("weights", "must be as many as there are statements")

    return next_one


def _next_price(
    prices: Iterator[GrantPrice | None], price: GrantPrice | None, table: AskedTable, statement: Statement
) -> int:
    for each in prices:
        return one_of(each or price).units(statement, table)
    raise InvalidArgument("prices", "must be as many as there are statements")


@dataclass(frozen=True)
class Asking:
    """One call of `ask` in a session.

    `window`: how many statements may be on their way at once. `costs`: what each may cost of a grant, in units of
    10^-12 of rho; 0 in any other session. `questions`: those that all statements were translated from; None where
    the statements were given.
    """

    statements: Iterable[Statement]
    window: int = 1
    costs: Callable[[Statement], int] = free
    questions: Questions | None = None
    _commitments: dict[bytes, bytes] = field(default_factory=dict, init=False, repr=False)

    def commitment(self, salt: bytes) -> bytes:
        """Returns what commits to what was understood of the questions; empty where there are none.

        Args:
            salt: the analyst's in the session.
        """
        if self.questions is None:
            return b""
        if salt not in self._commitments:
            self._commitments[salt] = questions_commitment(salt, self.questions.as_comments.encode())
        return self._commitments[salt]

    def encoded(self, statement: Statement, salt: bytes, number: int) -> bytes:
        """Returns a statement's bytes, the same each time, as the session's salt is: a program may start again.

        Args:
            statement: what is asked.
            salt: the analyst's in the session.
            number: the statement's place, from 0, for errors.

        Raises:
            InvalidArgument: it is malformed; `field` names it.
        """
        try:
            return statement_to_bytes(statement, self.costs(statement), self.commitment(salt))
        except InvalidArgument as error:
            raise renamed(error, number) from None


def check_least(name: str, number: int, least: int) -> None:
    """Raises `InvalidArgument` for the argument `name` where its `number` is below `least`."""
    if number < least:
        raise InvalidArgument(name, f"must be at least {least}, not {number}")


def renamed(error: InvalidArgument, number: int) -> InvalidArgument:
    """Returns the error about one statement of many, of which this is the place; what is refused is `statement`."""
    name = "statement"
    if error.field != name and not error.field.startswith(f"{name}."):
        return error
    return InvalidArgument(f"{name}s[{number}]{error.field.removeprefix(name)}", error.problem)
