"""Trials without a server: a table on one's own disk, or dummy data, and noise like a round's."""
