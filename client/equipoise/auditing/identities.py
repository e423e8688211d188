"""What the log says of who was admitted, and until when: its changes of identities and of the authority in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from equipoise.auditing.steps import Step
from equipoise.errors import VerificationFailed
from equipoise.model.identities import Role
from equipoise.records.identity_items import AuthorityEvent, AuthorityItem, IdentityEvent, IdentityItem

EARLY = 5 * 60 * 1_000_000  # microseconds by which a certificate begins before it is issued
LATE = 60 * 1_000_000  # microseconds after its end within which open calls are ended


@dataclass
class _Validity:
    begin: int
    end: int
    authorities: int  # how many there had been when it was issued; the last of them signed it
    issued: int  # the entry of the log
    revoked: int | None = None  # the entry of the log; None: not

    def held(self, entries: tuple[int, int] | None) -> bool:
        """Whether it was in force at some place of the log between two entries; without entries, always."""
        if entries is None:
            return True
        first, last = entries
        return self.issued < last and (self.revoked is None or self.revoked > first)


@dataclass
class KnownIdentity:
    """Somebody who was admitted at the entry `since` of the log, and deleted at another; None: not."""

    role: Role
    since: int
    deleted: int | None = None
    login: bytes | None = None  # the account that it may log in with
    certificates: dict[bytes, _Validity] = field(default_factory=dict)

    def certified(self, first: int, last: int, entries: tuple[int, int] | None = None) -> bool:
        """Returns whether a certificate was in force at any time from `first` to `last`.

        Args:
            first: the earliest time, in microseconds since 1970.
            last: the latest time.
            entries: two entries of the log, between which that certificate must have been in force by the log's
                order, too; None: only times are compared.
        """
        return any(
            each.begin - EARLY <= last and first <= each.end + LATE and each.held(entries)
            for each in self.certificates.values()
        )


def read_identities(steps: Iterable[Step]) -> dict[str, KnownIdentity]:
    """Returns everybody who was ever admitted, by name.

    Raises `VerificationFailed` naming the first change that cannot follow those before it.
    """
    found = _Reading()
    for step in steps:
        if step.record.has(AuthorityItem):
            found.exchange(step, step.one(AuthorityItem))
        if step.record.has(IdentityItem):
            found.take(step, step.one(IdentityItem))
    return found.known


class _Reading:
    """The registry as the records so far make it up."""

    def __init__(self) -> None:
        self.known: dict[str, KnownIdentity] = {}
        self._digests: set[bytes] = set()  # of all certificates ever
        self._newest: AuthorityItem | None = None
        self._authorities = 0

    def take(self, step: Step, change: IdentityItem) -> None:
        name, there = change.name, self.known.get(change.name)
        admits = change.event is IdentityEvent.ADDED or (change.event is IdentityEvent.LOGIN and there is None)
        if admits:
            if any(other.lower() == name.lower() for other in self.known):
                raise VerificationFailed(f"{step}: {name!a} is admitted twice")
            there = self.known[name] = KnownIdentity(change.role, step.index)
        if there is None or there.deleted is not None:
            state = "was deleted" if there is not None else "is not admitted"
            raise VerificationFailed(f"{step}: {name!a} is {change.event}, but {state} before")
        if there.role is not change.role:
            raise VerificationFailed(
                f"{step}: {name!a} has the role {change.role}, and was admitted as {there.role}"
            )
        if change.event is IdentityEvent.LOGIN:
            self._allow_login(step, there, change)
            return
        if change.login is not None and (change.event is not IdentityEvent.RENEWED or change.login != there.login):
            raise VerificationFailed(f"{step}: {name!a} has logged in with an account that was not allowed to")
        if change.event in (IdentityEvent.ADDED, IdentityEvent.RENEWED):
            if len(change.certificates) != 1:
                raise VerificationFailed(
                    f"{step}: {name!a} is {change.event} with {len(change.certificates)} certificates"
                )
            (issued,) = change.certificates
            self._issue(step, name, issued.digest, change.time, issued.expire_time)
            return
        left = {digest: each for digest, each in there.certificates.items() if each.revoked is None}
        # The server forgets certificates of logins that have expired. What has expired lets nobody in.
        in_force = {digest for digest, each in left.items() if each.end > change.time}
        if not in_force <= {each.digest for each in change.certificates} <= left.keys():
            raise VerificationFailed(
                f"{step}: the certificates that {name!a} has lost are not all that were in force"
            )
        _revoke(left.values(), step, change.time)
        there.login = None
        if change.event is IdentityEvent.DELETED:
            there.deleted = step.index

    def _allow_login(self, step: Step, there: KnownIdentity, change: IdentityItem) -> None:
        if change.login is None or change.certificates:
            raise VerificationFailed(
                f"{step}: {change.name!a} may log in, but the record has no account, or it has a certificate"
            )
        if any(each.login == change.login for each in self.known.values() if each is not there):
            raise VerificationFailed(f"{step}: the account of {change.name!a} logs in another identity, too")
        there.login = change.login

    def exchange(self, step: Step, change: AuthorityItem) -> None:
        for each in change.certificates:
            there = self.known.get(each.name)
            if there is None or there.deleted is not None:
                raise VerificationFailed(f"{step}: {each.name!a} has a certificate, but is not admitted")
        if change.event is AuthorityEvent.ROTATED:
            self._rotate(step, change)
        else:
            self._retire(step, change)
        self._newest = change

    def _rotate(self, step: Step, change: AuthorityItem) -> None:
        before = self._newest
        if before is not None and (
            before.event is not AuthorityEvent.RETIRED or change.predecessor != before.authority
        ):
            raise VerificationFailed(f"{step}: its predecessor is not the one authority in force")
        held: dict[str, list[int]] = defaultdict(list)
        for name, _, validity in self._in_force(change.time):
            held[name].append(validity.end)
        signed: dict[str, list[int]] = defaultdict(list)
        for each in change.certificates:
            signed[each.name].append(each.expire_time)
        for name in sorted(held.keys() | signed.keys()):
            if len(signed[name]) != len(held[name]):
                raise VerificationFailed(
                    f"{step}: {name!a} has {len(signed[name])} certificates signed anew, for "
                    f"{len(held[name])} in force"
                )
            # A record does not say which certificate each succeeds: compare the latest with the latest, and so on.
            if any(new > old for new, old in zip(sorted(signed[name]), sorted(held[name]), strict=True)):
                raise VerificationFailed(
                    f"{step}: a certificate of {name!a} ends later than the one that it replaces"
                )
        self._authorities += 1
        for each in change.certificates:
            self._issue(step, each.name, each.digest, change.time, each.expire_time)

    def _retire(self, step: Step, change: AuthorityItem) -> None:
        before = self._newest
        if (
            before is None
            or before.event is not AuthorityEvent.ROTATED
            or (change.authority, change.predecessor) != (before.authority, before.predecessor)
        ):
            raise VerificationFailed(f"{step}: it ends an exchange of authorities that was not begun")
        old = [each for each in self._in_force(change.time) if each[2].authorities < self._authorities]
        due, lost = {each[:2] for each in old}, {(each.name, each.digest) for each in change.certificates}
        for name, _ in sorted(lost - due):
            raise VerificationFailed(f"{step}: a certificate of {name!a} is revoked that was not in force")
        for name, _ in sorted(due - lost):
            raise VerificationFailed(f"{step}: a certificate of {name!a} by the old authority is left in force")
        _revoke((each[2] for each in old), step, change.time)

    def _in_force(self, time: int) -> list[tuple[str, bytes, _Validity]]:
        return [
            (name, digest, validity)
            for name, each in self.known.items()
            for digest, validity in each.certificates.items()
            if validity.revoked is None and validity.end > time
        ]

    def _issue(self, step: Step, name: str, digest: bytes, begin: int, end: int) -> None:
        if digest in self._digests:
            raise VerificationFailed(f"{step}: the certificate of {name!a} is issued twice")
        self._digests.add(digest)
        self.known[name].certificates[digest] = _Validity(begin, end, self._authorities, step.index)


def _revoke(lost: Iterable[_Validity], step: Step, time: int) -> None:
    for each in lost:
        each.revoked, each.end = step.index, min(each.end, time)
