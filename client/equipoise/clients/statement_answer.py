"""The answer to one statement of a session or a grant, with its receipt."""

from __future__ import annotations

from dataclasses import dataclass

from equipoise.errors import InvalidArgument
from equipoise.model.results import AnswerMethod
from equipoise.queries.statements import Statement
from equipoise.results import Answer, Results


@dataclass(frozen=True, eq=False)
class StatementAnswer:
    """The answer to one statement of a session: to each of its cells, if it is a marginal.

    `sequence` counts the analyst's statements from 1; `slot` is its place in the session's order of all statements.
    `results` holds a row for each cell, `receipt` the signed receipt of this answer and of all before it. `cost`:
    what it has cost of a grant, in units of 10^-12 of rho: 0 where earlier answers told it, and in other sessions.
    """

    sequence: int
    slot: int
    statement: Statement
    results: Results
    receipt: bytes
    cost: int = 0

    @property
    def value(self) -> float:
        """The answer, where the statement has one only. Raises `InvalidArgument` for a marginal."""
        return self._single.value

    @property
    def low(self) -> float | None:
        """The lower end of its interval, None where it has none. Raises `InvalidArgument` for a marginal."""
        return self._single.low

    @property
    def high(self) -> float | None:
        """The upper end of its interval, None where it has none. Raises `InvalidArgument` for a marginal."""
        return self._single.high

    @property
    def standard_error(self) -> float | None:
        """Its standard error, None where it has none. Raises `InvalidArgument` for a marginal."""
        return self._single.standard_error

    @property
    def method(self) -> AnswerMethod:
        """How the statement was answered, all its cells alike."""
        return AnswerMethod(int(self.results.methods[0]))

    @property
    def _single(self) -> Answer:
        if len(self.results) != 1:
            raise InvalidArgument("statement", "has several cells; read `results`")
        return next(iter(self.results))
