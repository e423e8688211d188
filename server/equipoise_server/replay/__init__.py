"""Computes a released round again from its data and its seed, and compares it with the release."""
