"""Runs of a mechanism on a table one may look at: no server, no network, no secrets, and every true error."""
