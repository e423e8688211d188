"""An analyst's own world on the console's pages: its datasets, its spending, and its requests for grants."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.console_pages import Browser
from harness.shop_commands import Run, open_round, register

pytestmark = pytest.mark.full
GIVE = ("operator", "operator", "grant", "add", "shop", "ann", "--data-epsilon", "0.5", "--data-delta", "1e-6")
HOSTILE = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"


def test_an_analyst_sees_what_it_may_ask_and_what_it_has_spent(run: Run, place: Path) -> None:
    register(run, place)
    round_id = open_round(run)
    grant_id = run(*GIVE)["round"]["id"]
    with Browser.of(place / "ann") as ann, Browser.of(place / "bob") as bob:
        assert '/datasets/shop">shop</a>' in ann.get("/datasets").text
        of_shop = ann.get("/datasets/shop").text
        assert all(f"/rounds/{each}" in of_shop for each in (round_id, grant_id))
        assert "Nothing is measured of it" in of_shop
        assert ann.get("/datasets/other").status_code == 404
        here = f"/rounds/{grant_id}"
        assert "Nothing was asked of it" in ann.get(f"{here}/spending").text
        sql = "SELECT colour, COUNT(*) FROM shop GROUP BY colour"
        asked = ann.finish(ann.post(f"{here}/ask", do="send", sql=sql, rho="0.001"))
        assert "1 statement answered" in asked.text
        spent = ann.get(f"{here}/spending").text
        assert "0.001" in spent
        assert "marginal" in spent
        assert f"/rounds/{grant_id}/spending" in ann.get(here).text
        assert "% used; left: rho" in ann.get("/grants").text
        assert ann.get(f"/rounds/{round_id}/spending").status_code == 404
        assert bob.get(f"{here}/spending").status_code == 404
        assert grant_id not in bob.get("/datasets/shop").text
        assert "No grant of yours is open" in bob.get("/grants").text


def test_an_analyst_asks_for_a_grant_once(run: Run, place: Path) -> None:
    register(run, place)
    with Browser.of(place / "ann") as ann, Browser.of(place / "bob") as bob:
        before = bob.get("/grants").text
        wish = {"dataset": "shop", "epsilon": "0.5", "reason": HOSTILE}
        for _ in range(2):
            sent = ann.post("/grants", request_id="once", **wish)
            assert sent.status_code == 200
        assert sent.text.count(ESCAPED) == 1
        assert HOSTILE not in sent.text
        assert 'value="nowhere"' in ann.get("/grants?dataset=nowhere").text
        for wrong in ({"reason": ""}, {"dataset": "no name"}, {"epsilon": "-1"}, {"epsilon": "1_0"}):
            refused = ann.post("/grants", **(wish | wrong))
            assert refused.status_code == 400, wrong
            assert 'role="alert"' in refused.text
        (kept,) = run("ann", "requests")["requests"]
        assert (kept["dataset"], kept["epsilon"], kept["reason"]) == ("shop", 0.5, HOSTILE)
        assert len(before) == len(bob.get("/grants").text)
