"""The number of possible records: up to which they are listed, and how it is told."""

from __future__ import annotations

MAX_UNIVERSE = 1 << 26  # records that can be listed: a histogram of them, and distributions over them, fit
MAX_DIGITS = 9


def size_in_words(size: int) -> str:
    """Return a size with all of its digits, or the power of two nearest to it.

    Example:
        >>> size_in_words(336_000), size_in_words(10**100)
        ('336,000', 'about 2^332')
    """
    digits = f"{size:,}"
    if len(digits.replace(",", "")) <= MAX_DIGITS:
        return digits
    # The nearest power is above the one that the bits tell where the square is above its square times two.
    power = size.bit_length() - 1
    return f"about 2^{power + (size * size > 1 << (2 * power + 1))}"
