"""How many examples Hypothesis tries."""

from __future__ import annotations

from hypothesis import settings

USUAL = 100


def examples(usual: int) -> int:
    """As many as `usual` where a test tries 100 if nothing is said, and in proportion where it tries more or fewer.

    The profile says which: the quick tier has a fifth, `explore` twenty times as many.
    """
    return max(1, usual * settings().max_examples // USUAL)
