"""A custodian in miniature, as far as it admits analysts and auditors, and exchanges its authority."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from equipoise.model.times import to_microseconds
from equipoise.records.record import Kind
from equipoise.records.signed_notes import SigningKey
from harness.record_book import RecordBook, digest_of


class AdmittingCustodian(RecordBook):
    """Whose certificates are in force, and by which authority."""

    def __init__(self, keys: Sequence[SigningKey] = ()) -> None:
        super().__init__(keys)
        self.certificates: dict[str, list[dict[str, object]]] = {}  # in force
        self.old: dict[str, list[dict[str, object]]] = {}  # by the authority before
        self.authorities = 0  # how many have come after the first
        self.admit("auditor", "auditor")
        for analyst in ("ann", "bob"):
            self.admit(analyst)

    def admit(self, name: str, role: str = "analyst", event: str = "added") -> None:
        """Also "renewed"."""
        held = self.certificates.setdefault(name, [])
        expire_time = to_microseconds(self.time + timedelta(days=397))
        issued = {"digest": digest_of(f"certificate {name} {self.time}"), "expire_time": expire_time}
        self.change(name, event, [issued], role)
        held.append(issued)

    def revoke(self, name: str, event: str = "revoked") -> None:
        """Also "deleted"."""
        self.change(name, event, self.certificates.pop(name))

    def change(
        self,
        name: str,
        event: str,
        certificates: Sequence[Mapping[str, object]],
        role: str = "analyst",
        login: str | None = None,
    ) -> None:
        told = {
            "event": event,
            "name": name,
            "role": role,
            "certificates": list(certificates),
            "by": "operator/olga",
            "login": login,
        }
        self._record(Kind.IDENTITY_CHANGED, [("identity", told | {"time": to_microseconds(self.time)})])

    def rotate(self) -> None:
        """A new authority signs what is in force anew."""
        self.old = {name: list(held) for name, held in self.certificates.items()}
        self.exchange("rotated", self.successors(self.old))
        self.authorities += 1

    def retire(self) -> None:
        """The old authority's certificates end."""
        self.exchange("retired", [{"name": name, **each} for name, held in self.old.items() for each in held])
        for name, held in self.old.items():
            self.certificates[name] = [each for each in self.certificates[name] if each not in held]

    def successors(self, held: Mapping[str, Sequence[Mapping[str, object]]]) -> list[dict[str, object]]:
        """The certificates that a new authority signs in the place of others."""
        made: list[dict[str, object]] = []
        for name, each in [(name, each) for name, several in held.items() for each in several]:
            issued = {**each, "digest": digest_of(f"{each['digest']} by {self.authorities + 1}")}
            self.certificates[name].append(issued)
            made.append({"name": name, **issued})
        return made

    def exchange(self, event: str, certificates: Sequence[Mapping[str, object]], **told: object) -> None:
        """An exchange of the authority, with the fields of its record that are not as they should be."""
        number = self.authorities + (event == "rotated")
        fields = {
            "authority": digest_of(f"authority {number}"),
            "predecessor": digest_of(f"authority {number - 1}"),
            **told,
        }
        fields |= {"event": event, "certificates": list(certificates), "time": to_microseconds(self.time)}
        self._record(Kind.AUTHORITY_CHANGED, [("authority", fields)])
