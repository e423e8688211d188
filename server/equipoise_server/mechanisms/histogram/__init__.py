"""`histogram`: noise on every cell of the universe once; every answer is computed from it."""
