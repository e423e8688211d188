"""An operator's pages: rounds and their plans, tables and their budgets, analysts, sessions, health."""

from equipoise.console.operator import analysts, datasets, health, planning, rounds, sessions, tables
from equipoise.console.pages import Pages

OPERATOR_PAGES: Pages = (
    ("GET", "/", rounds.home),
    ("GET", "/sessions", sessions.home),
    ("GET", "/sessions/new", sessions.blank),
    ("POST", "/sessions/new", sessions.plan),
    ("GET", "/grants/new", sessions.blank_grant),
    ("POST", "/grants/new", sessions.give),
    ("GET", "/rounds/new", planning.blank),
    ("POST", "/rounds/new", planning.plan),
    ("GET", "/rounds/{round_id}", rounds.show),
    ("POST", "/rounds/{round_id}/step", rounds.step),
    ("POST", "/rounds/{round_id}/abort", rounds.abort),
    ("POST", "/rounds/{round_id}/end", sessions.end),
    ("GET", "/datasets", datasets.home),
    ("GET", "/datasets/new", datasets.blank),
    ("POST", "/datasets/new", datasets.register),
    ("GET", "/datasets/{name}", datasets.show),
    ("POST", "/datasets/{name}/update", tables.update),
    ("POST", "/datasets/{name}/cap", tables.set_cap),
    ("POST", "/datasets/{name}/retire", tables.retire),
    ("GET", "/analysts", analysts.home),
    ("POST", "/analysts/admit", analysts.admit),
    ("POST", "/analysts/renew", analysts.renew),
    ("POST", "/analysts/revoke", analysts.revoke),
    ("GET", "/health", health.show),
)
