"""Offline verification of one analyst's part in a round."""
