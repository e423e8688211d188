"""Which open rounds wait to charge an account: of an analyst's, its own ones whose unit counts there."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine

from equipoise_server.ledger.account_names import analyst_account, data_account
from equipoise_server.rounds.terms import open_charges
from equipoise_server.storage.tables import metadata
from equipoise_server.storage.tables.round import shares

UNITS = {"query of ann": "query", "analyst of ann": "analyst", "analyst of bob": "analyst"}
ALLOWED = dict.fromkeys(("position", "statements", "queries", "sensitivity", "support", "ways"), 1)


@pytest.mark.parametrize(
    ("account", "charging"),
    [
        (data_account("t"), [*UNITS]),
        (analyst_account("t", "analyst", "ann"), ["analyst of ann"]),
        (analyst_account("t", "analyst", "bob"), ["analyst of bob"]),
        (analyst_account("t", "analyst", "cyd"), []),
    ],
)
def test_an_analysts_account_waits_for_its_own_rounds_of_its_unit(account: str, charging: list[str]) -> None:
    engine = create_engine("sqlite://")  # in which rows may stand alone
    metadata.create_all(engine)
    with engine.connect() as connection:
        for round_id in UNITS:
            analyst = round_id.rpartition(" ")[2]
            connection.execute(shares.insert().values(round_id=round_id, analyst=analyst, **ALLOWED))
        found = open_charges._charging(connection, account, UNITS)
    engine.dispose()
    assert found == charging
