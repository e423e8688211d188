"""Rows of the store to records and back. Works in the transaction of the connection it is given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from equipoise.accounting import Cost
from equipoise.errors import DataLoss, InvalidArgument, NotFound
from equipoise.model.accounts import Budget
from equipoise.model.rounds import Ending, RoundState, SessionTerms, Share
from equipoise.model.times import from_microseconds
from equipoise.queries.schema import Schema
from equipoise_server.mechanisms.interface import Plan
from equipoise_server.rounds.records import DatasetRecord, RoundRecord, Terms
from equipoise_server.storage.tables import datasets, rounds, sessions, shares, submissions

FIRST_GRID_SECONDS = 60  # of rounds that were opened before a round had a grid of its own
NO_DATASET = "there is no such dataset"
NO_ROUND = "there is no such round"  # the same words whether it does not exist or is not the caller's
IS_SESSION = rounds.c.id.in_(select(sessions.c.round_id))


def canonical(value: object) -> str:
    """JSON with one spelling: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def terms_to_json(terms: Terms) -> str:
    """Everything of the terms but the shares, which have a table of their own, and the closing time.

    Of a round that is no session the same bytes as before there were any.
    """
    fields: dict[str, object] = {
        "unit": terms.unit,
        "data_budget": asdict(terms.data_budget),
        "analyst_budget": None if terms.analyst_budget is None else asdict(terms.analyst_budget),
        "beta": terms.beta,
        "mechanism": terms.mechanism,
        "options": dict(terms.options),
        "release_grid_seconds": terms.release_grid_seconds,
    }
    if terms.session is not None:
        fields["session"] = asdict(terms.session)
    return canonical(fields)


def unit_from_json(text: str) -> str:
    """The protected unit among the terms that `terms_to_json` wrote."""
    return str(json.loads(text)["unit"])


def session_from_json(text: str) -> SessionTerms | None:
    """What makes it a session among the terms that `terms_to_json` wrote; None for any other round."""
    return _session(json.loads(text))


def plan_to_json(plan: Plan) -> str:
    """A plan, whole; floats are written so that they read back the same."""
    return canonical(asdict(plan))


def plan_from_json(text: str) -> Plan:
    """The inverse of `plan_to_json`."""
    fields: dict[str, Any] = json.loads(text)
    costs = {name: Cost(**fields[name]) for name in ("data_cost", "analyst_cost") if fields[name] is not None}
    return Plan(**{**fields, **costs})


def read_dataset(connection: Connection, name: str) -> DatasetRecord:
    """One dataset. Raises `NotFound`."""
    row = connection.execute(select(datasets).where(datasets.c.name == name)).first()
    if row is None:
        raise NotFound(NO_DATASET)
    return dataset_record(row)


def dataset_record(row: Row[Any]) -> DatasetRecord:
    """A row of `datasets`."""
    schema = Schema.from_json(row.schema)
    return DatasetRecord(
        name=row.name,
        source=row.source,
        schema=schema,
        records=row.records,
        create_time=from_microseconds(row.create_time),
        retire_time=None if row.retire_time is None else from_microseconds(row.retire_time),
    )


def read_round(connection: Connection, round_id: str, *, locked: bool = False) -> RoundRecord:
    """One round; `locked` keeps it as it is until the transaction ends. Raises `NotFound`."""
    query = select(rounds).where(rounds.c.id == round_id)
    row = connection.execute(query.with_for_update() if locked else query).first()
    if row is None:
        raise NotFound(NO_ROUND)
    held = select(shares).where(shares.c.round_id == round_id).order_by(shares.c.position)
    return _round(row, tuple(map(_share, connection.execute(held))))


def read_audit_nonce(connection: Connection, round_id: str) -> bytes | None:
    """The auditor's part of a round's randomness; None where no auditor has given any."""
    query = select(rounds.c.audit_nonce).where(rounds.c.id == round_id)
    nonce: bytes | None = connection.execute(query).scalar_one()
    return nonce


