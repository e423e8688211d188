"""Residual measurement: every marginal of a family from one unbiased measurement without repetition.

A component, not a mechanism: it plans nothing by itself and promises nothing. The interface, module by module:

- `family`: `ResidualFamily.closed(sizes, sets, ordered=())` is all marginals of a round: the sets given and all of
  their subsets. It has `sets`, `largest` and `residuals`, and refuses what is too large or malformed
  (`InvalidArgument`).
- `allocation`: `least_summed(family, rho, weights)`, `least_largest(family, rho, weights)` give a `ResidualNoise`:
  the integer parameter `t` of each residual, which costs at most `rho` when one record is replaced. It is a
  `canonical_object`, to be put into a plan. `ResidualNoise.rho()` is `accounting.residuals_rho` of it.
- `variances`: `cell_variance(noise, axes)`, `product_variances(noise, axes, factors)` and
  `product_covariances(...)`: exact, from public things only.
- `measurement`: `measure(data, noise, seed, label)` counts and draws, and gives a `Measured`;
  `Measured.table(axes)` is the unbiased marginal of any set of the family as `ExactTable`: int64 numerators over
  one denominator, `.counts()` as float64; `Measured.product(axes, factors)` counts one box or weighted sum as a
  `Fraction`.
- `haar`: the levels of an ordered axis.

All tables agree with one another and with the known number of records exactly; none is cut at zero.
"""
