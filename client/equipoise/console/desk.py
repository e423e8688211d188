"""What all pages work with: the user's profile and connection, and how a page is made of a template."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from starlette.responses import HTMLResponse, RedirectResponse, Response

from equipoise.clients.analyst import Client, fresh_request_id
from equipoise.clients.auditor import Auditor
from equipoise.clients.connection import Connection
from equipoise.clients.operator import Operator
from equipoise.console.access import Access
from equipoise.console.asked import Asked
from equipoise.console.jobs import Job, Jobs
from equipoise.console.rendering import Part, Stretch, rendered
from equipoise.errors import EquipoiseError, InvalidArgument, NotFound, PermissionDenied, Unavailable
from equipoise.model.identities import Caller, Role
from equipoise.model.rounds import Round, RoundDetail
from equipoise.profile.profile import Profile
from equipoise.profile.receipt_store import ReceiptStore

T = TypeVar("T")
Opened = TypeVar("Opened", Round, RoundDetail)
ROWS = 50  # of a list on one page

# Where the links at the top lead, by role.
SECTIONS = {
    Role.ANALYST: (
        ("", "My rounds"),
        ("datasets", "Datasets"),
        ("grants", "Grants"),
        ("receipts", "Receipts"),
    ),
    Role.OPERATOR: (
        ("", "Rounds"),
        ("sessions", "Sessions"),
        ("calendar", "Calendar"),
        ("requests", "Requests"),
        ("datasets", "Datasets"),
        ("analysts", "Analysts"),
        ("health", "Health"),
    ),
    Role.AUDITOR: (("", "Rounds"), ("journal", "Journal"), ("log", "Log"), ("audit", "Audit")),
}


@dataclass(frozen=True)
class Desk:
    """One user's console.

    Attributes:
        profile: the directory of the profile.
        connection: to the server, with the profile's certificate.
        caller: who the user is.
        certified_until: when the certificate ends.
        access: who may see the pages.
        jobs: long work.
        kept: what pages remember of released rounds, which do not change any more, and of answers.
    """

    profile: Path
    connection: Connection
    caller: Caller
    certified_until: datetime
    access: Access
    jobs: Jobs = field(default_factory=Jobs)
    kept: dict[tuple[str, ...], Any] = field(default_factory=dict)

    @classmethod
    def of(cls, profile: Path, access: Access) -> Desk:
        """Asks the server who the holder of the profile is.

        Args:
            profile: its directory.
            access: who may see the pages.

        Raises:
            InvalidArgument: a file of the profile is missing or malformed.
            Unavailable: the server is not reached.
        """
        connection = Connection.from_profile(profile)
        caller = Client(connection).identity()
        return cls(profile, connection, caller, Profile.load(profile).expire_time, access)

    @property
    def analyst(self) -> Client:
        """The analyst's client, which keeps receipts in the profile."""
        return Client(self.connection, ReceiptStore(self.profile))

    @property
    def operator(self) -> Operator:
        """The operator's client."""
        return Operator(self.connection)

    @property
    def auditor(self) -> Auditor:
        """The auditor's client."""
        return Auditor(self.connection)

    @property
    def base(self) -> str:
        """What all paths begin with."""
        return self.access.base

    def show(self, template: str, status: int = 200, **values: object) -> Response:
        """Returns a page.

        Args:
            template: its file's name.
            status: of HTTP.
            values: what it shows; `section`: which link at the top is the page's own.
        """
        common = {
            "base": self.base,
            "caller": self.caller,
            "certified_until": self.certified_until,
            "form_token": self.access.form_token,
            "fresh": fresh_request_id,
            "section": "",
            "sections": SECTIONS[self.caller.role],
            "server": self.connection.target,
            "refusal": None,
        }
        return HTMLResponse(rendered(template, common | values), status)

    def go(self, path: str) -> Response:
        """Returns an answer that leads to another page of the console, which is then asked for by GET."""
        return RedirectResponse(f"{self.base}{path}", status_code=303)

    def start(self, job: Job, work: Callable[[Job], None]) -> Response:
        """Starts long work, and leads to the page that shows how far it is.

        Args:
            job: what it is.
            work: does it.
        """
        return self.go(f"/jobs/{self.jobs.start(job, work).id}")

    def refused(self, error: EquipoiseError) -> Response:
        """Returns the page that says why something was refused."""
        return self.show("refused.html", status_of(error), error=error)

    def remembered(self, key: tuple[str, ...], make: Callable[[], T], most: int = 8) -> T:
        """Returns something that does not change any more, made when it is first asked for.

        Args:
            key: what it is; its first part says of which kind.
            make: makes it.
            most: how many of one kind are remembered.
        """
        if key not in self.kept:
            made = make()
            for old in [each for each in list(self.kept) if each[0] == key[0]][: -most + 1]:
                self.kept.pop(old, None)
            self.kept[key] = made
        found: T = self.kept[key]
        return found


def status_of(error: EquipoiseError) -> int:
    """Returns the status of HTTP that an error has."""
    match error:
        case InvalidArgument():
            return 400
        case NotFound():
            return 404
        case PermissionDenied():
            return 403
        case Unavailable():
            return 503
        case _:
            return 409


def part_of(things: Iterable[T], asked: Asked, query: Mapping[str, str] = MappingProxyType({})) -> Part[T]:
    """Returns the page that is asked for of a list that is read only as far as it is needed.

    Args:
        things: the list.
        asked: the request.
        query: what links to other pages of the list keep.
    """
    first = (asked.page - 1) * ROWS
    items = list(islice(things, first, first + ROWS + 1))
    return Part(items[:ROWS], asked.page, more=len(items) > ROWS, first=first, query=query)


def stretch_of(
    read: Callable[[str, int], Iterable[Opened]], asked: Asked, name: str = "after", rows: int = ROWS
) -> Stretch[Opened]:
    """Returns the stretch that is asked for of a list of rounds, of which the server then reads no more than that.

    Args:
        read: the rounds that were opened before one of them, so many at a time.
        asked: the request.
        name: of the part of the query that says after which round the stretch begins.
        rows: how many there are in it.
    """
    after = asked.query.get(name, "")
    items = list(islice(read(after, rows + 1), rows + 1))
    older = f"?{name}={_id_of(items[rows - 1])}" if len(items) > rows else ""
    return Stretch(items[:rows], older, not after)


def _id_of(item: Round | RoundDetail) -> str:
    return item.round.id if isinstance(item, RoundDetail) else item.id


@contextmanager
def scratch(name: str) -> Iterator[Path]:
    """A path for a file that is read at once and removed.

    Args:
        name: of the file, whose ending says its kind.
    """
    with tempfile.TemporaryDirectory(prefix="equipoise-console-") as directory:
        yield Path(directory) / name


def download(content: bytes, name: str) -> Response:
    """Returns a file to be saved.

    Args:
        content: of the file.
        name: of the file: letters, digits, dots and dashes.
    """
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)
