"""The pages of a role put together behind the guard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from equipoise.console import job_pages, shown_pages
from equipoise.console.access import MAX_BODY_BYTES, Guard, refused
from equipoise.console.analyst import ANALYST_PAGES
from equipoise.console.asked import Asked
from equipoise.console.auditor import AUDITOR_PAGES
from equipoise.console.desk import Desk
from equipoise.console.operator import OPERATOR_PAGES
from equipoise.console.pages import Page, Pages
from equipoise.errors import EquipoiseError
from equipoise.model.identities import Role

STATIC = Path(__file__).parent / "static"
FILES = {"console.css": "text/css", "icon.svg": "image/svg+xml", "progress.js": "text/javascript"}
PAGES: Mapping[Role, Pages] = {
    Role.ANALYST: ANALYST_PAGES,
    Role.OPERATOR: OPERATOR_PAGES,
    Role.AUDITOR: AUDITOR_PAGES,
}


def pages_of(desk: Desk) -> ASGIApp:
    """Returns the console of a user, for a web server.

    Args:
        desk: the user's profile and connection, and who may see the pages.
    """
    pages = PAGES[desk.caller.role] + job_pages.PAGES + shown_pages.PAGES
    routes = [Route(desk.base + path, _endpoint(page, desk), methods=[method]) for method, path, page in pages]
    routes += [Route(f"{desk.base}/static/{name}", _file(name, kind)) for name, kind in FILES.items()]
    missing: dict[object, Callable[[Request, Exception], Response]] = {
        404: lambda _request, _error: desk.show("missing.html", 404),
        405: lambda _request, _error: desk.show("missing.html", 405),
    }
    return Guard(Starlette(routes=routes, exception_handlers=missing), desk.access)


def _endpoint(page: Page, desk: Desk) -> Callable[[Request], Awaitable[Response]]:
    """A page as the web server calls it. What is sent without the form's token is refused here, for all pages.

    The page that answers a form has an address of its own: a browser that reloads it, or goes back to it, must not
    send the form again.
    """

    async def answer(request: Request) -> Response:
        fields: dict[str, list[str]] = {}
        files: dict[str, bytes] = {}
        if request.method == "POST":
            async with request.form(max_files=4, max_fields=10_000, max_part_size=MAX_BODY_BYTES) as form:
                for name, value in form.multi_items():
                    if isinstance(value, UploadFile):
                        if value.size:
                            files[name] = await value.read()
                    else:
                        fields.setdefault(name, []).append(value)
            token = fields.pop("form_token", [])
            if len(token) != 1 or not desk.access.may_change(token[0]):
                return refused("This form is not one of this console's, and nothing was done.", 403)
        asked = Asked(request.path_params, request.query_params, fields, files)
        answered = await run_in_threadpool(_answered, page, desk, asked)
        if request.method == "POST" and isinstance(answered, HTMLResponse):
            return shown_pages.keep(desk, answered)
        return answered

    return answer


def _answered(page: Page, desk: Desk, asked: Asked) -> Response:
    try:
        return page(desk, asked)
    except EquipoiseError as error:
        return desk.refused(error)


def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        return FileResponse(STATIC / name, media_type=kind)

    return answer
