"""`multiplicative_weights`: measure the statements that a hypothesis about the table serves worst."""
