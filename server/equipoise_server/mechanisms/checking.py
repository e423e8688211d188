"""Checks of all mechanisms: settings out of range, costs beyond budgets, and inputs that were not planned for."""

from __future__ import annotations

import math
from collections.abc import Mapping

from equipoise.accounting import DELTA_UNIT, Cost
from equipoise.errors import BudgetExhausted, InvalidArgument
from equipoise.model.accounts import Budget
from equipoise.model.persons import MAX_PERSON_RECORDS
from equipoise.model.terms_checks import check_shares, check_unit
from equipoise.queries.box_terms import EXACT
from equipoise.queries.universe_size import MAX_UNIVERSE, size_in_words
from equipoise.queries.workload_compiler import CompiledWorkload
from equipoise_server.conversion import epsilon_for
from equipoise_server.datasets.counts import Counts
from equipoise_server.mechanisms.budget_rounding import usable_delta
from equipoise_server.mechanisms.interface import PublicParameters

MIN_BETA = 1e-12
ANY_WIDTH = (
    "take projection, pooled, gaussian, laplace, or equilibrium or multiplicative_weights with a prior, "
    "or a standing measurement, instead; in a session online or online_private with a prior"
)
# Mechanisms of rounds whose guarantees need no more of a query than that its count is a whole number that moves by
# at most 1, and which learn from sums by weight: they answer sums, too.
ANSWERING_SUMS = frozenset({"laplace", "gaussian", "projection", "multiplicative_weights", "pooled", "standing"})
SUMS_INSTEAD = (
    "ask for marginals over the attribute, or in a grant, in a session of online, online_private or "
    "low_sensitivity, or in a round of gaussian, laplace, projection, pooled, multiplicative_weights or standing"
)


def check_setting(setting: PublicParameters) -> None:
    """Refuse settings that no mechanism can serve. Each mechanism checks its own options.

    Raises:
        InvalidArgument: a field is out of range; the message names the field.
        BudgetExhausted: a budget's delta is below the cost of truncating any sampler.
    """
    check_shares(setting.shares)
    check_table_setting(setting)
    for index, share in enumerate(setting.shares):
        if share.support and setting.universe_size > EXACT:
            problem = "must not be declared: in a universe of more than 2^53 records nothing depends on it"
            raise InvalidArgument(f"shares[{index}].support", problem)
        if not 0 <= share.support <= setting.universe_size:
            problem = f"must lie between 0 (not declared) and the universe's {setting.universe_size:,} records"
            raise InvalidArgument(f"shares[{index}].support", problem)


def check_table_setting(setting: PublicParameters) -> None:
    """Refuse settings that nothing can be measured in, whoever has a share. Raises as `check_setting` does."""
    check_unit(setting.unit)
    # Every comparison is written so that NaN fails it.
    _check_budget("data_budget", setting.data_budget)
    if setting.analyst_budget.epsilon != math.inf:
        _check_budget("analyst_budget", setting.analyst_budget)
    if not MIN_BETA <= setting.beta < 1:
        raise InvalidArgument("beta", f"must lie between {MIN_BETA} and 1")
    if not 1 <= setting.records < 2**40:
        raise InvalidArgument("records", f"must lie between 1 and {2**40 - 1}")
    if not 1 <= setting.person_records <= MAX_PERSON_RECORDS or setting.records % setting.person_records:
        problem = f"must lie between 1 and {MAX_PERSON_RECORDS:,}, and divide the records evenly"
        raise InvalidArgument("person_records", problem)
    if not setting.universe_size >= 1:
        raise InvalidArgument("universe_size", "must be at least 1")
    if setting.attributes and math.prod(setting.attributes) != setting.universe_size:
        raise InvalidArgument("attributes", "must multiply to the size of the universe")
    if setting.ordered != tuple(axis for axis in range(len(setting.attributes)) if axis in setting.ordered):
        raise InvalidArgument("ordered", "must be places of attributes, ascending")


