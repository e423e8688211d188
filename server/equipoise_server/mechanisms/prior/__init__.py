"""The prior: one distribution fitted to noisy marginals of a table, from which the game may start.

A component, not a mechanism. What follows a prior depends on every bit of it, so all of it is integers, or
arithmetic that gives the same bits on every machine.

- `plan`: `plan_prior(setting, rho)` gives `PriorParameters` from public facts: which marginals, with what noise,
  and their event, truncation, time and memory.
- `measure`: `measured_for(parameters, setting, data, seed)` counts and draws, and `fitted_prior` fits the prior to
  what was measured.
- `fit`: the fit of log-weights to noisy tables.
- `support`: the list of records over which weights are kept. The whole universe is one. `support_of(measured)` in
  `measure` gives it; of a universe that nobody can enumerate, `drawing` draws some along the tree of `dependence`.
- `distribution`: `Prior`: log-weights on the game's grid, integer weights, and records laid out along them.
"""
