"""A grant given: for a request of its analyst, and renewed by the calendar, where the operator wants that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from equipoise.clients.operator import Operator
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import Budget, Danger
from equipoise.model.calendar import Period
from equipoise.model.dangers import Dangers, dangers_of_round
from equipoise.model.grants import grant_terms
from equipoise.model.own_world import MeasuredTable, RequestState
from equipoise.model.rounds import Plan, RoundDetail
from equipoise.queries.grant_outlook import Outlook, combined_error, outlooks
from equipoise.queries.strict_json import parse_json
from equipoise.records.codec import codec_of
from equipoise.residuals.noise import ResidualNoise
from equipoise.residuals.variances import cell_variances

NOISE = codec_of(ResidualNoise)


@dataclass(frozen=True)
class Renewal:
    """Another grant like the first each time one ends.

    `period`: how long each lasts. `yearly_budget`: the most that all given in one calendar year (UTC) may cost.
    """

    period: Period
    yearly_budget: Budget


@dataclass(frozen=True)
class GrantPlan:
    """The cost of a grant that is not given yet, and the errors that its answers would have.

    Attributes:
        total: what all statements may cost together, in units of 10^-12 of rho.
        refusal: why the data account has no room for it now; empty where it has.
        records: the public number of records.
        person_records: how many of them each person has.
        shared: what statements would get that share it evenly.
        dangers: of the budget and the plan, each with what is wrong; a grant is refused unless all are accepted.
        measured: the largest tables of the standing measurement that answers would be combined with, which cost
            nothing as precisely as it tells them; none without one.
        improved: of each of these tables the mean standard error of a cell, in records, where it is paid for, too:
            with each part of the grant in `shared`. Other tables that are paid for, and measured, tell more.
    """

    total: int
    refusal: str
    records: int
    person_records: int
    shared: tuple[Outlook, ...]
    dangers: Dangers
    measured: tuple[MeasuredTable, ...] = ()
    improved: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A grant as an operator gives it.

    Attributes:
        dataset: the dataset's name.
        analyst: the analyst's name.
        budget: what all statements may cost the people in the table together.
        until: when it ends by itself, aware; None: an operator ends it, or `renewal` says when.
        beta: the probability that any truth lies outside its interval.
        accepted: the dangers of the budget that the operator knows and wants.
        request: which of the analyst's requests it grants; None: it was not asked for.
        renewal: what follows it; None: nothing.
        measurement: the round of the standing measurement that answers are combined with; None: of the newest one,
            if there is one. Grants that are renewed take the newest one each.
    """

    dataset: str
    analyst: str
    budget: Budget
    until: datetime | None = None
    beta: float = 0.05
    accepted: tuple[Danger, ...] = ()
    request: int | None = None
    renewal: Renewal | None = None
    measurement: str | None = None

    def plan(self, operator: Operator) -> GrantPlan:
        """Returns what the grant would cost and give. Nothing is given, nothing is reserved.

        Args:
            operator: the client.

        Raises:
            InvalidArgument: a field is not what it must be, or names an unknown analyst.
            NotFound: there is no such dataset.
            BudgetExhausted: the budget allows no statement at all.
        """
        terms = grant_terms(
            self.dataset, self.analyst, self.budget, self.until, self.beta, self.accepted, self.measurement
        )
        planned = operator.plan(terms)
        plan, records, persons = planned.plan, planned.records, planned.persons.records
        dangers = dangers_of_round(
            terms.data_budget, terms.analyst_budget, terms.unit, terms.shares, plan, records, persons
        )
        shared = outlooks(plan.data_cost.rho, persons, self.beta)
        measured = self._measured(operator, plan)
        improved = tuple(
            tuple(combined_error(table.standard_error, each.marginal_error) for each in shared)
            for table in measured
        )
        return GrantPlan(plan.data_cost.rho, plan.refusal, records, persons, shared, dangers, measured, improved)

    def give(self, operator: Operator, request_id: str | None = None) -> RoundDetail:
        """Gives the grant, tells the analyst whose request it is, and has the server give those that follow.

        Args:
            operator: the client.
            request_id: a call that is repeated with the same id is done once. The repetition is refused where a
                request was granted. None: a fresh id.

        Raises:
            InvalidArgument: a field is not what it must be, or the request does not wait, or is of another dataset.
            NotFound: there is no such dataset.
            AlreadyExists: the request_id stands for another grant.
            BudgetExhausted: the data account or the yearly budget has too little left.
            WrongState: as many grants are open as the server has room for.
        """
        if self.request is not None:
            self._check_waiting(operator, self.request)
        if self.renewal is None:
            given = operator.give_grant(
                self.dataset,
                self.analyst,
                self.budget,
                until=self.until,
                beta=self.beta,
                accepted=self.accepted,
                measurement=self.measurement,
                request_id=request_id,
            )
        else:
            given = self._renewing(operator, self.renewal, request_id)
        if self.request is not None:
            operator.decide_grant_request(self.analyst, self.request, grant_id=given.round.id)
        return given

    def _renewing(self, operator: Operator, renewal: Renewal, request_id: str | None) -> RoundDetail:
        """Have the server give the first of the grants that follow one another. It counts in the yearly budget."""
        if self.until is not None:
            raise InvalidArgument("until", "must not be given with a renewal, which says when each ends")
        if self.measurement is not None:
            raise InvalidArgument("measurement", "must not be given with a renewal: each takes the newest one")
        terms = grant_terms(self.dataset, self.analyst, self.budget, None, self.beta, self.accepted)
        begun = operator.schedule(terms, renewal.period, None, renewal.yearly_budget, request_id=request_id)
        return operator.round(begun.round_ids[-1])

    def _measured(self, operator: Operator, plan: Plan) -> tuple[MeasuredTable, ...]:
        """Return the largest tables of the measurement that a grant's plan names; none where it names none."""
        named = parse_json(plan.parameters, "plan")["measurement"]
        if named is None:
            return ()
        measuring = operator.round(named["round"])
        noise = NOISE.decode(parse_json(measuring.plan.parameters, "plan")["noise"], "plan.noise")
        schema = operator.dataset_history(self.dataset).standing.dataset.schema
        names = [each.name for each in schema.attributes]
        return tuple(
            MeasuredTable(tuple(names[axis] for axis in axes), math.sqrt(float(cell_variances(noise, axes).mean())))
            for axes in noise.largest
        )

    def _check_waiting(self, operator: Operator, number: int) -> None:
        """Raise before a grant is given for a request that it cannot answer."""
        own = [each for each in operator.grant_requests() if each.analyst == self.analyst]
        asked = next((each for each in own if each.number == number), None)
        if asked is None or asked.state is not RequestState.WAITING:
            raise InvalidArgument("request", f"{number} of {self.analyst} does not wait")
        if asked.dataset != self.dataset:
            raise InvalidArgument(
                "request", f"{number} of {self.analyst} is another: {asked.dataset!r} was asked for"
            )
