"""A server is killed while a table of known people is registered, and up to its first charge: it pays once."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.crash.dying_server import Persisting, dying_server, kept_alive
from harness.dangers import LARGE_CAPS, SMALL_TABLE

from equipoise.auditing.download import download
from equipoise.auditing.verify import verify
from equipoise.clients.auditor import Auditor
from equipoise.clients.operator import Operator
from equipoise.model.accounts import Budget
from equipoise.model.datasets import NEW_PEOPLE, same_people_as
from equipoise.model.rounds import Share, Terms
from equipoise.profile.profile import LOG_KEYS, read_log_keys
from equipoise.queries.schema import Attribute, Schema
from equipoise.records.dataset_items import DataItem
from equipoise_server.storage.crash_points import CrashPoint

SCHEMA = Schema((Attribute("colour", ("red", "green")),))
CAP = Budget(20.0, 1e-3)
TERMS = Terms(
    "newer", (Share("ann", 2, 2),), Budget(8.0, 1e-4), Budget(8.0, 1e-4), mechanism="gaussian", accepted=SMALL_TABLE
)
# All that is reached between the question and its record, and between the registration and the first charge.
POINTS = [
    *(CrashPoint.REGISTER_DATASET_WRITTEN, CrashPoint.REGISTER_DATASET_COMMITTED),
    *(CrashPoint.GUARD_PREPARED, CrashPoint.GUARD_ADVANCED, CrashPoint.LOG_WRITTEN, CrashPoint.LOG_COMMITTED),
    *(CrashPoint.CHECKPOINT_WRITTEN, CrashPoint.CHECKPOINT_COMMITTED),
    *(CrashPoint.OPEN_WRITTEN, CrashPoint.OPEN_COMMITTED, CrashPoint.SEAL_WRITTEN, CrashPoint.SEAL_COMMITTED),
]


@pytest.mark.full
@pytest.mark.sparse(2)
@pytest.mark.parametrize("people", [same_people_as("shop"), NEW_PEOPLE])
def test_a_registration_that_is_killed_at_every_point_is_charged_to_the_account_of_its_people(
    people: str, tmp_path: Path, store_url: str
) -> None:
    new = people == NEW_PEOPLE
    cap = CAP if new else None
    with dying_server(tmp_path, store_url) as server, kept_alive(server):
        for name, rows in (("shop", "red\ngreen\n" * 50), ("newer", "red\ngreen\n" * 50 + "red\n")):
            (server.state / "data" / f"{name}.csv").write_text(f"colour\n{rows}")
        profiles = server.state / "profiles"
        operator = Persisting(server, lambda: Operator.from_profile(profiles / "operator"))
        operator.ask(lambda it: it.add_analyst("ann", tmp_path / "ann", "admit"))
        operator.ask(
            lambda it: it.register_dataset("shop", "shop.csv", SCHEMA, CAP, CAP, "register", accepted=LARGE_CAPS)
        )
        server.points.write_text("".join(f"{point.value}\n" for point in POINTS))
        newer = operator.ask(
            lambda it: it.register_dataset(
                "newer", "newer.csv", SCHEMA, cap, cap, "register newer", people=people, accepted=LARGE_CAPS
            )
        )
        assert newer.account == ("newer" if new else "shop")
        opened = operator.ask(lambda it: it.open(TERMS, "open"))
        operator.ask(lambda it: it.seal(opened.round.id, "seal"))
        assert server.left() == []
        assert server.deaths == len(POINTS)
        # One account for each people, with one charge on the one that pays.
        accounts = operator.ask(lambda it: {each.name: each for each in it.accounts("newer")})
        assert {name for name in accounts if name.startswith("data/")} == {f"data/{newer.account}"}
        history = operator.ask(lambda it: list(it.account_history(f"data/{newer.account}")))
        assert [entry.action for entry in history] == ["open-account", "reserve"]
        auditor = Persisting(server, lambda: Auditor.from_profile(profiles / "auditor"))
        archive = auditor.ask(lambda it: download(it, None))
        audit = verify(archive, read_log_keys(profiles / "auditor" / LOG_KEYS))
        assert audit.passed
        assert audit.recorded is not None
        items = [step.one(DataItem) for step in audit.recorded.registered]
        answers = [(each.dataset, each.people, each.account) for each in items]
        assert answers == [("shop", NEW_PEOPLE, "shop"), ("newer", people, newer.account)]
        for caller in (operator, auditor):
            caller.close()
