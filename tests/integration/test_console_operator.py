"""An operator's and an auditor's pages on a real server, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.console_pages import Browser
from harness.shop_commands import Run, open_round, register

from equipoise.console.auditor.journal import broken_places
from equipoise.profile.enrolment import REQUEST, Bundle, begin, install

TERMS = {"dataset": "shop", "data_delta": "1e-5", "analyst_delta": "1e-5", "data_epsilon": "2"} | {
    "analyst_epsilon": "2",
    "unit": "query",
    "beta": "0.05",
    "mechanism": "auto",
}
pytestmark = pytest.mark.full


def test_a_round_is_planned_opened_and_led(run: Run, place: Path) -> None:
    with Browser.of(place / "state" / "profiles" / "operator") as operator:
        for form in ("/rounds/new", "/sessions/new", "/grants/new", "/calendar/new"):
            assert "There is no table that takes rounds" in operator.get(form).text
        register(run, place)
        assert "There is no table" not in operator.get("/rounds/new").text
        planned = operator.post("/rounds/new", do="plan", shares="ann=3/10\nbob=3/10", **TERMS)
        assert "What the planner found" in planned.text
        assert planned.text.count('class="dot"') >= 3
        # A browser that goes back to it, or loads it again, sends no form.
        assert operator.client.get(str(planned.url)).text == planned.text
        assert "No round was opened yet" in operator.get("/").text
        for wrong in ({"shares": "ann"}, {"shares": "ann=3", "data_epsilon": "1_0"}, {"shares": "nobody=3"}):
            refused = operator.post("/rounds/new", do="open", **(TERMS | wrong))
            assert refused.status_code == 400
            assert 'role="alert"' in refused.text
        opened = operator.post("/rounds/new", do="open", shares="ann=3/10\nbob=3/10", **TERMS)
        path = "/rounds/" + opened.url.path.rsplit("/", 1)[1]
        assert "Seal: take no more questions" in opened.text
        assert "nothing was aborted" in operator.post(f"{path}/abort", reason="none").text
        assert operator.post(f"{path}/step", step="release").status_code == 409
        assert "Run: compute the answers" in operator.post(f"{path}/step", step="seal").text
        assert "ready to be released" in operator.finish(operator.post(f"{path}/step", step="run")).text
        assert "Release: give all analysts" in operator.get(path).text
        assert "released" in operator.post(f"{path}/step", step="release").text
        assert "spent" in operator.get("/datasets/shop").text
        assert '<td class="when">20' in operator.get("/").text


@pytest.mark.nightly
def test_analysts_are_admitted_by_fingerprint_and_revoked_by_name(run: Run, place: Path) -> None:
    register(run, place)
    request = begin(place / "eve")
    with Browser.of(place / "state" / "profiles" / "operator") as operator:
        files = {"request_file": (REQUEST, request)}
        asked = operator.post("/analysts/admit", files, name="eve")
        assert "Compare before you admit eve" in asked.text
        assert ">eve<" not in operator.get("/analysts").text
        bundle = operator.post("/analysts/admit", name="eve", request=request.decode(), compared="yes")
        install(place / "eve", Bundle.from_json(bundle.text))
        assert ">eve<" in operator.get("/analysts").text
        assert run("eve", "whoami")["name"] == "eve"
        assert operator.post("/analysts/revoke", name="eve", confirm="ann").status_code == 400
        assert "revoked" in operator.post("/analysts/revoke", name="eve", confirm="eve").text
        assert operator.post("/analysts/admit", name="eve", request="no request").status_code == 400
        assert operator.post("/datasets/shop/retire", confirm="shops").status_code == 400
        assert "retired" in operator.post("/datasets/shop/retire", confirm="shop").text


@pytest.mark.nightly
def test_an_auditor_reads_and_checks_everything(run: Run, place: Path) -> None:
    register(run, place)
    round_id = open_round(run)
    with Browser.of(place / "state" / "profiles" / "auditor") as auditor:
        assert "Draw 32 bytes" in auditor.get(f"/rounds/{round_id}").text
        assert auditor.post(f"/rounds/{round_id}/nonce").status_code == 200
        for step in ("seal", "run", "release"):
            run("operator", "operator", "round", step, round_id)
        run("ann", "wait", round_id)
        assert "All that was checked is in order" in auditor.finish(auditor.post("/audit")).text
        assert auditor.get("/audit/report.md").text.startswith("# Audit report")
        dossier = auditor.get(f"/rounds/{round_id}").text
        assert all(step in dossier for step in ("round opened", "round sealed", "round released"))
        assert "No gap" in auditor.get("/journal?account=data/shop").text
        compared = auditor.finish(auditor.post("/log/compare")).text
        assert "the continuation of what was seen" in compared
        assert "failed" not in compared
        assert auditor.get("/rounds/0").status_code == 404
        entries = list(auditor.desk.auditor.journal())
    assert broken_places(entries) == {}
    assert broken_places(entries[:2] + entries[4:]) == {entries[4].sequence: "2 missing before"}
    assert list(broken_places([*entries[1:2], *entries[:1], *entries[2:]]).values())[1] == "out of order"
