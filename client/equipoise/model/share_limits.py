"""What a share allows a workload: checked by the server before it takes one, and again by whoever verifies."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from equipoise.errors import BudgetExhausted
from equipoise.queries.compiled_workload import CompiledWorkload


class Allowance(Protocol):
    """A share's numbers. `l1_sensitivity`: how much all counts together may move when one record is replaced."""

    @property
    def statements(self) -> int: ...
    @property
    def queries(self) -> int: ...
    @property
    def l1_sensitivity(self) -> int: ...
    @property
    def support(self) -> int: ...
    @property
    def ways(self) -> int: ...


def check_allowance(workload: CompiledWorkload, share: Allowance) -> None:
    """Raises `BudgetExhausted` for a workload beyond the share."""
    if workload.statement_count > share.statements:
        raise BudgetExhausted(
            f"the workload has {workload.statement_count} statements, your share allows {share.statements}"
        )
    if workload.query_count > share.queries:
        raise BudgetExhausted(f"the workload has {workload.query_count} queries, your share allows {share.queries}")
    if workload.l1_sensitivity > share.l1_sensitivity:
        raise BudgetExhausted(
            f"the workload has a sensitivity of {workload.l1_sensitivity}, your share allows "
            f"{share.l1_sensitivity}: 1 for each condition or sum, 2 for each marginal or sum by cells"
        )
    if share.ways and workload.ways > share.ways:
        sizes = map(len, workload.statement_tables())
        statement, size = next(each for each in enumerate(sizes) if each[1] > share.ways)
        raise BudgetExhausted(
            f"statements[{statement}] is about {size} attributes together, your share allows {share.ways}"
        )
    if share.support and workload.support > share.support:
        query = int(np.argmax(workload.supports()))
        statement = int(np.searchsorted(workload.statement_offsets, query, side="right")) - 1
        raise BudgetExhausted(
            f"statements[{statement}] has a support of {workload.support}, your share allows {share.support}: the "
            "records of the universe that one query covers or leaves out, whichever are fewer"
        )
