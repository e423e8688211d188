"""The named mechanism `equilibrium`: its plan, how its parameters are chosen, and its run."""
