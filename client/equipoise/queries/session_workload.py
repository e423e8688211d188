"""What one analyst asked in a session: statements one by one, each with the slot in which it was answered.

A slot is a place in the one order of all statements of all analysts. Each statement is compiled alone: nothing is
known of the next one while it is answered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.accounting import Offer
from equipoise.queries.workload_compiler import CompiledStatement


@dataclass(frozen=True, eq=False)
class SessionWorkload:
    """One analyst's statements, and the slots in which they were answered: int64[statements], ascending.

    `offers`: of each statement the exact bytes, to which its noise is bound, and what it may cost of a grant. The
    bytes are without what it may cost; that is 0 in sessions that are no grants. None where statements have no
    bytes, as in simulations.
    """

    slots: NDArray[np.int64]
    statements: tuple[CompiledStatement, ...]
    offers: tuple[Offer, ...] = ()

    def at(self, place: int) -> tuple[CompiledStatement, bytes, int]:
        """A statement, its bytes, and what it may cost."""
        return self.statements[place], *(self.offers[place] if self.offers else (b"", 0))

    @property
    def query_count(self) -> int:
        """The cells of all statements together."""
        return sum(statement.query_count for statement in self.statements)
