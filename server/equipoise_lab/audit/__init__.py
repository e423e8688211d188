"""What outcomes alone prove about a mechanism: statistics that know nothing of how it works."""
