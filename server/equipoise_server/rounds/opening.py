"""Planning and opening rounds and sessions: everything here depends on public things only.

Rounds are charged when they are sealed; sessions, which answer from then on, in the transaction that opens them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, select

from equipoise.errors import InvalidArgument, WrongState
from equipoise.model.accounts import AccountCharge
from equipoise.model.rounds import MechanismPlan, RoundState, Terms
from equipoise.model.terms_checks import check_terms
from equipoise.model.times import to_microseconds
from equipoise.records.canonical import canonical_json
from equipoise.records.public_facts import SHARE, TERMS
from equipoise.records.sealed_seeds import fingerprint
from equipoise_server.rounds.account_room import check_accounts, open_accounts, planned_charges
from equipoise_server.rounds.records import RoundRecord
from equipoise_server.rounds.state_machine import lifecycle_of
from equipoise_server.rounds.store.rounds import (
    plan_to_json,
    read_dataset,
    read_round,
    recorded_terms,
    terms_to_json,
)
from equipoise_server.rounds.store.step_records import round_opened
from equipoise_server.rounds.terms.defaults import make_plan, with_defaults
from equipoise_server.rounds.transitions import settle
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
    """The request whose content is all of the terms. Raises `InvalidArgument` where they are malformed."""
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
    """What opening a round needs besides its terms."""

    operations: Operations
    seeds: SeedSource
    storage_key: bytes
    release_grid_seconds: int

    def plan(self, terms: Terms) -> MechanismPlan:
        """What the round would do and cost. Raises `InvalidArgument`, `NotFound`, `BudgetExhausted`."""
        check_terms(terms)
        with self.operations.store.read() as connection:
            dataset = read_dataset(connection, terms.dataset)
            if dataset.retire_time is not None:
                raise WrongState("the dataset is retired; it takes no new rounds")
            _check_registered(connection, terms)
        if terms.close_time is not None and terms.close_time <= self.operations.clock():
            raise InvalidArgument("close_time", "must be in the future")
        return make_plan(with_defaults(terms, self.operations.clock()), dataset)

    def charges(self, terms: Terms, plan: MechanismPlan) -> tuple[AccountCharge, ...]:
        """What a plan counts on its accounts, and whether they admit it now. Nothing is opened or reserved."""
        with self.operations.store.read() as connection:
            return planned_charges(connection, terms, plan)

    def open(self, terms: Terms, request_id: str, caller: str = "") -> RoundRecord:
        """Fix terms, plan and seed; charge what is charged at once. Raises as `plan` does.

        `BudgetExhausted` naming the account that it does not fit.
        """
        request = open_request(terms, f"operator/{caller}", request_id)
        if (known := self.operations.answered(request, _as_opened)) is not None:
            return known
        load_program()  # which takes seconds; whatever is opened will need it
        plan = self.plan(terms)
        terms = replace(terms, release_grid_seconds=terms.release_grid_seconds or self.release_grid_seconds)

        def work(connection: Connection, now: datetime) -> str:
            # Asked again, now that nothing else can be written.
            _check_registered(connection, terms)
            if read_dataset(connection, terms.dataset).retire_time is not None:
                raise WrongState("the dataset is retired; it takes no new rounds")
            open_accounts(connection, terms, now)
            check_accounts(connection, terms, plan)
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
        """A crash before the commit means: no round; its seed is lost, and a new one will be drawn.

        After it: the commitment is fixed before any workload can be seen. A round has charged nothing yet, a
        session all that it will.
        """
        dataset = read_dataset(connection, terms.dataset)
        # Random, so that an id says nothing about how many rounds there are.
        round_id = os.urandom(ID_BYTES).hex()
        auditors = {key.id: key.public for key in in_force(connection, Purpose.AUDITOR)}
        seed = seal_seed(round_id, drawn, self.storage_key, auditors)
        connection.execute(
            rounds.insert().values(
                id=round_id,
                dataset=terms.dataset,
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
    """The first answer: the round as it was when it had just been opened."""
    record = read_round(connection, round_id)
    return replace(record, state=RoundState.OPEN, release_time=None, abort_reason="")


def _check_registered(connection: Connection, terms: Terms) -> None:
    # All of them are read, as a query can name only so many, and the terms can name more.
    admitted = select(identities.c.name).where(identities.c.role == "analyst", identities.c.deleted.is_(None))
    known = set(connection.execute(admitted).scalars())
    for index, share in enumerate(terms.shares):
        if share.analyst not in known:
            raise InvalidArgument(f"shares[{index}].analyst", f"{share.analyst!r} is not a registered analyst")
