"""The page of long work: how far it is, and what came of it."""

from __future__ import annotations

from starlette.responses import Response

from equipoise.console.asked import Asked
from equipoise.console.desk import Desk
from equipoise.console.pages import Pages


def show(desk: Desk, asked: Asked) -> Response:
    """The whole page."""
    return desk.show("job.html", job=desk.jobs.find(asked.path["job_id"]))


def state(desk: Desk, asked: Asked) -> Response:
    """The part of the page that changes: the page's own script asks for it again and again."""
    job = desk.jobs.find(asked.path["job_id"])
    answer = desk.show("job_state.html", job=job)
    answer.headers["X-Ended"] = "yes" if job.ended else "no"
    return answer


PAGES: Pages = (("GET", "/jobs/{job_id}", show), ("GET", "/jobs/{job_id}/state", state))
