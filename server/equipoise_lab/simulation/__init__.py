"""Simulations of a mechanism on a public table: without server, network or secrets, and with every true error."""
