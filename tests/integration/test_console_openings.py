"""What an operator opens, gives and changes on the console's pages, on a real server, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from harness.console_pages import Browser
from harness.shop_commands import SCHEMA, Run, register

pytestmark = pytest.mark.full
BUDGETS = {"dataset": "shop", "data_epsilon": "0.5", "data_delta": "1e-5", "beta": "0.05"}
SESSION = {**BUDGETS, "unit": "query", "shares": "ann=5/40", "mechanism": "online", "ending": "stop"} | {
    "data_epsilon": "2",
    "options": "",
    "accept": ["noise", "promise"],
}
RANDOM = re.compile(r"[0-9a-f]{32}")


def id_of(url: object) -> str:
    return str(url).rsplit("/", 1)[1]


def test_sessions_and_grants_by_pages_which_others_pages_do_not_show(run: Run, place: Path) -> None:
    register(run, place)
    with (
        Browser.of(place / "state" / "profiles" / "operator") as operator,
        Browser.of(place / "ann") as ann,
        Browser.of(place / "bob") as bob,
    ):

        def looked() -> list[str]:
            return [RANDOM.sub("random", bob.get(path).text) for path in ("/", "/receipts", f"/rounds/{'0' * 32}")]

        before = looked()
        for path in ("/sessions/new", "/grants/new"):
            page = operator.get(f"{path}?dataset=shop").text
            assert '<option value="shop" selected>' in page
            assert page.count('name="accept"') == 4

        planned = operator.post("/sessions/new", do="plan", **SESSION).text
        assert "Open this session: charge both budgets" in planned
        assert "not counted: they are not protected" in planned
        assert "There is no session" in operator.get("/sessions").text
        for wrong in ({"shares": "ann"}, {"data_epsilon": "11"}, {"ending": "never"}, {"turn_seconds": "1_0"}):
            refused = operator.post("/sessions/new", do="open", **(SESSION | wrong))
            assert refused.status_code == 400, wrong
            assert 'role="alert"' in refused.text
        opened = operator.post("/sessions/new", do="open", **SESSION)
        assert "Close the session" in opened.text
        assert id_of(opened.url) in operator.get("/sessions").text
        listed = run("ann", "sessions")["sessions"]
        assert [each["terms"]["session"]["ending"] for each in listed] == ["stop"]

        for wrong in ({"analyst": "nobody"}, {"until": "soon"}, {"data_epsilon": "1000"}):
            refused = operator.post("/grants/new", **(BUDGETS | {"analyst": "ann"} | wrong))
            assert refused.status_code == 400, wrong
            assert 'role="alert"' in refused.text
        given = operator.post("/grants/new", analyst="ann", **BUDGETS)
        grant_id = id_of(given.url)
        assert "End the grant: count only what was spent" in given.text
        assert "Waiting for you" in operator.get("/").text
        assert "End the grant" not in operator.get("/").text
        assert [each["id"] for each in run("ann", "budget")["grants"]] == [grant_id]
        assert grant_id in ann.get("/").text
        assert looked() == before
        ended = operator.finish(operator.post(f"/rounds/{grant_id}/end"))
        assert "The grant has ended" in ended.text
        assert "End the grant" not in operator.get(f"/rounds/{grant_id}").text
        assert operator.post(f"/rounds/{'0' * 32}/end").status_code == 404
        assert looked() == before


def test_tables_are_registered_updated_and_capped(run: Run, place: Path) -> None:
    register(run, place)
    data = place / "state" / "data"
    newer = (data / "shop.csv").read_text() + "red,s\ngreen,m\n"
    (data / "newer.csv").write_text(newer)
    (data / "others.csv").write_text(newer + "red,m\n")
    (data / "third.csv").write_text(newer + "green,m\n")
    with Browser.of(place / "state" / "profiles" / "operator") as operator:
        caps = {"data_epsilon": "20", "data_delta": "1e-4", "analyst_epsilon": "20", "analyst_delta": "1e-4"}
        table = {"name": "other", "source": "others.csv", "people": "new", "schema": json.dumps(SCHEMA), **caps}
        refused = operator.post("/datasets/new", **table)
        assert refused.status_code == 400
        assert "--accept epsilon" in refused.text
        assert "403 records" in operator.post("/datasets/new", accept=["epsilon"], **table).text

        # Where there is a table, the form answers nobody's question by itself.
        assert '<option value="" selected>' in operator.get("/datasets/new").text
        unanswered = operator.post("/datasets/new", accept=["epsilon"], **{**table, "name": "third", "people": ""})
        assert (unanswered.status_code, "people" in unanswered.text) == (400, True)
        same = {"name": "third", "source": "third.csv", "people": "same-as:shop", "schema": json.dumps(SCHEMA)}
        assert "data/shop" in operator.post("/datasets/new", **same).text

        assert "402 records, version 2" in operator.post("/datasets/shop/update", source="newer.csv").text
        wrong = operator.post("/datasets/shop/update", source="nothing.csv")
        assert wrong.status_code == 400
        assert 'value="nothing.csv"' in wrong.text
        without = {"version": 1, "attributes": [{"name": "colour", "categories": ["red"]}]}
        files = {"schema_file": ("schema.json", json.dumps(without).encode())}
        assert operator.post("/datasets/shop/update", files).status_code == 400
        assert "402 records, version 2" in operator.get("/datasets/shop").text

        account = {"account": "data/shop", "epsilon": "19", "delta": "1e-4"}
        unnamed = operator.post("/datasets/shop/cap", **account)
        assert (unnamed.status_code, "name the danger: --accept epsilon" in unnamed.text) == (400, True)
        account["accept"] = "epsilon"
        assert operator.post("/datasets/shop/cap", **account).status_code == 200
        (changed,) = [
            each
            for each in run("operator", "operator", "budget", "show", "shop")["accounts"]
            if each["name"] == "data/shop"
        ]
        assert changed["cap"]["epsilon"] == 19
        for bad in ({"account": "data/none"}, {"epsilon": "0"}, {"delta": ""}):
            refused = operator.post("/datasets/shop/cap", **(account | bad))
            assert refused.status_code == 400, bad
            assert 'role="alert"' in refused.text
