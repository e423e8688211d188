"""An auditor's pages: all rounds, the journal of the budgets, the log, and whole audits."""

from equipoise.console.auditor import audits, journal, log, rounds
from equipoise.console.pages import Pages

AUDITOR_PAGES: Pages = (
    ("GET", "/", rounds.home),
    ("GET", "/rounds/{round_id}", rounds.dossier),
    ("POST", "/rounds/{round_id}/nonce", rounds.add_nonce),
    ("GET", "/journal", journal.show),
    ("GET", "/log", log.show),
    ("POST", "/log/compare", log.compare),
    ("GET", "/audit", audits.home),
    ("POST", "/audit", audits.run),
    ("GET", "/audit/report.{kind}", audits.report),
)
