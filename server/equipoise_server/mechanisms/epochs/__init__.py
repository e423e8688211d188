"""Sessions in epochs: statements answered at once, each hidden from all other analysts."""
