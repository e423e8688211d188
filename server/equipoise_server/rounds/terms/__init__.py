"""The terms of a round: checks, defaults, and what open rounds will charge."""
