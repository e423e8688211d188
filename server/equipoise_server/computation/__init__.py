"""Computes rounds and sessions as pure functions of job and table, for workers and replay, without any store."""
