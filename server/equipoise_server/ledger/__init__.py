"""Both privacy budgets: reserve, spend, the journal, and conversion to (epsilon, delta)."""
