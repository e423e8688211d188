"""An operator's pages: rounds and their plans, tables and their budgets, analysts, sessions, health."""

from equipoise.console.operator import analysts, datasets, health, planning, rounds
from equipoise.console.pages import Pages

OPERATOR_PAGES: Pages = (
    ("GET", "/", rounds.home),
    ("GET", "/sessions", rounds.sessions),
    ("GET", "/rounds/new", planning.blank),
    ("POST", "/rounds/new", planning.plan),
    ("GET", "/rounds/{round_id}", rounds.show),
    ("POST", "/rounds/{round_id}/step", rounds.step),
    ("POST", "/rounds/{round_id}/abort", rounds.abort),
    ("GET", "/datasets", datasets.home),
    ("GET", "/datasets/new", datasets.blank),
    ("POST", "/datasets/new", datasets.register),
    ("GET", "/datasets/{name}", datasets.show),
    ("POST", "/datasets/{name}/retire", datasets.retire),
    ("GET", "/analysts", analysts.home),
    ("POST", "/analysts/admit", analysts.admit),
    ("POST", "/analysts/renew", analysts.renew),
    ("POST", "/analysts/revoke", analysts.revoke),
    ("GET", "/health", health.show),
)
