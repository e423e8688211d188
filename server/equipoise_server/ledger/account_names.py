"""The names of accounts, and whose they are."""

from __future__ import annotations


def data_account(account: str) -> str:
    """Return the name of the data account that datasets of the same people share."""
    return f"data/{account}"


def analyst_account(account: str, unit: str, analyst: str) -> str:
    """Return the name of an analyst's account.

    Args:
        account: the dataset's account.
        unit: of the analysts' protection.
        analyst: the analyst's name.
    """
    return f"analyst/{account}/{unit}/{analyst}"


def holder(account: str) -> tuple[str, str] | None:
    """Return the unit and the analyst that an account's name contains; None for a data account."""
    kind, *parts = account.split("/")
    return (parts[-2], parts[-1]) if kind == "analyst" else None
