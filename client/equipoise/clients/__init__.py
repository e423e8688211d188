"""Connections to a server: one class for each role."""
