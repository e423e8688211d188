"""Empirical audits of a mechanism: statistics that see only its outcomes, not how it works."""