def check_enumerable(name: str, setting: PublicParameters) -> None:
    """Raise `InvalidArgument`, saying what to take instead, where a mechanism needs a list of the universe.

    Args:
        name: of the mechanism, or of what else needs the list.
        setting: public facts.
    """
    if not setting.enumerable:
        needed = f"{name} needs a list of all of them, and at most {MAX_UNIVERSE:,} fit"
        problem = f"is {size_in_words(setting.universe_size)} possible records; {needed}; {ANY_WIDTH}"
        raise InvalidArgument("universe_size", problem)


def check_costs(setting: PublicParameters, data_cost: Cost, analyst_cost: Cost | None) -> None:
    """Check that both costs keep to their budgets.

    Args:
        setting: with both budgets.
        data_cost: of the people in the table.
        analyst_cost: of one analyst; None: analysts are not protected.

    Raises:
        BudgetExhausted: a cost exceeds its budget, which is named.
    """
    for field, cost, budget in (
        ("data_budget", data_cost, setting.data_budget),
        ("analyst_budget", analyst_cost, setting.analyst_budget),
    ):
        if cost is not None and epsilon_for(cost, budget.delta) > budget.epsilon:
            raise BudgetExhausted(
                f"{field}: the round would cost more, with the truncation of its samplers; raise epsilon or delta"
            )


def check_no_options(name: str, setting: PublicParameters) -> None:
    """Refuse every option, for mechanisms that have none. Raises `InvalidArgument`."""
    for option in setting.options:
        raise InvalidArgument(f"options.{option}", f"unknown; {name} has no options")


def check_no_sums(name: str, workload: CompiledWorkload) -> None:
    """Raise `InvalidArgument`, naming the first sum, for mechanisms that are proven for queries of 0 and 1 alone.

    Args:
        name: of the mechanism.
        workload: of an analyst.
    """
    if workload.weighted.any():
        problem = f"is a sum, which {name} does not answer: it is proven for counts alone; {SUMS_INSTEAD}"
        raise InvalidArgument(f"statements[{min(workload.weighted_statements)}]", problem)


def check_table(setting: PublicParameters, data: Counts) -> None:
    """Raise `ValueError` where a table is not the one that was planned for."""
    if data.universe_size != setting.universe_size or data.records != setting.records:
        raise ValueError("the table is not of the planned universe and number of records")


def planned_workloads(
    setting: PublicParameters, data: Counts, workloads: Mapping[str, CompiledWorkload]
) -> dict[str, CompiledWorkload]:
    """Check that data and workloads are those that were planned for. Every guarantee depends on this check.

    Args:
        setting: of the plan.
        data: the table.
        workloads: of the analysts who submitted one.

    Returns:
        The workload of every analyst who submitted one, in the order of the shares.

    Raises:
        ValueError: the table has another size, or a workload is larger than its analyst's share.
    """
    check_table(setting, data)
    shares = {share.analyst: share for share in setting.shares}
    for analyst, workload in workloads.items():
        share = shares.get(analyst)
        fits = (
            share is not None
            and workload.statement_count <= share.statements
            and workload.query_count <= share.queries
            and workload.l1_sensitivity <= share.l1_sensitivity
            and (share.support == 0 or workload.support <= share.support)
            and (share.ways == 0 or workload.ways <= share.ways)
        )
        if not fits:
            raise ValueError("a workload is larger than its analyst's share")
    return {analyst: workloads[analyst] for analyst in shares if analyst in workloads}


def _check_budget(field: str, budget: Budget) -> None:
    if not (0 < budget.epsilon <= 50 and 0 < budget.delta < 1):
        raise InvalidArgument(field, "must have 0 < epsilon <= 50 and 0 < delta < 1")
    if usable_delta(budget) <= 0:
        raise BudgetExhausted(
            f"{field}: must have a larger delta: the truncation of the samplers alone costs {4 / DELTA_UNIT}"
        )
