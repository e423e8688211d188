"""Lists the registry's identities, with the times until which they are certified."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from equipoise.errors import DataLoss, InvalidArgument
from equipoise.model.identities import Identity, Role
from equipoise.model.times import from_microseconds
from equipoise.profile.certificates import read_certificate
from equipoise_server.identity.credential import Credential, credential_of
from equipoise_server.identity.names import check_name
from equipoise_server.storage.tables.identity import certificates, identities

DEFAULT_PAGE = 100
MAX_PAGE = 1000


def page_of_identities(
    connection: Connection, roles: Collection[Role], page_size: int, page_token: str
) -> tuple[list[Identity], str]:
    """Return a page of `identity.registry.Registry.list`, and the token of the next.

    Args:
        roles: of the identities that are wanted.
        page_size: how many at most; 0: the usual number.
        page_token: what the page before ended with; empty: the first page.

    Raises:
        InvalidArgument: the size is too large or negative, or the token is no name.
    """
    if page_size > MAX_PAGE or page_size < 0:
        raise InvalidArgument("page_size", f"must be at most {MAX_PAGE:,}")
    size = page_size or DEFAULT_PAGE
    # The token is the last name shown: pages stay right when names are added in between.
    if page_token:
        check_name(page_token, "page_token")
    query = (
        select(identities)
        .where(
            identities.c.role.in_([role.value for role in roles]),
            identities.c.name > page_token,
            identities.c.deleted.is_(None),
        )
        .order_by(identities.c.name)
        .limit(size + 1)
    )
    rows = connection.execute(query).all()
    until = _certified_until(connection, query.with_only_columns(identities.c.name))
    page = [Identity(row.name, Role(row.role), from_microseconds(row.created), until.get(row.name)) for row in rows]
    shown = page[:size]
    return shown, shown[-1].name if len(page) > size else ""


def _certified_until(connection: Connection, names: Select[Any]) -> dict[str, datetime]:
    selected = names.subquery()
    query = (
        select(certificates.c.name, func.max(certificates.c.expires))
        .join(selected, selected.c.name == certificates.c.name)
        .where(certificates.c.revoked.is_(None))
        .group_by(certificates.c.name)
    )
    return {name: from_microseconds(until) for name, until in connection.execute(query).all()}


def stored_credential(content: bytes) -> Credential:
    """Read a credential from the store. Raises `DataLoss`."""
    try:
        return credential_of(read_certificate(content))
    except ValueError:
        raise DataLoss("a certificate in the store cannot be read") from None
