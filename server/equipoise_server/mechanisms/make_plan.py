"""Makes a plan from a mechanism's privacy events and predictions, and refuses costs that exceed a budget."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.accounting import PrivacyEvent, charge_of, events_to_json
from equipoise.model.rounds import MechanismPlan
from equipoise_server.mechanisms.checking import check_costs
from equipoise_server.mechanisms.expected_error import stated
from equipoise_server.mechanisms.interface import PublicParameters
from equipoise_server.mechanisms.parameters import Parameters


def make_plan(
    name: str,
    setting: PublicParameters,
    parameters: Parameters,
    data: Sequence[PrivacyEvent],
    analysts: Sequence[PrivacyEvent] = (),
    *,
    max_half_width: float,
    expected_error: float,
    seconds: float,
    memory_bytes: int,
    max_uncertified: int = 0,
) -> MechanismPlan:
    """Make a mechanism's plan from what it will do.

    Args:
        name: the mechanism.
        setting: the public parameters that were planned for.
        parameters: the mechanism's own parameters, sufficient to run it.
        data: the privacy events that a run charges to the data, at all caps, where one record is replaced.
        analysts: the privacy events for one protected unit of the analysts; none where answers share no randomness.
        max_half_width: the largest half-width of a certified answer, as a fraction of the records.
        expected_error: the mean error over all declared queries that is expected, as a fraction of the records.
        seconds: predicted, on one ordinary core.
        memory_bytes: predicted, at the peak.
        max_uncertified: how many answers may have no interval.

    Returns:
        The plan, without a cost of the analysts where the setting does not protect them.

    Raises:
        BudgetExhausted: a cost exceeds its budget.
        ValueError: a person has several records in the setting, for whom `persons` plans.
    """
    if setting.person_records != 1:
        raise ValueError("mechanisms are planned for one replaced record; plan with persons.planned_starts")
    analysts = analysts if setting.protects_analysts else ()
    data_cost, analyst_cost = charge_of(data), charge_of(analysts) if setting.protects_analysts else None
    check_costs(setting, data_cost, analyst_cost)
    return MechanismPlan(
        mechanism=name,
        parameters=parameters.to_json(),
        data_cost=data_cost,
        analyst_cost=analyst_cost,
        max_half_width=max_half_width,
        max_uncertified=max_uncertified,
        seconds=stated(seconds),
        memory_bytes=memory_bytes,
        expected_error=stated(expected_error),
        data_events=events_to_json(name, data),
        analyst_events=events_to_json(name, analysts),
    )
