"""What one account may take of the registry by logging in: so many logins a day, whose certificates do not stay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from equipoise.errors import NotAuthenticated, TooFast
from equipoise.model.times import to_microseconds
from equipoise_server.storage.tables.identity import certificates

DAY = timedelta(days=1)
# A token is taken for minutes. So a login that is sent again finds its certificate as long as it may be asked for.
EXPIRED_KEPT = DAY


@dataclass(frozen=True)
class Login:
    """An identity that logs in. `account`: the digest of its account; `allowed`: whether it is its account still.

    `per_day`: how many certificates it may have had in this way within a day.
    """

    account: bytes
    allowed: Callable[[Connection], bool]
    per_day: int

    def admit(self, connection: Connection, name: str, now: datetime) -> None:
        """Let an identity log in once more, and forget certificates of its logins that have long expired.

        Raises `NotAuthenticated` where the account is not its own, and `TooFast`.
        """
        if not self.allowed(connection):
            raise NotAuthenticated("the account does not log this identity in")
        had = (certificates.c.name == name) & certificates.c.login.is_(True)
        lately = had & (certificates.c.created > to_microseconds(now - DAY))
        if connection.execute(select(func.count()).where(lately)).scalar_one() >= self.per_day:
            raise TooFast(f"an account may log in {self.per_day:,} times a day; log in again later")
        # A key that was revoked once stays refused, so what says so stays.
        revoked = select(certificates.c.key).where(certificates.c.name == name, certificates.c.revoked.is_not(None))
        expired = had & (certificates.c.expires <= to_microseconds(now - EXPIRED_KEPT))
        connection.execute(certificates.delete().where(expired, certificates.c.key.not_in(revoked)))
