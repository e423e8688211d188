"""Plans and opens rounds and sessions. Everything here depends on public facts only.

A round is charged when it is sealed. A session is charged in the transaction that opens it, because it answers from
then on.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.accounting import Cost
from equipoise.errors import InvalidArgument
from equipoise.model.accounts import AccountCharge
from equipoise.model.dangers import check_accepted
from equipoise.model.rounds import MechanismPlan, RoundState, Terms
from equipoise.model.terms_checks import check_terms
from equipoise.model.times import to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import SHARE, TERMS
from equipoise.records.sealed_seeds import fingerprint
from equipoise_server.mechanisms.interface import OnStep, unfollowed
from equipoise_server.mechanisms.planner import Comparison
from equipoise_server.mechanisms.prior.choice import without_measurement
from equipoise_server.rounds.account_room import check_accounts, open_accounts, planned_charges
from equipoise_server.rounds.datasets import Datasets
from equipoise_server.rounds.records import DatasetRecord, RoundRecord, check_active
from equipoise_server.rounds.state_machine import lifecycle_of
from equipoise_server.rounds.store.datasets import read_dataset
from equipoise_server.rounds.store.measurements import with_measurement
from equipoise_server.rounds.store.rounds import plan_to_json, read_round, recorded_terms, terms_to_json
from equipoise_server.rounds.store.step_records import round_opened
from equipoise_server.rounds.terms.checks import dangers
from equipoise_server.rounds.terms.defaults import compare_plans, with_defaults
from equipoise_server.rounds.transitions import settle
from equipoise_server.rounds.underway import PLANNING
from equipoise_server.storage.idempotency import Request, make_request
from equipoise_server.storage.operations import Operations
from equipoise_server.storage.tables.identity import identities
from equipoise_server.storage.tables.round import rounds, shares
from equipoise_server.storage.tables.session import sessions
from equipoise_server.storage.tables.transparency import sealed_seeds
from equipoise_server.transparency.keys import Purpose, in_force
from equipoise_server.transparency.seed_encryption import SeedSource, seal_seed
from equipoise_server.workers.process import load_program

ID_BYTES = 16


def open_request(terms: Terms, caller: str, request_id: str) -> Request:
    """Return the request whose content is all of the terms. Raises `InvalidArgument` for malformed terms.

    Args:
        terms: of the round, with defaults left open.
        caller: the operator, as requests name callers.
        request_id: makes the call safe to repeat.
    """
    check_terms(terms)
    content = {
        "dataset": terms.dataset,
        "terms": TERMS.encode(recorded_terms(terms)),
        "shares": [SHARE.encode(share) for share in terms.shares],
        "close_time": None if terms.close_time is None else to_microseconds(terms.close_time),
    }
    return make_request(caller, request_id, "open", canonical_json(content))


@dataclass(frozen=True)
class Opening:
    """The operations that plan and open rounds, with the dependencies that they need."""

    operations: Operations
    tables: Datasets
    seeds: SeedSource
    storage_key: bytes
    release_grid_seconds: int

    def plan(self, terms: Terms) -> MechanismPlan:
        """Return what the round would do and cost. Nothing is opened or charged. Raises what `compare` raises."""
        return self.compare(terms).plan

    def compare(self, terms: Terms, progress: OnStep = unfollowed) -> Comparison:
        """Return what the round would do and cost, and what that was chosen from. Nothing is opened or charged.

        Args:
            terms: of the round.
            progress: told how many of the mechanisms have a plan.

        Raises:
            InvalidArgument: the terms are malformed, name an unknown analyst, or allow no plan.
            NotFound: there is no such dataset.
            WrongState: the dataset is retired or deleted.
            BudgetExhausted: the mechanism finds no plan within the budgets of the terms.
            Unavailable: the clock is not trusted now.
        """
        return self._compared(terms, progress)[1]

    def _compared(self, terms: Terms, progress: OnStep) -> tuple[Terms, Comparison, DatasetRecord]:
        """Return the terms with options as the mechanism reads them, and the dataset, too. Raises as `compare`."""
        check_terms(terms)
        with self.operations.store.read() as connection:
            now = self.operations.time(connection, "")
            dataset = read_dataset(connection, terms.dataset)
            check_active(dataset)
            _check_registered(connection, terms)
            terms = with_measurement(connection, terms, dataset, now)
        if terms.close_time is not None and terms.close_time <= now:
            raise InvalidArgument("close_time", "must be in the future")
        comparison = compare_plans(
            with_defaults(terms, now),
            dataset,
            lambda name, done, total: progress(f"{PLANNING} {name}", done, total),
        )
        if not comparison.from_measurement:
            terms = replace(terms, options=without_measurement(terms.options))
        return terms, comparison, dataset

    def charges(self, terms: Terms, plan: MechanismPlan) -> tuple[AccountCharge, ...]:
        """Return the charges of a plan, and whether the accounts admit them now. Nothing is opened or reserved."""
        with self.operations.store.read() as connection:
            return planned_charges(connection, read_dataset(connection, terms.dataset).account, terms, plan)

    def open(self, terms: Terms, request_id: str, caller: str = "", progress: OnStep = unfollowed) -> RoundRecord:
        """Open a round: fix its terms, plan and seed. A session is charged at once.

        Args:
            terms: the terms; missing ones get their defaults.
            request_id: makes the call safe to repeat.
            caller: the operator's name.
            progress: told how many of the mechanisms have a plan.

        Returns:
            The round as it was opened.

        Raises:
            BudgetExhausted: an account has no room for the round; the message names the account.
            InvalidArgument: the budgets or the plan have a danger that the terms do not accept; the table of a
                session, which reads it, has changed or cannot be read.
            WrongState: the dataset got another version while the round was planned.
            EquipoiseError: as `plan` raises.
        """
        request = open_request(terms, f"operator/{caller}", request_id)
        if (known := self.operations.answered(request, _as_opened)) is not None:
            return known
        load_program()  # takes seconds; every round that is opened will need the worker program
        terms, comparison, planned = self._compared(terms, progress)
        plan = comparison.plan
        check_accepted(dangers(terms, plan, planned), terms.accepted)
        if lifecycle_of(terms).opening and plan.data_cost != Cost():
            self.tables.check_unchanged(planned)
        terms = replace(terms, release_grid_seconds=terms.release_grid_seconds or self.release_grid_seconds)

        def work(connection: Connection, now: datetime) -> str:
            # Check again inside the transaction, in which nothing else can be written.
            _check_registered(connection, terms)
            dataset = read_dataset(connection, terms.dataset)
            check_active(dataset, planned.version)
            open_accounts(connection, dataset.account, terms, now)
            check_accounts(connection, dataset.account, terms, plan)
            seed = self.seeds()
            round_id = self._insert(connection, with_defaults(terms, now), plan, seed, now)
            opened = read_round(connection, round_id)
            for settlement in lifecycle_of(terms).opening:
                settle(connection, opened, settlement, now)
            round_opened(connection, opened, fingerprint(seed), now)
            return round_id

        return self.operations.carry_out(request, work, _as_opened)

    def _insert(
        self, connection: Connection, terms: Terms, plan: MechanismPlan, drawn: bytes, now: datetime
    ) -> str:
        """Write the round with its shares and its sealed seed, and return the round's id.

        After a crash before the commit there is no round; its seed is lost, and the next attempt draws a new one.
        After the commit the seed's commitment is fixed, before the server has seen any workload.
        """
        dataset = read_dataset(connection, terms.dataset)
        # The id is random, so it says nothing about the number of rounds.
        round_id = os.urandom(ID_BYTES).hex()
        auditors = {key.id: key.public for key in in_force(connection, Purpose.AUDITOR)}
        seed = seal_seed(round_id, drawn, self.storage_key, auditors)
        connection.execute(
            rounds.insert().values(
                id=round_id,
                dataset=terms.dataset,
                dataset_version=dataset.version,
                state=RoundState.OPEN.value,
                terms=terms_to_json(terms),
                plan=plan_to_json(plan),
                records=dataset.records,
                universe_size=dataset.schema.universe_size,
                seed_commitment=seed.commitment,
                sealed_seed=seed.ciphertext,
                open_time=to_microseconds(now),
                abort_reason="",
                peak_memory_bytes=0,
                close_time=None if terms.close_time is None else to_microseconds(terms.close_time),
            )
        )
        rows = [
            {"round_id": round_id, "position": position, **SHARE.encode(share)}
            for position, share in enumerate(terms.shares)
        ]
        if rows:
            connection.execute(shares.insert(), rows)
        if terms.session is not None:
            connection.execute(sessions.insert().values(round_id=round_id, answered=0))
        if seed.for_auditors:
            sealed = seed.for_auditors.items()
            rows = [
                {"round_id": round_id, "key_id": key_id, "sealed": sealed_seed} for key_id, sealed_seed in sealed
            ]
            connection.execute(sealed_seeds.insert(), rows)
        return round_id


def _as_opened(connection: Connection, round_id: str) -> RoundRecord:
    """Return the round as it was when it had just been opened, which was the first answer to the request."""
    record = read_round(connection, round_id)
    return replace(record, state=RoundState.OPEN, release_time=None, abort_reason="")


def _check_registered(connection: Connection, terms: Terms) -> None:
    # Read all analysts: the terms can name more analysts than one query can.
    admitted = select(identities.c.name).where(identities.c.role == "analyst", identities.c.deleted.is_(None))
    known = set(connection.execute(admitted).scalars())
    for index, share in enumerate(terms.shares):
        if share.analyst not in known:
            raise InvalidArgument(f"shares[{index}].analyst", f"{share.analyst!r} is not a registered analyst")
