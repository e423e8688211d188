"""What one analyst asked in a session: statements one by one, each with the slot in which it was answered.

A slot is a place in the one order of all statements of all analysts. Each statement is compiled alone: nothing is
known of the next one while it is answered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equipoise.queries.workload_compiler import CompiledStatement


@dataclass(frozen=True, eq=False)
class SessionWorkload:
    """One analyst's statements, and the slots in which they were answered: int64[statements], ascending.

    `encoded`: the exact bytes of each statement, to which its noise is bound; none where statements have no bytes,
    as in simulations.
    """

    slots: NDArray[np.int64]
    statements: tuple[CompiledStatement, ...]
    encoded: tuple[bytes, ...] = ()

    def at(self, place: int) -> tuple[CompiledStatement, bytes]:
        """A statement, and its bytes."""
        return self.statements[place], self.encoded[place] if self.encoded else b""

    @property
    def query_count(self) -> int:
        """The cells of all statements together."""
        return sum(statement.query_count for statement in self.statements)
