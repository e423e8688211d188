"""Text from elsewhere on a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Makes a text safe to print: it can then neither move the cursor nor begin another line.

    Args:
        text: What may come from a server, a file or another person.

    Returns:
        The text, in which every character that is not printed itself is written as an escape sequence of Python's.
    """
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