def round_records(connection: Connection, query: Select[Any]) -> list[RoundRecord]:
    """The rounds that a query of `rounds` finds, in its order, with their shares.

    The shares are found by the same query, and not by a list of ids: that would be another statement for each
    number of rounds, which every connection would keep prepared.
    """
    rows = connection.execute(query).all()
    found = query.with_only_columns(rounds.c.id).subquery()
    held: dict[str, list[Share]] = {row.id: [] for row in rows}
    joined = select(shares).join(found, found.c.id == shares.c.round_id).order_by(shares.c.position)
    for row in connection.execute(joined):
        held[row.round_id].append(_share(row))
    return [_round(row, tuple(held[row.id])) for row in rows]


def read_share(connection: Connection, round_id: str, analyst: str) -> Share:
    """An analyst's share in a round. Raises `NotFound` in the words for a round that does not exist."""
    row = connection.execute(
        select(shares).where(shares.c.round_id == round_id, shares.c.analyst == analyst)
    ).first()
    if row is None:
        raise NotFound(NO_ROUND)
    return _share(row)


def _share(row: Row[Any]) -> Share:
    return Share(row.analyst, row.statements, row.queries, row.sensitivity, row.support)


def check_token(connection: Connection, page_token: str, analyst: str | None = None) -> None:
    """Raises `InvalidArgument` for a token that no page of this caller ended with."""
    if not page_token:
        return
    try:
        if analyst is None:
            read_round(connection, page_token)
        else:
            read_share(connection, page_token, analyst)
    except NotFound:
        raise InvalidArgument("page_token", "is not a page token issued by this server") from None


def newest_first(page_token: str, limit: int) -> Select[Any]:
    """The rounds opened before the round `page_token` (all, if empty). A token says nothing of others' rounds."""
    query = select(rounds).order_by(rounds.c.position.desc()).limit(limit)
    if not page_token:
        return query
    seen = select(rounds.c.position).where(rounds.c.id == page_token).scalar_subquery()
    return query.where(rounds.c.position < seen)


def read_workloads(connection: Connection, round_id: str) -> dict[str, bytes]:
    """The submitted workloads of a round by analyst, in the order of the shares."""
    query = (
        select(submissions.c.analyst, submissions.c.workload)
        .join(
            shares,
            (shares.c.round_id == submissions.c.round_id) & (shares.c.analyst == submissions.c.analyst),
        )
        .where(submissions.c.round_id == round_id)
        .order_by(shares.c.position)
    )
    return {row.analyst: row.workload for row in connection.execute(query)}


def _round(row: Row[Any], held: tuple[Share, ...]) -> RoundRecord:
    """A row of `rounds`. Raises `DataLoss` for one that nothing here has written."""
    try:
        return _read_round(row, held)
    except (KeyError, TypeError, ValueError):
        raise DataLoss(f"the round {row.id} is damaged") from None


def _read_round(row: Row[Any], held: tuple[Share, ...]) -> RoundRecord:
    terms: Mapping[str, Any] = json.loads(row.terms)
    return RoundRecord(
        id=row.id,
        terms=Terms(
            dataset=row.dataset,
            unit=terms["unit"],
            data_budget=Budget(**terms["data_budget"]),
            analyst_budget=None if terms["analyst_budget"] is None else Budget(**terms["analyst_budget"]),
            beta=terms["beta"],
            mechanism=terms["mechanism"],
            shares=held,
            options=terms["options"],
            close_time=None if row.close_time is None else from_microseconds(row.close_time),
            release_grid_seconds=terms.get("release_grid_seconds", FIRST_GRID_SECONDS),
            session=_session(terms),
        ),
        state=RoundState(row.state),
        plan=plan_from_json(row.plan),
        records=row.records,
        universe_size=row.universe_size,
        open_time=from_microseconds(row.open_time),
        release_time=None if row.release_time is None else from_microseconds(row.release_time),
        abort_reason=row.abort_reason,
        seed_commitment=row.seed_commitment,
    )


def _session(terms: Mapping[str, Any]) -> SessionTerms | None:
    told = terms.get("session")
    return None if told is None else SessionTerms(**{**told, "ending": Ending(told["ending"])})
