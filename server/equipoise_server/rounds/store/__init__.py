"""Rows of rounds, their results, and the records of their steps."""
