"""Analysts: admitted, renewed and revoked. Their keys never come here: they send a signing request."""

from __future__ import annotations

import re

from starlette.responses import Response

from equipoise.commands.columns import shown_time
from equipoise.commands.printing import Columns
from equipoise.console.asked import Asked
from equipoise.console.desk import Desk, download, part_of
from equipoise.console.rendering import table_of
from equipoise.errors import AlreadyExists, InvalidArgument, NotFound
from equipoise.model.identities import Identity
from equipoise.profile.enrolment import key_fingerprint

COLUMNS: Columns[Identity] = {
    "name": lambda each: each.name,
    "admitted": lambda each: shown_time(each.create_time),
    "certified until": lambda each: shown_time(each.certified_until) or "revoked",
}


def home(desk: Desk, asked: Asked) -> Response:
    """All analysts, by name."""
    return _page(desk, asked)


def admit(desk: Desk, asked: Asked) -> Response:
    """Admits an analyst, after the operator has compared the fingerprint of its request."""
    return _issue(desk, asked, "admit")


def renew(desk: Desk, asked: Asked) -> Response:
    """Issues another certificate to an analyst."""
    return _issue(desk, asked, "renew")


def revoke(desk: Desk, asked: Asked) -> Response:
    """Revokes every certificate of an analyst."""
    name = asked.needed("name")
    if asked.text("confirm").strip() != name:
        raise InvalidArgument("confirm", f"must be {name!r}, the name of whoever is revoked")
    desk.operator.revoke_analyst(name, asked.needed("request_id"))
    return desk.go("/analysts")


def _issue(desk: Desk, asked: Asked, what: str) -> Response:
    """First the fingerprint of the request, then, once it was compared, the bundle to send back."""
    name = asked.text("name").strip()
    request = asked.files.get("request_file") or asked.text("request").encode()
    try:
        if not request.strip():
            raise InvalidArgument("signing request", "is missing: choose the file that the analyst sent you")
        asked.needed("name")
        fingerprint = key_fingerprint(request)
        if asked.text("compared") != "yes":
            text = request.decode("ascii", "strict")
            return _page(desk, asked, pending={"what": what, "name": name, "of": fingerprint, "request": text})
        issue = desk.operator.admit_analyst if what == "admit" else desk.operator.renew_analyst
        target = asked.text("target").strip() or None
        bundle = issue(name, request, target)
    except UnicodeDecodeError:
        return _page(desk, asked, 400, refusal=InvalidArgument("signing request", "is not a text file in PEM"))
    except (InvalidArgument, AlreadyExists, NotFound) as refusal:
        return _page(desk, asked, 400, refusal=refusal)
    return download(bundle.to_json().encode(), re.sub(r"[^0-9A-Za-z._-]", "-", name) + ".json")


def _page(
    desk: Desk,
    asked: Asked,
    status: int = 200,
    refusal: Exception | None = None,
    pending: dict[str, str] | None = None,
) -> Response:
    part = part_of(desk.operator.analysts(), asked)
    return desk.show(
        "operator/analysts.html",
        status,
        section="Analysts",
        part=part,
        analysts=table_of(COLUMNS, part.items),
        refusal=refusal,
        pending=pending,
    )
