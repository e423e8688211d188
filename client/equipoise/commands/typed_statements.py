"""Statements that are typed or piped in, one a line."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from equipoise.commands.printing import err
from equipoise.errors import EquipoiseError, InvalidArgument
from equipoise.queries.grant_price import GrantPrice
from equipoise.queries.priced_file import PricedStatements, priced_statement_from_json
from equipoise.queries.statements import Statement
from equipoise.queries.statements_file import statement_from_json
from equipoise.wire.printable import printable


def read_typed() -> PricedStatements:
    """Read all statements that are typed or piped in, each with the price that it says.

    Raises:
        InvalidArgument: there are none, or one is malformed.
    """
    read = [priced_statement_from_json(line) for line in sys.stdin if line.strip()]
    if not read:
        raise InvalidArgument("statements", "are missing: type or pipe in one a line, or name a file")
    prices = tuple(price for _, price in read)
    return PricedStatements(tuple(each for each, _ in read), prices if any(prices) else (), None)


class Typed:
    """The statements that somebody types, who can type something else than what is refused; or pipes in.

    `priced`: whether they are of a grant, and may say their prices. `ended`: whether no more will come.
    """

    def __init__(self, priced: bool) -> None:
        self.ended = False
        self._priced = priced
        self._price: GrantPrice | None = None  # of the last statement
        self._waits = False  # a statement for its answer
        self._prompt = "> " if sys.stdin.isatty() else ""

    def prices(self) -> Iterator[GrantPrice | None]:
        """Yield the price of the last statement, again and again; None where it says none."""
        while True:
            yield self._price

    def __iter__(self) -> Iterator[Statement]:
        while not self.ended:
            self._waits = False
            try:
                line = input(self._prompt).strip()
                if line:
                    statement, self._price = self._read(line)
                    self._waits = True
                    yield statement
            except EOFError:
                self.ended = True
            except InvalidArgument as error:
                self._waits = True
                self.refused(error)

    def _read(self, line: str) -> tuple[Statement, GrantPrice | None]:
        return priced_statement_from_json(line) if self._priced else (statement_from_json(line), None)

    def refused(self, error: EquipoiseError) -> None:
        """Print why the last statement was refused if somebody can type another one; raise the refusal if not.

        Args:
            error: the refusal.
        """
        if not (self._prompt and self._waits):
            raise error
        err.print(printable(error.message), style="red", markup=False, highlight=False, soft_wrap=True)
